package main

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	url := "redis://" + srv.Addr()
	got := interlock(t, url+"\n", "doctor", "--redis", "-", "--prefix", "shop:", "--kinds", "reentrant,fenced")
	if got.code != exitFine || !strings.Contains(got.stdout, "works   fenced: release\n") || strings.Contains(got.stdout, "FAILS") || got.stderr != "" {
		t.Errorf("a server: got %s", got)
	}
	if err := srv.Client().ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err(); err != nil {
		t.Fatal(err)
	}
	got = interlock(t, "", "doctor", "--redis", url)
	if got.code != exitProblems || !strings.Contains(got.stdout, "-> CONFIG SET maxmemory-policy noeviction") {
		t.Errorf("an evicting server: got %s", got)
	}
	got = interlock(t, "", "doctor", "--redis", url, "--kinds", "fairy")
	if got.code != exitCannot || !strings.Contains(got.stderr, "write one of reentrant, fenced") {
		t.Errorf("an unknown kind: got %s", got)
	}
	got = interlock(t, "", "doctor", "--redis", "redis://shop:secret@127.0.0.1:1")
	if got.code != exitProblems || !strings.Contains(got.stdout, "FAILS   answer") || strings.Contains(got.stdout, "secret") {
		t.Errorf("no server: got %s", got)
	}
}
