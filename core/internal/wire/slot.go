package wire

import "strings"

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// Slot returns the hash slot of a key (Redis Cluster specification, "Hash tags").
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return int(crc16(key)) % slots
}

// crc16 is CRC-16/XMODEM, the checksum of the Cluster specification.
func crc16(s string) uint16 {
	const polynomial = 0x1021
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
