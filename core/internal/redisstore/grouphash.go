package redisstore

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
)

// GroupValue returns the field of a value in the hash of a group lock: the 128 bits of the HighwayHash of the encoded
// value, with the key that Redisson uses, in base64.
func GroupValue(encoded []byte) string {
	h := newHighway()
	for ; len(encoded) >= packet; encoded = encoded[packet:] {
		h.update(lanes([packet]byte(encoded)))
	}
	if len(encoded) > 0 {
		h.updateRest(encoded)
	}
	return h.sum()
}

// groupValueLength is the length of the result of [GroupValue]: 16 bytes in base64, without padding.
const groupValueLength = 22

// packet is the number of bytes that one update of a HighwayHash takes.
const packet = 32

// highway is the state of a HighwayHash.
type highway struct{ v0, v1, mul0, mul1 [4]uint64 }

func newHighway() *highway {
	key := [4]uint64{0x9e3779b97f4a7c15, 0xf39cc0605cedc834, 0x1082276bf3a27251, 0xf86c6a11d0c18e95}
	h := &highway{
		mul0: [4]uint64{0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3},
		mul1: [4]uint64{0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377},
	}
	for i, k := range key {
		h.v0[i], h.v1[i] = h.mul0[i]^k, h.mul1[i]^bits.RotateLeft64(k, 32)
	}
	return h
}

// lanes returns the four numbers of a packet.
func lanes(p [packet]byte) (a [4]uint64) {
	for i := range a {
		a[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
	return a
}

func (h *highway) update(a [4]uint64) {
	for i := range a {
		h.v1[i] += h.mul0[i] + a[i]
		h.mul0[i] ^= (h.v1[i] & 0xffffffff) * (h.v0[i] >> 32)
		h.v0[i] += h.mul1[i]
		h.mul1[i] ^= (h.v0[i] & 0xffffffff) * (h.v1[i] >> 32)
	}
	merge(&h.v0, &h.v1)
	merge(&h.v1, &h.v0)
}

// merge adds the bytes of from, in another order, to to.
func merge(to, from *[4]uint64) {
	order := [16]byte{3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7}
	for i := 0; i < len(to); i += 2 {
		var in, out [16]byte
		binary.LittleEndian.PutUint64(in[:8], from[i])
		binary.LittleEndian.PutUint64(in[8:], from[i+1])
		for k, at := range order {
			out[k] = in[at]
		}
		to[i] += binary.LittleEndian.Uint64(out[:8])
		to[i+1] += binary.LittleEndian.Uint64(out[8:])
	}
}

// updateRest takes the last bytes, fewer than a packet.
func (h *highway) updateRest(rest []byte) {
	n := len(rest)
	for i := range h.v0 {
		h.v0[i] += uint64(n)<<32 + uint64(n)
		low, high := uint32(h.v1[i]), uint32(h.v1[i]>>32)
		h.v1[i] = uint64(bits.RotateLeft32(high, n))<<32 | uint64(bits.RotateLeft32(low, n))
	}
	var p [packet]byte
	whole := n &^ 3
	copy(p[:], rest[:whole])
	switch more := n & 3; {
	case n&16 != 0:
		copy(p[28:], rest[n-4:])
	case more > 0:
		p[16], p[17], p[18] = rest[whole], rest[whole+more/2], rest[n-1]
	}
	h.update(lanes(p))
}

// sum ends the hash.
func (h *highway) sum() string {
	const rounds = 6
	for range rounds {
		v := h.v0
		h.update([4]uint64{
			bits.RotateLeft64(v[2], 32), bits.RotateLeft64(v[3], 32), bits.RotateLeft64(v[0], 32), bits.RotateLeft64(v[1], 32),
		})
	}
	var out [16]byte
	binary.BigEndian.PutUint64(out[:8], h.v0[0]+h.mul0[0]+h.v1[2]+h.mul1[2])
	binary.BigEndian.PutUint64(out[8:], h.v0[1]+h.mul0[1]+h.v1[3]+h.mul1[3])
	return base64.RawStdEncoding.EncodeToString(out[:])
}

// KryoString returns a string as the default codec of Redisson, Kryo5Codec, encodes it: the id of the class String, and
// then one of two forms. A text of 2 to 32 ASCII characters is there as it is, and its last byte has the highest bit.
// Every other text is the number of its UTF-16 units plus one, and the units.
func KryoString(text string) []byte {
	const class, shortest, longest, high = 3, 2, 32, 0x80
	units := utf16.Encode([]rune(text))
	out := append(make([]byte, 0, len(text)+4), class)
	ascii := len(units) == len(text) // no unit needs more than one byte
	if ascii && len(text) >= shortest && len(text) <= longest {
		out = append(out, text...)
		out[len(out)-1] |= high
		return out
	}
	if len(units) == 0 {
		return append(out, high|1)
	}
	n := len(units) + 1
	first, n := byte(n&0x3f|high), n>>6
	if n > 0 {
		first |= 0x40
	}
	out = append(out, first)
	if n > 0 {
		out = binary.AppendUvarint(out, uint64(n))
	}
	for _, u := range units {
		switch {
		case u < 0x80:
			out = append(out, byte(u))
		case u < 0x800:
			out = append(out, byte(0xc0|u>>6), byte(high|u&0x3f))
		default:
			out = append(out, byte(0xe0|u>>12), byte(high|u>>6&0x3f), byte(high|u&0x3f))
		}
	}
	return out
}
