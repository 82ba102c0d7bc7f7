package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// appendCommand appends a command in the format of the protocol.
func appendCommand(b []byte, args []any) []byte {
	b = appendHead(b, '*', len(args))
	for _, arg := range args {
		b = appendArg(b, arg)
	}
	return b
}

func appendArg(b []byte, arg any) []byte {
	var digits [20]byte
	switch v := arg.(type) {
	case string:
		b = append(appendHead(b, '$', len(v)), v...)
	case int:
		b = appendText(b, strconv.AppendInt(digits[:0], int64(v), 10))
	case int64:
		b = appendText(b, strconv.AppendInt(digits[:0], v, 10))
	case []byte:
		b = appendText(b, v)
	default:
		b = appendText(b, fmt.Append(nil, v))
	}
	return append(b, '\r', '\n')
}

func appendText(b, text []byte) []byte { return append(appendHead(b, '$', len(text)), text...) }

func appendHead(b []byte, kind byte, n int) []byte {
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, '\r', '\n')
}

// errorReply is an error reply of Redis. The predicates of go-redis recognize it by its message.
type errorReply string

func (e errorReply) Error() string { return string(e) }

// RedisError marks errorReply as a [redis.Error].
func (errorReply) RedisError() {}

// ReplyError returns the error for an error reply that a script passed on as a string.
func ReplyError(text string) error { return errorReply(text) }

// errIncomplete means that more bytes are needed.
var errIncomplete = errors.New("incomplete reply")

// errGarbled means that the bytes are not a reply.
var errGarbled = errors.New("this is not RESP2, the protocol of redis")

// Limits of replies. Neither Redis nor a script of this library sends larger ones.
const (
	longestLine = 1 << 20
	longestText = 512 << 20
	deepest     = 32
)

// parser reads a stream of RESP2 replies in pieces of any size. It returns the types of go-redis: int64,
// string, []any, nil, or an error. If OnConnect switched the connection to RESP3, nil and the reply to INFO
// are written as _ and =; all other replies to the commands of this package are the same.
type parser struct {
	open []list // incomplete lists, the outermost first
}

// list is a reply, or a part of a reply, that consists of elements.
type list struct {
	left     int // number of missing elements
	elements []any
}

// next reads the next reply at the front of b and returns how many bytes of b are no longer needed. For an
// incomplete reply it keeps the elements read so far.
func (p *parser) next(b []byte) (reply any, length int, err error) {
	for {
		part, n, nested, err := p.part(b[length:])
		if err != nil {
			return nil, length, err
		}
		length += n
		if nested {
			continue
		}
		if reply, whole := p.add(part); whole {
			return reply, length, nil
		}
	}
}

// replies reads as many replies as there is room for and returns how many bytes of b are no longer needed.
// With an error it also returns the replies before the error.
func (p *parser) replies(b []byte, room []any) (replies []any, length int, err error) {
	for replies = room; len(replies) < cap(replies); {
		reply, n, err := p.next(b[length:])
		length += n
		if err != nil {
			return replies, length, err
		}
		replies = append(replies, reply)
	}
	return replies, length, nil
}

// add adds a part to the innermost list and returns the reply when it is complete.
func (p *parser) add(part any) (reply any, whole bool) {
	for len(p.open) > 0 {
		last := &p.open[len(p.open)-1]
		last.elements = append(last.elements, part)
		if last.left--; last.left > 0 {
			return nil, false
		}
		part = last.elements
		last.elements = nil
		p.open = p.open[:len(p.open)-1]
	}
	return part, true
}

// part reads the part at the front of b. If the part is a list, only its head is read, and nested is true.
func (p *parser) part(b []byte) (part any, length int, nested bool, err error) {
	line, length, err := lineOf(b)
	if err != nil {
		return nil, 0, false, err
	}
	switch b[0] {
	case '+':
		return string(line), length, false, nil
	case '-':
		return errorReply(line), length, false, nil
	case '_':
		return nil, length, false, nil
	}
	n, err := strconv.ParseInt(string(line), 10, 64)
	switch {
	case err != nil:
		return nil, 0, false, fmt.Errorf("%w: reply: %.100q", errGarbled, b[:1+len(line)])
	case b[0] == ':':
		return n, length, false, nil
	case n < -1 || n > longestText:
		return nil, 0, false, fmt.Errorf("%w: a reply of length %d", errGarbled, n)
	}
	switch b[0] {
	case '$', '=':
		text, size, err := textOf(int(n), b[length:])
		return text, length + size, false, err
	case '*':
		part, nested, err = p.begin(int(n))
		return part, length, nested, err
	}
	return nil, 0, false, fmt.Errorf("%w: a reply of type %q", errGarbled, b[0])
}

// begin begins a list of n elements. A list without elements is complete.
func (p *parser) begin(n int) (part any, nested bool, err error) {
	switch {
	case n < 0:
		return nil, false, nil
	case n == 0:
		return []any(nil), false, nil
	case len(p.open) == deepest:
		return nil, false, fmt.Errorf("%w: too many lists in each other", errGarbled)
	}
	p.open = append(p.open, list{left: n})
	return nil, true, nil
}

// lineOf returns the line at the front of b without its type byte, and the length of the whole line.
func lineOf(b []byte) (line []byte, length int, err error) {
	end := bytes.IndexByte(b, '\n')
	switch {
	case end < 0 && len(b) > longestLine:
		return nil, 0, fmt.Errorf("%w: a line without an end", errGarbled)
	case end < 0:
		return nil, 0, errIncomplete
	case end < 2 || b[end-1] != '\r':
		return nil, 0, errGarbled
	}
	return b[1 : end-1], end + 1, nil
}

// textOf returns a string of n bytes at the front of b.
func textOf(n int, b []byte) (text any, length int, err error) {
	switch {
	case n < 0:
		return nil, 0, nil
	case len(b) < n+2:
		return nil, 0, errIncomplete
	case b[n] != '\r' || b[n+1] != '\n':
		return nil, 0, fmt.Errorf("%w: a text without an end", errGarbled)
	}
	return string(b[:n]), n + 2, nil
}

// outcome returns a reply as the value and error of a command.
func outcome(reply any) (any, error) {
	switch v := reply.(type) {
	case nil:
		return nil, redis.Nil
	case errorReply:
		return nil, v
	default:
		return v, nil
	}
}
