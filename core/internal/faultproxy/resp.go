package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLength limits one bulk string or aggregate. Redis sends no larger ones.
const maxLength = 512 << 20

var errProtocol = errors.New("faultproxy: not RESP")

type command struct {
	raw  []byte
	args []string
}

// readCommand reads one command, as an array of bulk strings or inline.
func readCommand(r *bufio.Reader) (command, error) {
	for {
		line, err := readLine(r)
		if err != nil {
			return command{}, err
		}
		if line[0] != '*' {
			if args := strings.Fields(string(line)); len(args) > 0 {
				return command{raw: line, args: args}, nil
			}
			continue // Redis also ignores empty lines
		}
		cmd, err := readArguments(r, line)
		if err != nil || len(cmd.args) > 0 {
			return cmd, err
		}
	}
}

func readArguments(r *bufio.Reader, head []byte) (command, error) {
	n, err := length(head)
	if err != nil {
		return command{}, err
	}
	cmd := command{raw: head}
	for range n {
		v, err := readValue(r)
		if err != nil {
			return command{}, err
		}
		if v.kind != '$' {
			return command{}, fmt.Errorf("%w: a command holds %q", errProtocol, v.raw)
		}
		cmd.raw = append(cmd.raw, v.raw...)
		cmd.args = append(cmd.args, v.text)
	}
	return cmd, nil
}

// value is one complete reply or message of a server, with all its elements.
type value struct {
	raw  []byte
	kind byte   // its first byte: '+', '*', '>', …
	text string // the content of a string, or of the first element of an aggregate
}

// readValue reads one value of RESP2 or RESP3. Attributes are part of the value
// that they precede.
func readValue(r *bufio.Reader) (value, error) {
	line, err := readLine(r)
	if err != nil {
		return value{}, err
	}
	v := value{raw: line, kind: line[0]}
	switch v.kind {
	case '+', '-', ':', '_', '#', ',', '(':
		v.text = string(bytes.TrimRight(line[1:], "\r\n"))
		return v, nil
	case '$', '=', '!':
		return readBulk(r, v)
	case '*', '~', '>':
		return readElements(r, v, 1)
	case '%':
		return readElements(r, v, 2)
	case '|':
		return readAttributed(r, v)
	}
	return value{}, fmt.Errorf("%w: %q", errProtocol, line)
}

func readBulk(r *bufio.Reader, v value) (value, error) {
	n, err := length(v.raw)
	if err != nil || n < 0 {
		return v, err
	}
	head := len(v.raw)
	buf := bytes.NewBuffer(v.raw) // grows with the bytes that arrive, not with the announced length
	if _, err := io.CopyN(buf, r, int64(n)+2); err != nil {
		return value{}, err
	}
	v.raw = buf.Bytes()
	v.text = string(v.raw[head : head+n])
	return v, nil
}

func readElements(r *bufio.Reader, v value, per int) (value, error) {
	n, err := length(v.raw)
	if err != nil {
		return value{}, err
	}
	for i := range per * n {
		element, err := readValue(r)
		if err != nil {
			return value{}, err
		}
		if i == 0 {
			v.text = element.text
		}
		v.raw = append(v.raw, element.raw...)
	}
	return v, nil
}

func readAttributed(r *bufio.Reader, attributes value) (value, error) {
	attributes, err := readElements(r, attributes, 2)
	if err != nil {
		return value{}, err
	}
	v, err := readValue(r)
	v.raw = append(attributes.raw, v.raw...)
	return v, err
}

// readLine reads up to and including the line end; the result is never empty.
func readLine(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }

// length reads the number in a line such as "*3\r\n"; -1 is null.
func length(line []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
	if err != nil || n < -1 || n > maxLength {
		return 0, fmt.Errorf("%w: length in %q", errProtocol, line)
	}
	return n, nil
}
