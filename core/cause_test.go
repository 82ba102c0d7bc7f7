package core_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Why Redis cannot be reached is in the error, whatever the wait: also when go-redis
// is still trying to connect as the time of the caller ends.
func TestErrors_KeepWhyRedisCannotBeReached(t *testing.T) {
	t.Parallel()
	unknownCA := func(t *testing.T) (string, *tls.Config) {
		t.Helper()
		server := httptest.NewTLSServer(nil) // its certificate is nobody's
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "https://"), &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "example.com"}
	}
	// Nobody is given this port, as a free one may be that was closed here.
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
					// A slow machine needs its time for the handshake.
					locks := locktest.NewClient(t, unreachable(t, addr, config, cluster), core.WithBackendTimeout(4*time.Second))
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

// unreachable makes a client whose pool does not begin to dial by itself after too many
// failures, which go on after its end.
func unreachable(t *testing.T, addr string, config *tls.Config, cluster bool) (rdb redis.UniversalClient) {
	t.Helper()
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	rdb = redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config, MaintNotificationsConfig: quiet, PoolSize: 1000})
	if cluster {
		rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, TLSConfig: config, MaintNotificationsConfig: quiet, PoolSize: 1000})
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
