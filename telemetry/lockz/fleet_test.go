package lockz_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

var next = regexp.MustCompile(`href="([^"]+)">Next part`)

// The fleet view lists the locks of all processes, page by page, and can release a lock.
func TestFleet_ListsAndReleases(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("ours"))
		stranger := b.server.Take("shop:theirs", time.Minute)
		for i := range 40 {
			b.server.Take(fmt.Sprintf("shop:many:%d", i), time.Minute)
		}
		seen := map[string]int{}
		parts := 0
		for target := "/?fleet=1&limit=15"; target != ""; parts++ {
			body := b.get(target).Body.String()
			for i := range 40 {
				seen[fmt.Sprintf("many:%d", i)] += strings.Count(body, core.KeyHash(fmt.Sprintf("shop:many:%d", i))+"</bdi>")
			}
			seen["ours"] += strings.Count(body, core.KeyHash("shop:ours")+"</bdi>")
			seen["theirs"] += strings.Count(body, stranger)
			if strings.Contains(body, "shop:") {
				t.Error("a raw key is shown")
			}
			link := next.FindStringSubmatch(body)
			if target = ""; link != nil {
				target = "/" + html.UnescapeString(link[1])
			}
		}
		if len(seen) != 42 || parts < 1 {
			t.Errorf("%d locks in %d parts", len(seen), parts)
		}
		for name, n := range seen {
			if n == 0 {
				t.Errorf("%s is not listed", name)
			}
		}
		if found := b.tickets("/?fleet=1&q=" + core.KeyHash("shop:theirs")); len(found) != 0 {
			t.Errorf("buttons for another user: %d", len(found))
		}
		theirs := b.tickets("/?fleet=1&q="+core.KeyHash("shop:theirs"), "X-Operator", "yes")
		if len(theirs) != 1 {
			t.Fatalf("%d buttons, want 1", len(theirs))
		}
		if w := b.press(theirs[0], "X-Operator", "yes"); w.Code != http.StatusSeeOther {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		_, free := b.take(b.t.Context(), b.locks.Lock("theirs"), core.WaitTime(0))
		b.free(free, hold)
	}, lockz.WithFleet(), lockz.WithAuthorizer(operator))
}

// A lock with more holders than the list shows has no button, because a button takes the lock only from
// displayed holders.
func TestFleet_ButtonOnlyIfAllHoldersAreShown(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		var holds []*core.Hold
		for i := range 11 {
			if i == 10 && len(b.tickets("/?fleet=1", "X-Operator", "yes")) != 1 {
				b.t.Error("no button for ten holders")
			}
			_, hold := b.take(b.t.Context(), b.locks.ReadLock("a"))
			holds = append(holds, hold)
		}
		if found := b.tickets("/?fleet=1", "X-Operator", "yes"); len(found) != 0 {
			b.t.Errorf("%d buttons for eleven holders, want none", len(found))
		}
		b.free(holds...)
	}, lockz.WithFleet(), lockz.WithAuthorizer(operator))
}

// JSON has the holders and whether they belong to this process.
func TestFleet_JSON(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.FencedLock("ours"))
		b.server.Take("shop:theirs", time.Minute)
		var list lockz.Fleet
		if err := json.Unmarshal(b.get("/?fleet=1&format=json").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Locks) != 2 || list.Client != b.locks.ID() || list.Cursor != "" {
			t.Fatalf("got %+v", list)
		}
		for _, l := range list.Locks {
			ours := l.Key == "shop:ours"
			if len(l.Holders) != 1 || l.Holders[0].Here != ours || ours && (l.Token != hold.Token() || l.Holders[0].Field != hold.Field()) {
				t.Errorf("got %+v", l)
			}
		}
		b.free(hold)
	}, lockz.WithFleet(), lockz.WithRawKeys())
}

// The view reports an invalid cursor, an unknown client and a Redis that does not answer, as a page and as
// JSON.
func TestFleet_Failures(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		for target, want := range map[string]int{
			"/?fleet=1&cursor=nonsense": http.StatusBadRequest,
			"/?fleet=1&client=unknown":  http.StatusNotFound,
		} {
			if w := b.get(target); w.Code != want {
				t.Errorf("%s: got %d, want %d", target, w.Code, want)
			}
			w := b.get(target + "&format=json")
			var answer struct{ Title, Detail string }
			if err := json.Unmarshal(w.Body.Bytes(), &answer); w.Code != want || err != nil || answer.Title == "" || answer.Detail == "" {
				t.Errorf("%s: got %d %s, want %d with a title and a detail", target, w.Code, w.Body, want)
			}
		}
		b.server.Down()
		if w := b.get("/?fleet=1"); w.Code != http.StatusBadGateway {
			t.Errorf("without Redis: got %d, want 502", w.Code)
		}
		b.server.Up()
	}, lockz.WithFleet())
}

// The view reveals nothing about hidden keys: it refuses a prefix, does not search in keys, and sorts by
// hashes.
func TestFleet_HiddenKeys(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		var hashes []string
		for i := range 10 {
			b.server.Take(fmt.Sprintf("shop:secret:%d", i), time.Minute)
			hashes = append(hashes, core.KeyHash(fmt.Sprintf("shop:secret:%d", i)))
		}
		for _, format := range []string{"", "&format=json"} {
			right, wrong := b.get("/?fleet=1&prefix=shop:s"+format), b.get("/?fleet=1&prefix=shop:x"+format)
			if right.Code != http.StatusForbidden || wrong.Code != http.StatusForbidden {
				b.t.Errorf("%q: a right prefix got %d, a wrong one %d, want 403 for both", format, right.Code, wrong.Code)
			}
			if a, z := right.Body.String(), wrong.Body.String(); a != z {
				b.t.Errorf("%q: the answers differ", format)
			}
		}
		if body := b.get("/?fleet=1").Body.String(); strings.Contains(body, `name="prefix"`) {
			b.t.Error("the page offers a filter that it refuses")
		}
		var list lockz.Fleet
		if err := json.Unmarshal(b.get("/?fleet=1&format=json").Body.Bytes(), &list); err != nil {
			b.t.Fatal(err)
		}
		slices.Sort(hashes)
		for i, l := range list.Locks {
			if l.KeyHash != hashes[i] {
				b.t.Errorf("lock %d is %s, want them in the order of their hashes", i, l.KeyHash)
			}
		}
		for query, want := range map[string]int{"secret": 0, hashes[3]: 1} {
			if err := json.Unmarshal(b.get("/?fleet=1&format=json&q="+query).Body.Bytes(), &list); err != nil || len(list.Locks) != want {
				b.t.Errorf("a search for %s found %d, %v, want %d", query, len(list.Locks), err, want)
			}
		}
	}, lockz.WithFleet())
}
