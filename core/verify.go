package core

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// inquiry is whether Redis is being asked for an owner that is in doubt. One question
// is on its way at a time; what raises doubts meanwhile leads to one more after it.
//
//	quiet ─ doubt ─▶ inquiring ─ doubt ─▶ inquireAgain
//	  ▲               │     ▲                  │
//	  └── answered ───┘     └───── answered ───┘
type inquiry uint8

const (
	quiet inquiry = iota
	inquiring
	inquireAgain
)

// questionPause is the time between two questions about one owner.
const questionPause = 20 * time.Millisecond

// verify asks Redis, in the background, whether o is still the holder.
func (c *Client) verify(o *owner) {
	if o != nil && o.doubt() {
		c.spawn(o.askUntilSure)
	}
}

// doubt notes that the ownership is in doubt. first says that nobody asks yet.
func (o *owner) doubt() (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first = o.inquiry == quiet
	if first {
		o.inquiry = inquiring
	} else {
		o.inquiry = inquireAgain
	}
	return first
}

// askUntilSure asks until no doubt has come since the last question was sent, or the
// ownership is over.
func (o *owner) askUntilSure(ctx context.Context) {
	for {
		if pause := o.askNotBefore - time.Since(o.client.start); pause > 0 && o.client.sleep(ctx, pause) != nil {
			return
		}
		o.askNotBefore = time.Since(o.client.start) + questionPause
		o.setInquiry(inquiring)
		if !o.over() {
			o.ask(ctx)
		}
		if o.sure() {
			return
		}
	}
}

func (o *owner) setInquiry(q inquiry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inquiry = q
}

// sure ends the asking, unless doubts have come meanwhile.
func (o *owner) sure() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.inquiry == inquireAgain && o.phase == held {
		return false
	}
	o.inquiry = quiet
	return true
}

// ask asks once.
func (o *owner) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, o.client.renewTimeout())
	defer cancel()
	v := o.client.store.Renew(ctx, []redisstore.Claim{o.claim()}, 0)[0]
	if v.Err == nil && !v.Held && !errors.Is(ctx.Err(), context.Canceled) {
		o.lose(errNotMine)
	}
}
