package keyexpr

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// piece is literal text or a part of a template.
type piece struct {
	literal   string
	program   *program // nil for literal text
	delimiter rune     // the character that ends the part's values, or 0
	list      bool
	offset    int // in the template, for messages
}

// appendPart appends the encoded value of a part that is no list.
func (t *Template) appendPart(dst []byte, p *piece, env Env, m *meter) ([]byte, *EvalError) {
	if plain := p.program.plain; plain != nil {
		text, ok, failure := plain.string(env)
		if failure != nil {
			return dst, failure
		}
		if ok {
			if len(text) > longText && !m.payText(env, text, partByte) {
				return dst, tooCostly(p.program.source)
			}
			return t.appendText(dst, p, text)
		}
	}
	v, failure := p.program.run(env, m)
	if failure != nil {
		return dst, failure
	}
	if len(asText(v)) > longText && !m.payText(env, v, partByte) {
		return dst, tooCostly(p.program.source)
	}
	return t.appendValue(dst, p, v)
}

// appendValue appends the encoded text of a value. The text is the value's whole
// identity: 42 and "42" are the same, wherever they come from.
func (t *Template) appendValue(dst []byte, p *piece, v any) ([]byte, *EvalError) {
	switch x := v.(type) {
	case string:
		return t.appendText(dst, p, x)
	case int:
		if x < 0 && p.delimiter == '-' {
			return t.appendText(dst, p, strconv.Itoa(x))
		}
		return strconv.AppendInt(dst, int64(x), 10), nil
	case bool:
		return t.appendText(dst, p, strconv.FormatBool(x))
	case uint64:
		return strconv.AppendUint(dst, x, 10), nil
	case json.Number:
		return t.appendText(dst, p, x.String())
	case nil:
		return dst, failed(ReasonMissing, p.program.source, "has no value")
	}
	return dst, failed(ReasonWrongType, p.program.source, "is "+describe(v)+"; a key part is a string, a bool, an integer or an enum"+hintFor(p, v))
}

func hintFor(p *piece, v any) string {
	if _, isList := v.([]any); isList && !p.list {
		return "; write " + p.program.source + "[:] for one key per element"
	}
	return ""
}

func (t *Template) appendText(dst []byte, p *piece, text string) ([]byte, *EvalError) {
	if text == "" {
		return dst, failed(ReasonEmpty, p.program.source, "is empty")
	}
	if strings.TrimSpace(text) != text {
		return dst, failed(ReasonCharacter, p.program.source, "begins or ends with white space; write trim(…) where it does not count")
	}
	out, clean := appendEncoded(dst, text, p.delimiter)
	if !clean && t.config.strict {
		return dst, failed(ReasonCharacter, p.program.source, p.strictDetail())
	}
	return out, nil
}

func (p *piece) strictDetail() string {
	detail := "holds a character that the strict key format does not encode: a colon, %, a brace, one that is not printable"
	if p.delimiter != 0 && p.delimiter != ':' {
		detail += fmt.Sprintf(", or the delimiter %q", p.delimiter)
	}
	return detail
}

// elements returns what a list part yields.
func (p *piece) elements(env Env, m *meter) ([]any, *EvalError) {
	v, failure := p.program.run(env, m)
	if failure != nil {
		return nil, failure
	}
	list, ok := v.([]any)
	switch {
	case v == nil:
		return nil, failed(ReasonMissing, p.program.source, "has no value")
	case !ok:
		return nil, failed(ReasonWrongType, p.program.source, "is "+describe(v)+", not a list")
	}
	if len(list) == 0 {
		return nil, failed(ReasonEmpty, p.program.source, "has no elements")
	}
	for _, element := range list {
		if !m.spend(env, elementPrice) || !m.payText(env, element, elementByte) {
			return nil, tooCostly(p.program.source)
		}
	}
	return list, nil
}
