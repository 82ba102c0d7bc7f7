package redistest

import (
	"crypto/fips140"
	"crypto/sha1" // Redis names scripts by this digest
	"encoding/hex"
	"strings"
)

// scripts holds the digests of the scripts that the server has. The proxy calls the methods one at a
// time.
type scripts struct{ digests map[string]bool }

// note records the scripts that a command loads. It is used as a match that accepts no command.
func (s *scripts) note(cmd []string) bool {
	switch name := strings.ToLower(cmd[0]); {
	case name == "eval" && len(cmd) > 1:
		s.add(cmd[1])
	case name == "script" && len(cmd) > 2 && strings.EqualFold(cmd[1], "load"):
		s.add(cmd[2])
	case name == "script" && len(cmd) > 1 && strings.EqualFold(cmd[1], "flush"):
		clear(s.digests)
	}
	return false
}

func (s *scripts) add(source string) {
	if s.digests == nil {
		s.digests = make(map[string]bool)
	}
	var sum [sha1.Size]byte
	fips140.WithoutEnforcement(func() { sum = sha1.Sum([]byte(source)) })
	s.digests[hex.EncodeToString(sum[:])] = true
}

// executable reports whether a command would do more than answer NOSCRIPT.
func (s *scripts) executable(cmd []string) bool {
	return !strings.EqualFold(cmd[0], "evalsha") || len(cmd) > 1 && s.digests[strings.ToLower(cmd[1])]
}
