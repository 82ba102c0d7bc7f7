package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The text of an error may contain a key, whose words do not come from Redis.
func TestPreflight_Advice(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // is not dialed
	t.Cleanup(func() { _ = rdb.Close() })
	locks, err := New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	p := preflight{client: locks}
	for text, want := range map[string]string{
		`core: lock "room:removed:readonly" not acquired after 8s`:                         "",
		"core: redis unavailable: OOM command not allowed when used memory > 'maxmemory'.": "raise maxmemory",
		"core: redis unavailable: READONLY You can't write against a read only replica.":   "address of the master",
		"NOPERM No permissions to access a key":                                            "ACL SETUSER default",
		"NOPERM this user has no permissions to run the 'ping' command":                    "ACL SETUSER default",
	} {
		if got := p.advice(errors.New(text)); !strings.Contains(got, want) || want == "" && got != "" { //nolint:err113 // a text
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
