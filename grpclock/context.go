package grpclock

import (
	"context"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
)

// Hold gives the lock under which the handler of ctx runs: of several the one taken
// last; of further ones [core.Held] tells. It is nil outside a guard and where the
// handler runs without a lock; Release of nil is [core.ErrNotHeld].
//
// With [ruleset.Fenced], or with Token in a rule, its Token is larger than that of every holder
// before. A store that knows it refuses the write of a holder that was paused beyond its lease:
//
//	db.ExecContext(ctx, `UPDATE orders SET paid = true, token = $1 WHERE id = $2 AND token < $1`, grpclock.Hold(ctx).Token(), id)
//
// Where that changes no row, a later holder has written already.
//
// The handler may release it early, after which its context has ended (see [Caller]),
// refresh it, or hand it over to work that outlives the call. The guard then leaves it
// alone.
func Hold(ctx context.Context) *core.Hold { return methodcall.Hold(ctx) }

// Caller gives the context of the call as it came to the interceptor: what a handler
// goes on with after it released its lock early, when its own context has ended. It
// carries no lock of this guard. Without a lock it is ctx itself.
func Caller(ctx context.Context) context.Context { return methodcall.Caller(ctx) }
