// Package identity generates the id of a client and the fields of its holders in Redis, and classifies the fields of
// other clients. It depends on the kinds of locks, but not on the use of fields. Packages core and acquire use it.
//
// A process that is restored from a snapshot of a running machine has the memory of every other process that is restored
// from it, and so the id of its client. The fields of such processes differ because each field is drawn when it is
// needed, from crypto/rand and the clock. A generator in the memory of the process would be restored, too. The kernel's
// generator is restored with a virtual machine, and draws the same bytes until the kernel notices. The clock differs then.
package identity

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// ID is the id of a client, which is the first part of the fields of its holders.
type ID string

// MaxThread is the largest number that counts as the id of a Java thread. The number in a field of Redisson is such an
// id. The numbers in the fields of this library are larger.
const MaxThread = 1 << 40

// RivalOf returns the kind of client that a field belongs to.
func RivalOf(field string) queue.Rival {
	_, number, found := strings.Cut(field, ":")
	number = strings.TrimSuffix(number, ":write") // the suffix of a writer
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case !found:
		return queue.Unseen
	case err == nil && n > MaxThread:
		return queue.Fellow
	default:
		return queue.Stranger
	}
}

// NewID returns a random UUID (version 4), like the client ids of Redisson.
func NewID() ID {
	b := draw()
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return ID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// NextField draws a field, so that a late command of an earlier acquisition has no effect on this one. Holds that pass the
// lock on in memory share a field; lease.Pass refuses while a command of an earlier hold may be executed late.
func (id ID) NextField(kind *redisstore.Kind) string {
	drawn := draw()
	if kind.Holds != redisstore.Reentrant {
		return hex.EncodeToString(drawn[:])
	}
	const least = 1 << 62 // the number is a positive long, which has 19 digits
	var buf [64]byte
	field := append(append(buf[:0], id...), ':')
	field = strconv.AppendUint(field, least|binary.BigEndian.Uint64(drawn[8:])&(least-1), 10)
	return string(append(field, kind.Suffix...))
}

// draw returns random bytes, the last eight of them mixed with the time.
func draw() (b [16]byte) {
	_, _ = rand.Read(b[:])
	mixed := binary.BigEndian.Uint64(b[8:]) ^ uint64(time.Now().UnixNano())
	binary.BigEndian.PutUint64(b[8:], mixed)
	return b
}
