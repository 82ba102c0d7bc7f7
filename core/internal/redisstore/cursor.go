package redisstore

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
)

// cursor is how far a listing is. Masters are told apart by what they say who they are: one that takes over
// for another, or is started anew, is looked at from its beginning, since the numbers of SCAN mean
// something to the server that gave them only.
type cursor struct {
	Done   []string `json:"d,omitempty"` // masters that were looked at
	At     string   `json:"a,omitempty"` // the one that is
	Next   uint64   `json:"n,omitempty"` // of SCAN
	Looked int64    `json:"l,omitempty"` // keys of it, about
}

// ErrCursor says that a cursor was not made by this package.
var ErrCursor = errors.New("no cursor of a listing")

func readCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return c, ErrCursor
	}
	return c, nil
}

// String is the cursor as callers have it.
func (c *cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // it has texts and numbers only
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// forget leaves out masters that are no more.
func (c *cursor) forget(masters []master) {
	there := func(id string) bool {
		return slices.ContainsFunc(masters, func(m master) bool { return m.id == id })
	}
	c.Done = slices.DeleteFunc(c.Done, func(id string) bool { return !there(id) })
	if !there(c.At) {
		c.begin("")
	}
}

func (c *cursor) begin(id string) { c.At, c.Next, c.Looked = id, 0, 0 }

// master is the one to look at; nil: all were.
func (c *cursor) master(masters []master) *master {
	for i := range masters {
		m := &masters[i]
		if c.At == "" && !slices.Contains(c.Done, m.id) {
			c.begin(m.id)
		}
		if c.At != "" && c.At == m.id {
			return m
		}
	}
	return nil
}

// advance notes what a SCAN has said, and gives how many keys were looked at. It does not tell: of a
// master that is done all were.
func (c *cursor) advance(m *master, next uint64, step int) (looked int64) {
	left := max(m.keys-c.Looked, 0)
	if next == 0 {
		c.Done = append(c.Done, m.id)
		c.begin("")
		return left
	}
	looked = min(int64(step), left)
	c.Next, c.Looked = next, c.Looked+looked
	return looked
}
