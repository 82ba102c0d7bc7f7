// Package identity generates the id of a client and the fields of its holders in Redis, and classifies the fields of
// other clients. It depends on the kinds of locks, but not on the use of fields. Packages core and acquire use it.
package identity

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Identity identifies a client in Redis: it contains the id of the client and the last number that a field of its
// holders used. It is safe for concurrent use.
type Identity struct {
	ID     string
	fields atomic.Int64
}

// FirstField is one less than the number in the first field of a client. The ids of Java threads are smaller, so the
// numbers distinguish fields of this library from Redisson's fields.
const FirstField = 1 << 40

// RivalOf returns the kind of client that a field belongs to.
func RivalOf(field string) queue.Rival {
	_, number, found := strings.Cut(field, ":")
	number = strings.TrimSuffix(number, ":write") // the suffix of a writer
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case !found:
		return queue.Unseen
	case err == nil && n > FirstField:
		return queue.Fellow
	default:
		return queue.Stranger
	}
}

// NewID returns a random UUID (version 4), like the client ids of Redisson.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NextField returns a field that was never used, so that a late command of an earlier acquisition has no effect on this
// one. Holds that pass the lock on in memory share a field; lease.Pass refuses while a command of an earlier hold may
// be executed late.
func (i *Identity) NextField(kind *redisstore.Kind) string {
	if kind.Holds != redisstore.Reentrant {
		var id [16]byte
		_, _ = rand.Read(id[:])
		return hex.EncodeToString(id[:])
	}
	var buf [64]byte
	field := append(append(buf[:0], i.ID...), ':')
	field = strconv.AppendInt(field, FirstField+i.fields.Add(1), 10)
	return string(append(field, kind.Suffix...))
}
