package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// appendCommand appends a command as clients send it.
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

// errorReply is an error that Redis has answered; the predicates of go-redis know it by
// its text.
type errorReply string

func (e errorReply) Error() string { return string(e) }

// RedisError makes it a redis.Error.
func (errorReply) RedisError() {}

// errIncomplete says that more bytes are needed.
var errIncomplete = errors.New("incomplete reply")

// errGarbled says that what came is no reply.
var errGarbled = errors.New("this is not the protocol of redis")

// pushed is what Redis sends without being asked.
type pushed struct{}

// parseReply reads the reply at the front of b, and returns how long it is. Replies are
// what go-redis makes of them: int64, string, []any, nil, or an error.
func parseReply(b []byte) (reply any, length int, err error) {
	end := bytes.IndexByte(b, '\n')
	switch {
	case end < 0:
		return nil, 0, errIncomplete
	case end < 2 || b[end-1] != '\r':
		return nil, 0, errGarbled
	}
	line, length := b[1:end-1], end+1
	switch b[0] {
	case '+', ',', '(':
		return string(line), length, nil
	case '-':
		return errorReply(line), length, nil
	case '_':
		return nil, length, nil
	case '#':
		return string(line) == "t", length, nil
	}
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errGarbled, err)
	}
	if b[0] == ':' {
		return n, length, nil
	}
	reply, size, err := parseBody(b[0], int(n), b[length:])
	return reply, length + size, err
}

// parseBody reads what follows the line that gives its kind and length.
func parseBody(kind byte, n int, b []byte) (reply any, length int, err error) {
	switch kind {
	case '$', '=', '!':
		switch {
		case n < 0:
			return nil, 0, nil
		case len(b) < n+2:
			return nil, 0, errIncomplete
		case kind == '!':
			return errorReply(b[:n]), n + 2, nil
		}
		return string(b[:n]), n + 2, nil
	case '%', '|':
		n *= 2
		fallthrough
	case '*', '~', '>':
		return parseElements(kind, n, b)
	}
	return nil, 0, fmt.Errorf("%w: a reply of type %q", errGarbled, kind)
}

func parseElements(kind byte, n int, b []byte) (reply any, length int, err error) {
	if n < 0 {
		return nil, 0, nil
	}
	var elements []any
	for range n {
		element, size, err := parseReply(b[length:])
		if err != nil {
			return nil, 0, err
		}
		elements, length = append(elements, element), length+size
	}
	if kind == '>' || kind == '|' {
		return pushed{}, length, nil
	}
	return elements, length, nil
}

// outcome is a reply as the value and error of a command.
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
