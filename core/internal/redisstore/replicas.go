package redisstore

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// replicas are how many a master had at most, as far as this client has seen. That one is
// not there any more never lowers the number: it may be the one that becomes master, and
// what it lacks would be forgotten. In a Cluster it is kept for slots, which have another
// master after a failover.
type replicas struct{ most []atomic.Int32 }

func newReplicas(n int) *replicas { return &replicas{most: make([]atomic.Int32, n)} }

// raise takes in how many there are, and gives the most that there were.
func (r *replicas) raise(slot, now int) int {
	most := &r.most[slot%len(r.most)]
	for {
		before := most.Load()
		if int(before) >= now {
			return int(before)
		}
		if most.CompareAndSwap(before, int32(now)) {
			return now
		}
	}
}

// lookEvery is how old the number of replicas gets that a node is believed to have. It is
// asked for behind a call then, without a round trip of its own.
const lookEvery = time.Second

// sight is how many replicas a node had when it was last asked.
type sight struct {
	begun time.Time
	last  atomic.Int64 // number + 1; 0: nobody has asked
	most  atomic.Int64
	at    atomic.Int64 // since begun
}

// note takes in what the node has said.
func (s *sight) note(info string) {
	n := int64(replicasIn(info))
	s.at.Store(int64(time.Since(s.begun)))
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.last.Store(n + 1)
}

// known reports whether the node has been asked.
func (s *sight) known() bool { return s.last.Load() > 0 }

// now is what it has said last; -1: nothing.
func (s *sight) now() int { return int(s.last.Load()) - 1 }

// old reports whether it should be asked again, and counts as asked from now on.
func (s *sight) old() bool {
	now, at := int64(time.Since(s.begun)), s.at.Load()
	return now-at >= int64(lookEvery) && s.at.CompareAndSwap(at, now)
}

// forget has the node asked again.
func (s *sight) forget() { s.at.Store(-int64(lookEvery)) }

// replicasIn counts the replicas in the answer to INFO replication: those that are being
// synchronised, too. One that has connected anew may be there twice, and counts once, if its
// old connection has said nothing for more than a second; behind an address translation
// several may look like one, and each of them speaks every second.
func replicasIn(info string) (n int) {
	type address struct{ ip, port string }
	speaking := make(map[address]int)
	for line := range strings.Lines(info) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if number, is := strings.CutPrefix(name, "slave"); !ok || !is || !consists(number, digits) {
			continue
		}
		fields := make(map[string]string)
		for pair := range strings.SplitSeq(values, ",") {
			key, value, _ := strings.Cut(pair, "=")
			fields[key] = value
		}
		at := address{fields["ip"], fields["port"]}
		lag, err := strconv.Atoi(fields["lag"])
		if fields["state"] == "online" && err == nil && lag <= 1 {
			speaking[at]++
		} else if speaking[at] == 0 {
			speaking[at] = 0
		}
	}
	for _, lines := range speaking {
		n += max(lines, 1)
	}
	return n
}
