package main

import (
	"context"
	_ "embed"
	"io"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/declared/orders"
)

// busyMachine is the backend timeout. The default is a second. It is longer here, because the machine of a
// demonstration may be busy.
const busyMachine = 10 * time.Second

//go:embed locks.yaml
var locksYAML string

// demo holds everything that runs: a Redis, the service with its rule file, a client of the
// service, and another program that uses the same locks.
type demo struct {
	out     *printer
	desk    *desk
	file    *ruleFile
	witness *witness
	backend *backend
	redis   *redis.Client // reads the locks directly, like redis-cli
	locks   *core.Client  // the lock client of the service
	other   *core.Client  // another program with the same locks
	service *orders.Service
	client  *client
	traffic *traffic // while the steps run

	closers []func() // called in reverse order
}

// start starts everything. If it fails, it leaves nothing running.
func start(ctx context.Context, redisURL string, out io.Writer) (_ *demo, err error) {
	gin.SetMode(gin.ReleaseMode)
	d := &demo{out: &printer{w: out}, desk: newDesk(), witness: newWitness()}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.file, err = newRuleFile(locksYAML, d.witness.reloads); err != nil {
		return nil, err
	}
	d.onClose(d.file.remove)
	if d.backend, err = openBackend(redisURL); err != nil {
		return nil, err
	}
	d.onClose(d.backend.close)
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// open opens everything that uses the Redis.
func (d *demo) open(ctx context.Context) (err error) {
	d.redis = d.backend.client()
	d.onClose(func() { _ = d.redis.Close() })
	for _, locks := range []**core.Client{&d.locks, &d.other} {
		*locks, err = core.New(d.redis, core.WithPrefix(d.backend.prefix), core.WithBackendTimeout(busyMachine), core.WithObserver(d.witness.observer()))
		if err != nil {
			return err
		}
		d.onClose(func() { closeLocks(*locks) })
	}
	if err := d.other.Ready(ctx); err != nil {
		return err
	}
	if d.service, err = orders.Open(d.config(d.file.path)); err != nil {
		return err
	}
	d.onClose(d.service.Close)
	web, rpc, err := d.service.Start()
	if err != nil {
		return err
	}
	d.client, err = newClient(web, rpc, d.service)
	if err != nil {
		return err
	}
	d.onClose(d.client.close)
	return nil
}

func (d *demo) config(ruleFile string) orders.Config {
	return orders.Config{Locks: d.locks, RuleFile: ruleFile, Work: d.desk.work}
}

func closeLocks(locks *core.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = locks.Close(ctx)
}

func (d *demo) onClose(f func()) { d.closers = append(d.closers, f) }

func (d *demo) close() {
	for len(d.closers) > 0 {
		last := len(d.closers) - 1
		d.closers[last]()
		d.closers = d.closers[:last]
	}
}

// introduce prints the participants.
func (d *demo) introduce() {
	d.out.titlef("A service whose locks are in locks.yaml and orders.proto")
	d.out.linef("gin    %s", d.client.web)
	d.out.linef("grpc   %s", d.client.rpc)
	d.out.linef("rules  %s, a copy of locks.yaml", d.file.path)
	d.out.linef("redis  %s", d.backend.about)
}
