package main

import (
	"unicode/utf8"

	"github.com/interlock-go/interlock/core"
)

// jsonLock is a lock as programs get it. Times are in milliseconds; one that has no end is null.
type jsonLock struct {
	Key         string       `json:"key"`
	Bytes       []byte       `json:"key_base64,omitempty"` // of a key that is no text: JSON has none other
	Kind        string       `json:"kind"`                 // empty: no lock, or nothing
	LeftMS      *int64       `json:"lease_left_ms"`
	Holders     []jsonHolder `json:"holders"`
	HolderCount int          `json:"holder_count"`
	Waiters     []string     `json:"waiters"`
	WaiterCount int          `json:"waiter_count"`
	Token       int64        `json:"token,omitempty"`
	Available   *int64       `json:"available,omitempty"` // of a number
}

// jsonHolder is one who has a lock.
type jsonHolder struct {
	Field    string `json:"field"`
	ClientID string `json:"client_id,omitempty"`
	Count    int64  `json:"count"`
	LeftMS   *int64 `json:"lease_left_ms"`

	Addresses []string `json:"addresses,omitempty"` // where the client is, if that is known
}

// jsonOf is an entry as programs get it.
func jsonOf(e core.LockEntry) jsonLock {
	l := jsonLock{
		Key: e.Key, Kind: string(e.Kind), LeftMS: ms(e.TTL.Milliseconds()), Holders: []jsonHolder{}, HolderCount: e.HolderCount,
		Waiters: append([]string{}, e.Waiters...), WaiterCount: e.WaiterCount, Token: e.Token,
	}
	if !utf8.ValidString(e.Key) {
		l.Bytes = []byte(e.Key)
	}
	for _, h := range e.Holders {
		l.Holders = append(l.Holders, jsonHolder{Field: h.Field, ClientID: h.ClientID(), Count: h.Count, LeftMS: ms(h.TTL.Milliseconds())})
	}
	if e.Kind == core.KindSemaphore || e.Kind == core.KindPlainSemaphore {
		l.Available = &e.Available
	}
	return l
}

func ms(left int64) *int64 {
	if left < 0 {
		return nil
	}
	return &left
}
