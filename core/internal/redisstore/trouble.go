package redisstore

import (
	"errors"
	"strings"
	"sync/atomic"
)

// trouble is why a node could not be reached when it was last asked beside its calls. A
// call whose time ends while go-redis is still trying to connect knows nothing of it:
// go-redis says so when it has given up, long after that.
type trouble struct{ last atomic.Pointer[error] }

// note keeps what became of a ping. That it had no answer explains nothing.
func (t *trouble) note(err error) {
	switch {
	case err == nil:
		t.last.Store(nil)
	case !errors.Is(err, errNoPong) && !errors.Is(err, errNoConnection):
		t.last.Store(&err)
	}
}

// explain adds why to an error that says only that there was no answer.
func (t *trouble) explain(err error) error {
	if err == nil || t == nil || fateOf(err) == Answered {
		return err
	}
	why := t.last.Load()
	if why == nil || errors.Is(err, *why) || strings.Contains(err.Error(), (*why).Error()) {
		return err
	}
	return &explainedError{err, ": ", *why}
}

// explainedError is an error of a call with the trouble of its node, or with the error of an
// earlier call. Only err says what became of the call and what its answer means.
type explainedError struct {
	err     error
	between string
	why     error
}

// AfterEarlier adds to an error the error of an earlier attempt at the same operation.
func AfterEarlier(err, earlier error) error {
	return &explainedError{err, "; before that: ", earlier}
}

func (e *explainedError) Error() string   { return e.err.Error() + e.between + e.why.Error() }
func (e *explainedError) Unwrap() []error { return []error{e.err, e.why} }
