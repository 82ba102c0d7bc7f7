package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// BenchmarkReplicas is what acknowledgements cost with two replicas on the same machine: of an
// acquisition and release that nobody disturbs, of many on as many keys, and of a turn where
// the callers of one client contend for one key, which is not handed on then.
func BenchmarkReplicas(b *testing.B) {
	for _, mode := range []struct {
		name string
		acks core.Acks
	}{{"none", core.AcksNone}, {"majority", core.AcksMajority}, {"all", core.AcksAll}} {
		locks, err := core.New(redisserver.StartReplicated(b, 2).Master.Client(), core.WithReplicaAcks(mode.acks, time.Second))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = locks.Close(context.Background()) })
		do := func(b *testing.B, name string) {
			b.Helper()
			if err := locks.Lock(name).Do(context.Background(), func(context.Context) error { return nil }); err != nil {
				b.Error(err)
			}
		}
		b.Run("alone/"+mode.name, func(b *testing.B) {
			for b.Loop() {
				do(b, "k")
			}
		})
		b.Run("keys/"+mode.name, func(b *testing.B) {
			b.SetParallelism(4)
			b.RunParallel(func(p *testing.PB) {
				name := "k" + time.Now().String()
				for p.Next() {
					do(b, name)
				}
			})
		})
		b.Run("contended/"+mode.name, func(b *testing.B) {
			b.SetParallelism(8)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					do(b, "k")
				}
			})
		})
	}
}
