package keyexpr

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode"
	"unicode/utf8"
)

// hashMark separates the head of a shortened key from its hash. An encoded value never contains
// it, because two hexadecimal digits follow each percent sign of the encoding. checkLiteral
// refuses it in literal text.
const hashMark = "%~"

// hashDigits is the number of hexadecimal digits in the hash, which has 128 bits.
const hashDigits = 32

const upperHex = "0123456789ABCDEF"

// needsEncoding reports whether a character of a value is encoded. The delimiter that ends the
// value is encoded, and so are the characters that have a meaning in keys. The colon is encoded
// in every value; otherwise the value 42:refund would make a key of order:#{id}:refund out of
// order:#{id}. Text that another template has between its colons is not encoded; see the package
// comment. A byte that is not UTF-8 has size 1 and the rune utf8.RuneError.
func needsEncoding(r rune, size int, delimiter rune) bool {
	switch {
	case r == delimiter, r == ':', r == '%', r == '{', r == '}':
		return true
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case r == utf8.RuneError:
		return size == 1
	}
	return !unicode.IsPrint(r)
}

// appendEncoded appends the encoded value to dst. clean is true if no character had to be
// encoded.
func appendEncoded(dst []byte, value string, delimiter rune) (out []byte, clean bool) {
	plain := 0
	for i := 0; i < len(value); {
		r, size := rune(value[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(value[i:])
		}
		if needsEncoding(r, size, delimiter) {
			dst = append(dst, value[plain:i]...)
			dst = appendPercent(dst, value[i:i+size])
			plain = i + size
		}
		i += size
	}
	return append(dst, value[plain:]...), plain == 0
}

func appendPercent(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, '%', upperHex[s[i]>>4], upperHex[s[i]&15])
	}
	return dst
}

// shorten keeps the head of an overlong key and replaces its tail by a hash of the whole key.
func shorten(key []byte, limit int) []byte {
	sum := sha256.Sum256(key)
	head := limit - len(hashMark) - hashDigits
	for head > 0 && !utf8.RuneStart(key[head]) {
		head--
	}
	out := append(make([]byte, 0, limit), key[:head]...)
	out = append(out, hashMark...)
	return hex.AppendEncode(out, sum[:hashDigits/2])
}
