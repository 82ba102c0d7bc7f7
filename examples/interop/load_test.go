package interop_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// load is a number of callers that take turns as fast as they can, each in a separate loop. Load.java does the
// same in Java.
type load struct {
	Kind    string
	Key     string // prefix of its keys
	Keys    int    // keys that each caller cycles through
	Callers int    // in one process
	Parties int    // in all of them
	Permits int    // of a semaphore
	From    int64  // Unix time in ms
	To      int64
}

// tally is the result of a load in a process.
type tally struct {
	Turns int64
	Waits map[int64]int64 // µs → how often
	Err   string          `json:",omitempty"`
}

func (t *tally) add(other tally) {
	t.Turns += other.Turns
	for wait, n := range other.Waits {
		t.Waits[wait] += n
	}
}

// loader is a process that executes loads.
type loader interface {
	start(l load) (finish func() tally)
}

// javaLoader is a process of Java, with a client for each server.
type javaLoader struct {
	tb      testing.TB
	thread  *interop.Thread
	clients []string
}

func newJavaLoader(tb testing.TB, classPath string, addrs []string) loader {
	tb.Helper()
	jvm, j := interop.StartFastJVM(tb, classPath), javaLoader{tb: tb}
	for _, addr := range addrs {
		client := jvm.Open(tb, interop.Config{Mode: single, Addrs: []string{addr}, Usual: true})
		j.thread, j.clients = client.Thread(tb), append(j.clients, client.Name())
	}
	return j
}

func (j javaLoader) start(l load) func() tally {
	call := j.thread.Start("load", interop.Args{
		"client": interop.List(j.clients...), "kind": interop.Text(l.Kind), "key": interop.Text(l.Key),
		"keys": strconv.Itoa(l.Keys), "callers": strconv.Itoa(l.Callers), "parties": strconv.Itoa(l.Parties),
		"permits": strconv.Itoa(l.Permits), "from": strconv.FormatInt(l.From, 10), "to": strconv.FormatInt(l.To, 10),
	})
	return func() (t tally) {
		if err := json.Unmarshal([]byte(call.OK().Value), &t); err != nil {
			j.tb.Fatal(err)
		}
		return t
	}
}

// goLoader is a process of this test binary: see executeLoads.
type goLoader struct {
	tb  testing.TB
	in  *json.Encoder
	out *json.Decoder
}

// loaderEnv makes this test binary a process that executes loads on the given servers.
const loaderEnv = "INTERLOCK_INTEROP_LOADER"

func newGoLoader(tb testing.TB, addrs []string) loader {
	tb.Helper()
	self, err := os.Executable()
	must(tb, err)
	cmd := exec.CommandContext(tb.Context(), self)
	cmd.Env = append(os.Environ(), loaderEnv+"="+strings.Join(addrs, ","))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(tb, err)
	out, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = in.Close() // the process exits when its input is closed
		_ = cmd.Wait()
	})
	return goLoader{tb: tb, in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

func (g goLoader) start(l load) func() tally {
	must(g.tb, g.in.Encode(l))
	return func() (t tally) {
		if err := g.out.Decode(&t); err != nil || t.Err != "" {
			g.tb.Fatalf("Go: %s: %v %s", l.Kind, err, t.Err)
		}
		return t
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// executeLoads is the main function of a process that executes the loads of its input.
func executeLoads(in io.Reader, out io.Writer) error {
	var locks []*core.Client
	for addr := range strings.SplitSeq(os.Getenv(loaderEnv), ",") {
		c, err := core.New(redis.NewClient(&redis.Options{Addr: addr}))
		if err != nil {
			return err
		}
		locks = append(locks, c)
	}
	from, to := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var l load
		if err := from.Decode(&l); err != nil {
			return fmt.Errorf("no more loads: %w", err)
		}
		t, err := l.carryOut(context.Background(), locks)
		if err != nil {
			t.Err = err.Error()
		}
		if err := to.Encode(t); err != nil {
			return err
		}
	}
}

func (l load) carryOut(ctx context.Context, locks []*core.Client) (tally, error) {
	all, errs := make([]loadCaller, l.Callers), make([]error, l.Callers)
	for i := range all {
		turns, err := l.turns(ctx, locks, i)
		if err != nil {
			return tally{}, err
		}
		all[i].cycle = turns
	}
	time.Sleep(time.Until(time.UnixMilli(l.From))) // all processes start at the same time
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { errs[i] = all[i].run(ctx, time.UnixMilli(l.To)) })
	}
	wg.Wait()
	sum := tally{Waits: make(map[int64]int64)}
	for _, c := range all {
		sum.Turns += c.turns
		for _, wait := range c.waits {
			sum.Waits[rounded(wait)]++
		}
	}
	return sum, errors.Join(errs...)
}

// rounded returns microseconds with three significant digits.
func rounded(wait time.Duration) int64 {
	digits, scale := wait.Microseconds(), int64(1)
	for ; digits >= 1000; digits /= 10 {
		scale *= 10
	}
	return digits * scale
}

// loadCaller runs a caller. Its last turn starts after the end and is not counted; other callers may need it to
// finish their turns. A turn that ends after the end is not counted either, but its wait is.
type loadCaller struct {
	cycle []loadTurn
	waits []time.Duration
	turns int64
}

func (c *loadCaller) run(ctx context.Context, to time.Time) error {
	for n := 0; ; n++ {
		next, asked := c.cycle[n%len(c.cycle)], time.Now()
		if err := next.acquire(ctx); err != nil {
			return err
		}
		had := time.Now()
		if err := next.release(ctx); err != nil || asked.After(to) {
			return err
		}
		c.waits = append(c.waits, had.Sub(asked))
		if !time.Now().After(to) {
			c.turns++
		}
	}
}
