package core

import (
	"math"
	"strconv"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// mayWait reports whether the caller would join a queue.
func (r *request) mayWait() bool { return r.forever || r.wait > 0 }

// readRequest fills r with what is asked of the lock.
func (l Lock) readRequest(r *request, opts []AcquireOption) error {
	err := l.client.readRequest(r, l.kind, opts)
	if err == nil && r.token {
		err = l.checkToken()
	}
	switch {
	case err != nil:
		return err
	case l.kind.Holds == redisstore.Unheld:
		r.operation = l.demand
	case l.demand != "":
		r.demand = l.demand
		if _, err = strconv.ParseUint(l.demand, 10, 31); err != nil {
			return invalidf("Semaphore(%.40q, %s): want 0 to %d permits", l.name, l.demand, math.MaxInt32)
		}
	}
	return nil
}
