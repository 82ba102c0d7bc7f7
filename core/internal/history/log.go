package history

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
)

// Log writes events, one line each and one write each, so that they survive the death of the process.
// It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// NewLog returns a log that writes to out.
func NewLog(out io.Writer) *Log { return &Log{out: out} }

// Note writes an event. [Log.Err] returns the first error.
func (l *Log) Note(e Event) {
	text, err := json.Marshal(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	if l.err == nil {
		l.err = err
	}
}

// Err returns the first error of a Note.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Read reads the events that a Log wrote. It omits a last line that is incomplete because the process was
// killed.
func Read(in io.Reader) ([]Event, error) {
	var events []Event
	for lines := bufio.NewReader(in); ; {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
}
