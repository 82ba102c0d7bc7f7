package core

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

// identity is who a client is in Redis: its id, and the numbers behind it that its holders
// have used.
type identity struct {
	id     string
	fields atomic.Int64
}

// firstField is the number before the first field of a client. No thread of Java has one as
// high: so the fields of this library differ from those of others.
const firstField = 1 << 40

// rivalOf says who the holder is that a field names.
func rivalOf(field string) queue.Rival {
	_, number, found := strings.Cut(field, ":")
	number = strings.TrimSuffix(number, ":write") // of a writer
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case !found:
		return queue.Unseen
	case err == nil && n > firstField:
		return queue.Fellow
	default:
		return queue.Stranger
	}
}

// newID is a random UUID (version 4), as Redisson's client id.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// nextField makes a holder field that was never used: a command of an earlier
// acquisition that lands late cannot be taken for one of this. Holds that pass the lock on in memory
// share a field: lease.Pass refuses while a command of an earlier one may land late.
func (i *identity) nextField(kind *redisstore.Kind) string {
	if kind.Holds != redisstore.Reentrant {
		var id [16]byte
		_, _ = rand.Read(id[:])
		return hex.EncodeToString(id[:])
	}
	var buf [64]byte
	field := append(append(buf[:0], i.id...), ':')
	field = strconv.AppendInt(field, firstField+i.fields.Add(1), 10)
	return string(append(field, kind.Suffix...))
}
