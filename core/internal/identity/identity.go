// Package identity makes the id of a client and the fields of its holders in Redis, and reads the fields of others. It
// knows kinds of locks, and nothing that is done with a field. Packages core and acquire use it.
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

// Identity is who a client is in Redis: its id, and the numbers after it that its holders have used. It is safe for
// concurrent use.
type Identity struct {
	ID     string
	fields atomic.Int64
}

// FirstField is the number before the first field of a client. The threads of Java have smaller numbers, so the
// fields of this library differ from Redisson's fields.
const FirstField = 1 << 40

// RivalOf returns what kind of client has made a field.
func RivalOf(field string) queue.Rival {
	_, number, found := strings.Cut(field, ":")
	number = strings.TrimSuffix(number, ":write") // of a writer
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

// NewID returns a random UUID (version 4), as the client ids of Redisson are.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NextField returns a field that was never used, so that a late command of an earlier acquisition is not taken for one
// of this. Holds that pass the lock on in memory share a field: lease.Pass refuses while a command of an earlier one
// may be executed late.
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
