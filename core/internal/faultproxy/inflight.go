package faultproxy

import (
	"slices"
	"strings"
	"sync"
)

// sentCommand is a command under way until all its replies have arrived.
type sentCommand struct {
	name    string // lower case
	replies int    // 1, or one per channel of a (un)subscription
	rule    *Rule  // applies to the first reply; may be nil
}

// inflight matches the replies on one connection to its commands. Replies come in the order of the
// commands; messages come at any time.
type inflight struct {
	mu         sync.Mutex
	queue      []sentCommand
	channels   map[string]map[string]bool // the channels, by type of subscription
	subscribed bool                       // the connection had a subscription at least once
	last       bool                       // the last command was sent
	drained    chan struct{}              // closed when last and the queue is empty
}

func newInflight() *inflight {
	return &inflight{channels: make(map[string]map[string]bool), drained: make(chan struct{})}
}

// recordCommand records a command that is about to be written.
func (f *inflight) recordCommand(args []string, rule *Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := sentCommand{name: strings.ToLower(args[0]), replies: 1, rule: rule}
	switch e.name {
	case "subscribe", "psubscribe", "ssubscribe":
		e.replies = f.subscribe(e.name, args[1:])
	case "unsubscribe", "punsubscribe", "sunsubscribe":
		e.replies = f.unsubscribe(strings.Replace(e.name, "un", "", 1), args[1:])
	}
	f.queue = append(f.queue, e)
}

func (f *inflight) subscribe(kind string, names []string) (replies int) {
	f.subscribed = true
	if f.channels[kind] == nil {
		f.channels[kind] = make(map[string]bool)
	}
	for _, name := range names {
		f.channels[kind][name] = true
	}
	return max(1, len(names)) // without names: an error
}

func (f *inflight) unsubscribe(kind string, names []string) (replies int) {
	if len(names) == 0 {
		replies = max(1, len(f.channels[kind]))
		clear(f.channels[kind])
		return replies
	}
	for _, name := range names {
		delete(f.channels[kind], name)
	}
	return len(names)
}

// matchReply matches a value, if it is a reply, to the oldest command and returns the rule
// for it.
func (f *inflight) matchReply(v value) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 || !f.isReply(v) {
		return nil
	}
	head := &f.queue[0]
	rule := head.rule
	head.rule = nil
	head.replies--
	if head.replies <= 0 || v.kind == '-' {
		f.queue = slices.Delete(f.queue, 0, 1)
	}
	return rule
}

// recordDelivery records that the client got every reply so far. The connection may only be closed after
// that.
func (f *inflight) recordDelivery() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkDrained()
}

// isReply distinguishes replies from messages. In RESP3 a push is a reply only if it confirms the
// subscription or unsubscription that is due. In RESP2 messages are arrays like any other, but only
// subscribers get them.
func (f *inflight) isReply(v value) bool {
	kind := strings.ToLower(v.text)
	switch {
	case v.kind == '>':
		return kind == f.queue[0].name
	case v.kind != '*' || !f.subscribed:
		return true
	case kind == "message" || kind == "pmessage" || kind == "smessage":
		return false
	case kind == "sunsubscribe": // also unrequested, when a slot moves away
		return kind == f.queue[0].name
	}
	return true
}

// finish records that no more commands will come.
func (f *inflight) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = true
	f.checkDrained()
}

func (f *inflight) checkDrained() {
	if f.last && len(f.queue) == 0 {
		close(f.drained)
		f.last = false // once
	}
}
