package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// BenchmarkReplicas measures the cost of acknowledgements with two replicas on the same machine: an uncontended
// acquisition and release, many of them on as many keys, and a turn of contending callers of one client, without
// hand-offs.
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
