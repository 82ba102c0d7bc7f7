package wire_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/mempipe"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// encrypted makes a client speak TLS.
func encrypted(t *testing.T) func(o *redis.Options) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"redis"}}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	server := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	client := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} // created above
	return func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			behind, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			near, far := mempipe.New()
			terminate(tls.Server(far, server), behind)
			return tls.Client(near, client), nil
		}
	}
}

// terminate copies bytes between a and b until one of them ends.
func terminate(a, b net.Conn) {
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		a.Close()
		b.Close()
	}
	go carry(a, b)
	go carry(b, a)
}

// Lone callers read with a deadline. If a reply takes longer, the deadline passes, and the connection stays
// in use. That is true for every kind of connection.
func TestPipeline_Receiving_Deadlines(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T) func(o *redis.Options){
		"plain": func(*testing.T) func(o *redis.Options) { return func(*redis.Options) {} },
		"TLS":   encrypted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				proxy, through := faultproxy.Around(t, redistest.New(t).Client(), change(t))
				d, rdb := countDials(t, through)
				b := storeOf(t, rdb)
				defer b.Close()
				lateReplies(t, proxy, b)
				if n := d.made.Load(); n > 2 { // one for pings
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

// A connection to a socket file works like any other.
func TestPipeline_SocketFile(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, redisserver.Start(t).Addr())
	path := filepath.Join(t.TempDir(), "redis.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Listen(listener)
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: path})
	t.Cleanup(func() { _ = rdb.Close() })
	lateReplies(t, proxy, newBench(t, rdb))
}

// lateReplies delays replies beyond the read deadline, for a lone caller and for several callers.
func lateReplies(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
	t.Helper()
	b.acquire(key, alice)
	for round := range 6 {
		for range 10 { // enough to be lonely
			reply(b, b.look(time.Now(), key))
		}
		proxy.DelayReply(faultproxy.Once(scriptCommand), 20*time.Millisecond)
		var all sync.WaitGroup
		for range 1 + round%3 {
			all.Go(func() { reply(b, b.look(time.Now(), key)) })
		}
		all.Wait()
	}
}

// If a server restarts or changes its password, calls fail for a while and then succeed again.
func TestLines_ServerChanges(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	direct := server.Client()
	b := newBench(t, server.Client())
	b.acquire(key, alice)
	server.Restart()
	answeredAgain(t, b, "after the restart")
	if err := direct.ConfigSet(t.Context(), "requirepass", "changed").Err(); err != nil {
		t.Fatal(err)
	}
	changed := server.Client(func(o *redis.Options) { o.Password = "changed" })
	b.acquire("with the old password", alice) // on an existing connection
	if err := changed.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	refused := func() bool {
		call := b.look(time.Now(), key)
		_, _, err := call.Wait(context.Background(), soon())
		return redis.HasErrorPrefix(err, "NOAUTH") || redis.IsAuthError(err)
	}
	_ = refused() // the call may already have been sent
	if !refused() {
		t.Error("not refused")
	}
	if err := changed.ConfigSet(t.Context(), "requirepass", "").Err(); err != nil {
		t.Fatal(err)
	}
	answeredAgain(t, b, "after the password")
}

// answeredAgain requires that a call succeeds within a few attempts.
func answeredAgain(t *testing.T, b *bench, when string) {
	t.Helper()
	var err error
	for range 100 {
		call := b.look(time.Now(), key)
		if _, _, err = call.Wait(context.Background(), soon()); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond) // the pause between two attempts
	}
	t.Errorf("%s: %v", when, err)
}
