package wire

import (
	"strings"
	"testing"
)

func TestAcks_Among(t *testing.T) {
	t.Parallel()
	for replicas, want := range map[int]struct{ majority, all int }{0: {0, 0}, 1: {1, 1}, 2: {1, 2}, 3: {2, 3}, 4: {2, 4}, 5: {3, 5}} {
		if got := MajorityAcks.among(replicas); got != want.majority {
			t.Errorf("a majority with %d replicas is %d, want %d", replicas, got, want.majority)
		}
		if got := AllAcks.among(replicas); got != want.all {
			t.Errorf("all of %d replicas are %d", replicas, got)
		}
		if got := Acks(2).among(replicas); got != 2 {
			t.Errorf("2 of %d replicas are %d", replicas, got)
		}
	}
}

func TestReplicasIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		want  int
	}{
		"none":                   {nil, 0},
		"two":                    {[]string{"ip=10.0.0.1,port=6379,state=online,offset=1,lag=0", "ip=10.0.0.2,port=6379,state=online,offset=1,lag=1"}, 2},
		"one is mute":            {[]string{"ip=10.0.0.1,port=6379,state=online,offset=1,lag=0", "ip=10.0.0.2,port=6379,state=online,offset=1,lag=40"}, 2},
		"one in synchronisation": {[]string{"ip=10.0.0.1,port=6379,state=wait_bgsave,offset=0,lag=0"}, 1},
		"one connected anew":     {[]string{"ip=10.0.0.1,port=6379,state=online,offset=1,lag=40", "ip=10.0.0.1,port=6379,state=online,offset=1,lag=0"}, 1},
		"two behind one address": {[]string{"ip=10.0.0.1,port=6379,state=online,offset=1,lag=0", "ip=10.0.0.1,port=6379,state=online,offset=1,lag=1"}, 2},
	} {
		info := "# Replication\r\nrole:master\r\nslave_read_only:1\r\n"
		for i, line := range c.lines {
			info += "slave" + string(rune('0'+i)) + ":" + line + "\r\n"
		}
		if got := replicasIn(info + strings.Repeat("x", 3)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A slot keeps the largest number of replicas that any of its masters had.
func TestReplicas_Raise(t *testing.T) {
	t.Parallel()
	r := newReplicas(slots)
	for _, now := range []int{1, 2, 0, 1} {
		r.raise(7, now)
	}
	if got := r.raise(7, 0); got != 2 {
		t.Errorf("the slot had %d, want 2", got)
	}
	if got := r.raise(8, 0); got != 0 {
		t.Errorf("another slot had %d", got)
	}
}
