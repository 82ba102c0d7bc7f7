package ruleset_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// lines hands on what is written to it.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// A refusal that no observer hears of is logged. It is not parallel: there is one
// default logger.
func TestWatch_RefusalWithoutObserversIsLogged(t *testing.T) { //nolint:paralleltest // see above
	logged, before := make(lines, 10), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	defer slog.SetDefault(before)

	path := fileWith(t, keyed("a"))
	l, err := ruleset.WatchWith(path, quickly())
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	put(t, path, broken)
	select {
	case line := <-logged:
		for _, want := range []string{"level=ERROR", "lock rules refused: the old ones stay in force", path, "kye"} {
			if !strings.Contains(line, want) {
				t.Errorf("got %q, want it to say %q", line, want)
			}
		}
	case <-time.After(20 * time.Second):
		t.Error("nothing was logged")
	}
	wantKey(t, l, "a")
}
