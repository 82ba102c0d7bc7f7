package httpvars_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
)

// hostile writes random JSON documents that different handlers may read differently.
type hostile struct {
	*rand.Rand
	b strings.Builder
}

// document returns a random document of one order, with its id in several places.
func document(r *rand.Rand) string {
	h := &hostile{Rand: r}
	h.order(0)
	switch text := h.b.String(); h.IntN(40) {
	case 0:
		return text[:h.IntN(len(text)+1)]
	case 1:
		return text + pick(h, []string{" ", "{}", "x", "\ufeff", ","})
	case 2:
		at := h.IntN(len(text) + 1)
		return text[:at] + pick(h, []string{"\xff", "\xed\xa0\x80", "\x00", "\ufeff", "\\", `"`, ","}) + text[at:]
	default:
		return text
	}
}

func pick[T any](h *hostile, from []T) T { return from[h.IntN(len(from))] }

// order writes an object with the fields that handlers have.
func (h *hostile) order(depth int) {
	h.object(func(name string) {
		switch name {
		case "order":
			h.nested(depth, func() { h.order(depth + 1) })
		case "lines":
			h.nested(depth, func() { h.list(func() { h.order(depth + 1) }) })
		case "byName":
			h.nested(depth, func() { h.object(func(string) { h.nested(depth, func() { h.order(depth + 1) }) }) })
		case "ids":
			h.nested(depth, func() { h.list(h.scalar) })
		default:
			h.scalar()
		}
	})
}

// nested writes a value with write, or another value.
func (h *hostile) nested(depth int, write func()) {
	if depth > 2 || h.IntN(12) == 0 {
		h.scalar()
		return
	}
	write()
}

func (h *hostile) list(element func()) {
	h.b.WriteByte('[')
	for i := range h.IntN(3) {
		if i > 0 {
			h.b.WriteByte(',')
		}
		element()
	}
	h.b.WriteByte(']')
}

var names = []string{"id", "id", "id", "orderId", "key", "sku", "order", "lines", "byName", "ids", "other", "", "İd", "ß"}

func (h *hostile) object(value func(name string)) {
	h.b.WriteByte('{')
	known := map[string]bool{}
	for i := range h.IntN(6) {
		name := pick(h, names)
		if known[name] && h.IntN(20) > 0 {
			name = fmt.Sprint("n", i)
		}
		known[name] = true
		if i > 0 {
			h.b.WriteByte(',')
		}
		h.b.WriteString(h.quoted(respell(h.Rand, name)))
		h.b.WriteByte(':')
		value(name)
	}
	h.b.WriteByte('}')
}

// respell returns a name, sometimes with the case of some letters changed.
func respell(r *rand.Rand, name string) string {
	if r.IntN(2) == 0 {
		return name
	}
	return strings.Map(func(c rune) rune {
		for range r.IntN(3) {
			c = unicode.SimpleFold(c)
		}
		return c
	}, name)
}

// quoted returns a text in JSON, with some of its characters escaped.
func (h *hostile) quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c < ' ' || c == '"' || c == '\\' || c < 0x10000 && h.IntN(10) == 0:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var scalars = []string{
	`null`, `true`, `false`, `"true"`, `"null"`, `""`, `{}`, `[]`, `"\ud800"`, `"\udc00x"`, `"\ud83d\ude00"`, "\"\xff\"", `"\u0000"`, `"%34%32"`, `"a:b"`,
	`-0`, `-0.0`, `0`, `0.0`, `5.0`, `5e0`, `5E+0`, `50e-1`, `1E2`, `1e400`, `-1e400`, `1e-400`, `1e99999999`, `0.1`, `-7`, `01`, `+1`, `.5`, `1.`, `NaN`, `0x10`,
	`9007199254740993`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775809`, `18446744073709551616`, `123456789012345678901234567890`,
	`"42"`, `42`, `"042"`, `" 42"`, `"42 "`, `"4２"`, `"-0"`, `"5.0"`, `"5e0"`, `"1E2"`, `"9007199254740993"`, `{"id":42}`, `[42]`,
}

func (h *hostile) scalar() {
	switch h.IntN(4) {
	case 0:
		fmt.Fprint(&h.b, h.IntN(60))
	case 1:
		h.b.WriteString(h.quoted(fmt.Sprint(h.IntN(60))))
	default:
		h.b.WriteString(pick(h, scalars))
	}
}

// respelledDocument returns a document with the same values under respelled names.
func respelledDocument(r *rand.Rand, text string) (string, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	h := &hostile{Rand: r}
	if !h.copyValue(d) || d.More() {
		return "", false
	}
	return h.b.String(), true
}

func (h *hostile) copyValue(d *json.Decoder) bool {
	token, err := d.Token()
	if err != nil {
		return false
	}
	delimiter, nested := token.(json.Delim)
	if !nested {
		encoded, err := json.Marshal(token)
		h.b.Write(encoded)
		return err == nil
	}
	h.b.WriteString(delimiter.String())
	for i := 0; d.More(); i++ {
		if i > 0 {
			h.b.WriteByte(',')
		}
		if delimiter == '{' {
			token, err = d.Token()
			name, isName := token.(string)
			if err != nil || !isName {
				return false
			}
			h.b.WriteString(h.quoted(respell(h.Rand, name)) + ":")
		}
		if !h.copyValue(d) {
			return false
		}
	}
	token, err = d.Token()
	if err != nil {
		return false
	}
	h.b.WriteString(fmt.Sprint(token))
	return true
}
