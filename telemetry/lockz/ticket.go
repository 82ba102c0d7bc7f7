package lockz

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ticketLasts is for how long a button of the page can be pressed.
const ticketLasts = 15 * time.Minute

// ticket is what a button of the page releases: a key, from the holders that the operator has seen.
type ticket struct {
	Client string      `json:"c"` // through which it is released
	Key    []byte      `json:"k"` // not a string, which JSON would make UTF-8
	Fields [][]byte    `json:"f"`
	Since  []time.Time `json:"h"` // when the holders acquired it, in the order of Fields; zero: not known here
	Cookie string      `json:"s"` // of the browser that it was shown to
	Made   time.Time   `json:"t"`
}

// tickets seals them: a page that shows no key hides it in its buttons too, and who has not
// been shown the page has none.
type tickets struct{ seal cipher.AEAD }

func newTickets() (*tickets, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cipher of tickets: %w", err)
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("cipher of tickets: %w", err)
	}
	return &tickets{seal}, nil
}

func (s *tickets) issue(t ticket) (string, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("ticket: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, plain, nil)), nil //nolint:gosec // the cipher makes a nonce by itself
}

var errTicket = errors.New("this button is too old, or not of this process: load the page again")

func (s *tickets) open(sealed string, now time.Time) (ticket, error) {
	var t ticket
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return t, errTicket
	}
	plain, err := s.seal.Open(nil, nil, raw, nil)
	if err != nil {
		return t, errTicket
	}
	if err := json.Unmarshal(plain, &t); err != nil || now.Sub(t.Made) > ticketLasts {
		return t, errTicket
	}
	return t, nil
}
