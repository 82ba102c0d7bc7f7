package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress tells a terminal how far a list of locks is. Elsewhere it says nothing.
type progress struct {
	to           io.Writer // nil: not a terminal
	looked, keys int64
	told         time.Time
}

// tellEvery is how often it tells.
const tellEvery = 200 * time.Millisecond

// newProgress tells a standard stream that is a terminal.
func newProgress(to io.Writer) *progress {
	if shown, is := to.(visible); is {
		to = shown.Writer // which gets more than visible characters from here
	}
	file, is := to.(interface{ Stat() (os.FileInfo, error) })
	if !is {
		return &progress{}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{to: to, told: time.Now()}
}

// add counts the keys of a page.
func (p *progress) add(looked, keys int64) {
	p.looked, p.keys = p.looked+looked, keys
	if p.to != nil && time.Since(p.told) >= tellEvery {
		p.told = time.Now()
		fmt.Fprintf(p.to, "\r\x1b[K%d of %d keys", p.looked, p.keys)
	}
}

// clear makes room on the line, before the table goes on and in the end.
func (p *progress) clear() {
	if p.to != nil {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
