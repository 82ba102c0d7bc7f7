package ginlock_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// attempts are the reloads of a watched file.
type attempts chan ruleset.Reload

// of waits for the attempt to load a text.
func (a attempts) of(t testing.TB, text string) error {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])[:12]
	limit := time.After(5 * time.Minute) // for a test that fails
	for {
		select {
		case r := <-a:
			if r.Hash == hash {
				return r.Err
			}
		case <-limit:
			t.Fatalf("nobody loaded\n%s", text)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// twoRules is a rule file whose two rules say by their keys which file they are of.
func twoRules(n int) string {
	const rule = "  - {http: POST /orders/:id/pay, name: %[1]s, key: \"%[1]s-%[2]d:#{path.id}\"}\n"
	return "allow_rekey: true\nrules:\n" + fmt.Sprintf(rule, "outer", n) + fmt.Sprintf(rule, "inner", n)
}

const files = 6

// heldOf answers with the locks that a request holds of any file.
func heldOf(c *gin.Context) {
	held := []string{}
	for _, name := range []string{"outer", "inner"} {
		for n := range files {
			if _, ok := core.Held(c.Request.Context(), fmt.Sprintf("%s-%d:%s", name, n, c.Param("id"))); ok {
				held = append(held, fmt.Sprintf("%s-%d", name, n))
			}
		}
	}
	c.String(http.StatusOK, strings.Join(held, " "))
}

// badFile is one that the reader or the guard refuses.
type badFile struct{ text, says string }

func badFiles() []badFile {
	good := twoRules(0)
	return []badFile{
		{good + "  - {http: POST /orders/:id/pya, key: x}\n", "matches no route"},
		{strings.Replace(good, "path.id", "path.di", 1), "there is no path parameter di"},
		{strings.Replace(good, "key: \"", "on_busy: skipp, key: \"", 1), "skipp"},
		{strings.Replace(good, "rules:", "rules: [", 1), "locks.yaml"},
		{strings.Replace(good, "allow_rekey: true\n", "", 1), "allow_rekey"},
		{"", "locks.yaml"},
	}
}

// Rules change under 8 callers: every request is answered, and all of its rules are
// of one file.
func TestReload_UnderConcurrentCallers(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t testing.TB, path, text string){"rename": rulesettest.Replace, "symbolic link": rulesettest.Mount} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, srv := tcp(t)
			file, seen := filepath.Join(t.TempDir(), "locks.yaml"), make(attempts, 1000)
			replace(t, file, twoRules(files-1))
			live, err := ruleset.Watch(file, ruleset.WithReloadObserver(func(r ruleset.Reload) { seen <- r }))
			must(t, err)
			defer live.Close()
			s.engine.Use(s.guard.Middleware(live))
			s.engine.POST(payPath, heldOf)
			s.check(t)

			c := startCallers(srv.URL)
			for n := range files {
				replace(t, file, twoRules(n))
				must(t, seen.of(t, twoRules(n)))
				bad := badFiles()[n%len(badFiles())]
				text := fmt.Sprintf("%s# after %d\n", bad.text, n)
				replace(t, file, text)
				wantText(t, seen.of(t, text), bad.says)
			}
			for n := range 100 { // faster than they are loaded
				replace(t, file, twoRules(n%files))
			}
			last := twoRules(3) + "# the last\n"
			replace(t, file, last)
			must(t, seen.of(t, last))
			c.stop(t)

			want(t, "in the end", c.once(t, "1"), "outer-3 inner-3")
			for _, text := range []string{"disabled: true\n" + twoRules(3), "dry_run: true\n" + twoRules(3)} {
				replace(t, file, text)
				must(t, seen.of(t, text))
				want(t, text, c.once(t, "1"), "")
			}
		})
	}
}

// callers are 8 clients that go on until they are stopped.
type callers struct {
	url    string
	client *http.Client
	end    atomic.Bool
	wg     sync.WaitGroup

	mu      sync.Mutex
	answers map[string]int
}

func startCallers(url string) *callers {
	const count = 8
	c := &callers{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: count}}, answers: map[string]int{}}
	for i := range count {
		c.wg.Go(func() {
			for !c.end.Load() {
				answer := c.call(fmt.Sprint(i / 2)) // two of them meet
				c.mu.Lock()
				c.answers[answer]++
				c.mu.Unlock()
			}
		})
	}
	return c
}

// call is the answer, or what went wrong.
func (c *callers) call(id string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.url+"/orders/"+id+"/pay", nil)
	if err != nil {
		return err.Error()
	}
	res, err := c.client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Sprintf("%d %s %v", res.StatusCode, body, err)
	}
	return string(body)
}

// stop ends the callers and judges what they were answered.
func (c *callers) stop(t testing.TB) {
	t.Helper()
	c.end.Store(true)
	c.wg.Wait()
	good := map[string]bool{}
	for n := range files {
		good[fmt.Sprintf("outer-%d inner-%d", n, n)] = true
	}
	for answer, count := range c.answers {
		if !good[answer] {
			t.Errorf("%d requests were answered with %q", count, answer)
		}
	}
	if len(c.answers) < files/2 {
		t.Errorf("requests saw %d files only: the test shows little", len(c.answers))
	}
}

// once is the answer to one more request, after which nothing is left open.
func (c *callers) once(t testing.TB, id string) string {
	t.Helper()
	defer c.client.CloseIdleConnections()
	return c.call(id)
}
