package acquiring_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// The error contains the reason why Redis cannot be reached. This is true for every wait time, even if go-redis is
// still connecting when the wait ends.
func TestErrors_KeepTheCauseOfAnOutage(t *testing.T) {
	t.Parallel()
	unknownCA := func(t *testing.T) (string, *tls.Config) {
		t.Helper()
		server := httptest.NewTLSServer(nil) // no authority has signed its certificate
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "https://"), &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "example.com"}
	}
	// The system does not assign this port to another program, as it could do with a port that was closed here.
	refused := func(*testing.T) (string, *tls.Config) { return "127.0.0.1:1", nil }
	isUnknownCA := func(err error) bool {
		_, ok := errors.AsType[x509.UnknownAuthorityError](err)
		return ok
	}
	isRefused := func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
	waits := map[string][]core.AcquireOption{
		"a long wait": nil, "a short wait": {core.WaitTime(2 * time.Second)}, "one attempt": {core.WaitTime(0)},
	}
	var cases []locktest.Subtest
	for name, tt := range map[string]struct {
		server func(t *testing.T) (string, *tls.Config)
		is     func(error) bool
	}{"unknown CA": {unknownCA, isUnknownCA}, "refused": {refused, isRefused}} {
		for wait, opts := range waits {
			for _, cluster := range []bool{false, true} {
				cases = append(cases, locktest.Subtest{Name: name + ", " + wait + map[bool]string{true: ", cluster"}[cluster], Body: func(t *testing.T) {
					addr, config := tt.server(t)
					// A slow machine needs time for the handshake.
					locks := locktest.NewClient(t, newUnreachable(t, addr, config, cluster), core.WithBackendTimeout(4*time.Second))
					for range 2 {
						err := locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, opts...)
						locktest.WantErr(t, err, core.ErrUnavailable)
						if !tt.is(err) {
							t.Errorf("the cause is not in %v", err)
						}
					}
					if err := locks.Ready(t.Context()); !errors.Is(err, core.ErrUnavailable) || !tt.is(err) {
						t.Errorf("Ready: got %v", err)
					}
				}})
			}
		}
	}
	locktest.Together(t, cases...)
}

// newUnreachable returns a client whose pool never dials in the background after too many failures. Such dials would
// go on after the test.
func newUnreachable(t *testing.T, addr string, config *tls.Config, cluster bool) (rdb redis.UniversalClient) {
	t.Helper()
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	rdb = redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config, MaintNotificationsConfig: quiet, PoolSize: 1000})
	if cluster {
		rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, TLSConfig: config, MaintNotificationsConfig: quiet, PoolSize: 1000})
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Redis quotes the arguments of commands that it does not know. The error then contains the key, and its text for
// logs does not.
func TestErrorText_OfAServerThatQuotesArguments(t *testing.T) {
	t.Parallel()
	const key = "order:secret"
	for name, refuse := range map[string]func(args []string) string{
		"redis 7": func(args []string) string {
			return fmt.Sprintf("ERR unknown command '%s', with args beginning with: '%s' ", args[0], strings.Join(args[1:], "' '"))
		},
		"redis 5": func(args []string) string {
			return fmt.Sprintf("ERR unknown command `%s`, with args beginning with: `%s`, ", args[0], strings.Join(args[1:], "`, `"))
		},
		"double quotes": func(args []string) string { return fmt.Sprintf("ERR what is %q?", args) },
		"a key": func(args []string) string {
			return "NOPERM no access to " + args[len(args)-1] + " or " + strings.Join(args, ",")
		},
		"no code": func(args []string) string { return strings.Join(args, " ") },
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			locks := locktest.NewClient(t, newRefusing(t, refuse))
			_, _, err := locks.Lock(key).Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrUnavailable)
			if !strings.Contains(err.Error(), key) {
				t.Errorf("the error lacks the key: %v", err)
			}
			text := core.ErrorText(err)
			if strings.Contains(text, "order") || strings.Contains(text, "secret") || !strings.HasPrefix(text, core.ErrUnavailable.Error()+": ") {
				t.Errorf("the text for logs is %q", text)
			}
		})
	}
}

// newRefusing returns a client of a server that answers every command with an error.
func newRefusing(t *testing.T, refuse func(args []string) string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:0",
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			near, far := mempipe.New()
			go func() {
				defer far.Close()
				in := bufio.NewReader(far)
				for args, err := readCommand(in); err == nil; args, err = readCommand(in) {
					_, _ = fmt.Fprintf(far, "-%s\r\n", refuse(args))
				}
			}()
			return near, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// readCommand reads one command as clients write it.
func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in)
	args := make([]string, 0, max(n, 0))
	for range n {
		length, err := readLength(in)
		if err != nil {
			return nil, err
		}
		arg := make([]byte, length+2)
		if _, err := io.ReadFull(in, arg); err != nil {
			return nil, err
		}
		args = append(args, string(arg[:length]))
	}
	return args, err
}

func readLength(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
}

func TestErrorText_KeepsWhatHelps(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	foreign := errors.New("order:42 is gone")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{core.ErrLost, "core: lock lost"},
		{fmt.Errorf("%w: order:42: %w", core.ErrUnavailable, refused), "core: redis unavailable: dial tcp: connection refused"},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, x509.UnknownAuthorityError{}), "core: redis unavailable: x509: certificate signed by unknown authority"},
		{fmt.Errorf("order:42: %w", errors.Join(core.ErrClosed, context.Canceled)), "core: client closed: context canceled"},
		{
			&core.NotAcquiredError{Key: "order:42", Waited: time.Second, BlockedBy: "a:1", Cause: context.DeadlineExceeded},
			"core: lock \"" + core.KeyHash("order:42") + "\" not acquired after 1s (held by a:1): context deadline exceeded",
		},
		{
			&core.NotAcquiredError{Key: "order:42", Waited: time.Second, BlockedBy: "mode"},
			"core: lock \"" + core.KeyHash("order:42") + "\" not acquired after 1s (the key belongs to a read/write lock)",
		},
		{
			fmt.Errorf("%w: %w", core.ErrUnavailable, foreign),
			"core: redis unavailable: an error of type *errors.errorString, whose text may name a key",
		},
	} {
		if got := core.ErrorText(tt.err); got != tt.want {
			t.Errorf("%v:\ngot  %s\nwant %s", tt.err, got, tt.want)
		}
	}
}

// ErrLost also matches ErrNotHeld, but its text mentions only the loss.
func TestErrLost_HasNoOtherText(t *testing.T) {
	t.Parallel()
	locktest.WantSame(t, "ErrLost", core.ErrLost.Error(), "core: lock lost")
	for _, err := range []error{core.ErrLost, fmt.Errorf("%w: the lease has expired", core.ErrLost)} {
		if !errors.Is(err, core.ErrLost) || !errors.Is(err, core.ErrNotHeld) {
			t.Errorf("%v does not match both", err)
		}
	}
	if errors.Is(core.ErrNotHeld, core.ErrLost) {
		t.Error("ErrReleased matches ErrLost")
	}
}
