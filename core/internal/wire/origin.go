package wire

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// origin creates the pipelines to one server and decides when a pipeline is too old for new commands.
type origin struct {
	timeout   time.Duration
	maxAge    time.Duration // maximum age of a connection; 0: none
	dialer    *dialer
	health    *health
	era       *atomic.Int64 // see [Redis]
	sentinels *sentinels    // nil: no Sentinel names the master
}

// pipeline returns a new pipeline that starts to connect.
func (o *origin) pipeline(bound int, trip *atomic.Int64, watch func()) *pipeline {
	p := &pipeline{bound: bound, watch: watch, health: o.health}
	p.flow.trip = trip
	p.era.Store(o.era.Load())
	p.connect = func(ctx context.Context) (net.Conn, error) {
		if s := o.sentinels; s != nil {
			p.progress.within(o.dialer.answerTime())
			s.ask(ctx)
			p.progress.none()
		}
		p.era.Store(o.era.Load())
		conn, err := o.dialer.connect(ctx, &p.progress)
		if s := o.sentinels; s != nil && err == nil {
			p.named.Store(s.leadsToMaster(conn))
		}
		return conn, err
	}
	p.start()
	return p
}

// mute returns the error of a new connection without an answer.
func (o *origin) mute() error {
	if o.dialer.opts.TLSConfig != nil {
		return errMuteTLS
	}
	return errMute
}

// old reports whether new commands should take another pipeline: the server is no longer the master, the
// credentials changed, Sentinels have not confirmed the master for a while, or the connection reached the
// age at which the caller's client would replace it.
func (o *origin) old(p *pipeline, now time.Time) bool {
	switch {
	case p.flow.old.Load(), p.era.Load() != o.era.Load():
		return true
	case o.maxAge > 0 && now.Sub(p.born) > o.maxAge:
		return true
	case o.sentinels == nil:
		return false
	default:
		o.sentinels.commandSent(now)
		return o.sentinels.unsure(p.born, now, p.named.Load())
	}
}
