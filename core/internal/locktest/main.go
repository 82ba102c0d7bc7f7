package locktest

import (
	"context"
	"flag"
	"log/slog"
	"runtime"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// Main runs the tests of a package and fails if goroutines are left. A package calls it from TestMain.
func Main(m *testing.M) {
	// Both loggers would write lines about injected faults to standard error.
	redis.SetLogger(discard{})
	slog.SetDefault(slog.New(slog.DiscardHandler))
	runMoreInParallel()
	// This goroutine of go-redis checks only once a second whether its client was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// runMoreInParallel runs three parallel tests per processor, because most of the tests wait. The flag -parallel
// overrides it.
func runMoreInParallel() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}

// discard is a logger of go-redis that writes nothing.
type discard struct{}

func (discard) Printf(context.Context, string, ...any) {}
