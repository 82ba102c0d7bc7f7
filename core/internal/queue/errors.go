package queue

import "errors"

// ErrFull says that as many wait as may.
var ErrFull = errors.New("queue: too many waiters")

// KindError says that a key is in use in this process as another kind of lock.
type KindError struct {
	Key  string
	Kind string // as which it is in use
}

func (e *KindError) Error() string { return "queue: " + e.Key + " is in use as " + e.Kind }
