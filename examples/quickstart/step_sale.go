package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	pieces    = 100
	customers = 500
	rush      = 800 * time.Millisecond // all customers come within this time
)

// sellWithoutLock switches the locks of every instance off and sells.
func sellWithoutLock(ctx context.Context, d *demo) (string, error) {
	for _, i := range d.instances() {
		i.aspect.Suspend()
	}
	defer d.resume()
	s, err := d.sell(ctx, "teapot")
	if err == nil && s.sold <= pieces {
		err = errors.New("nothing was oversold: the shop does not need the lock")
	}
	return fmt.Sprintf("%d sold, %d too many", s.sold, s.sold-pieces), err
}

func (d *demo) resume() {
	for _, i := range d.instances() {
		i.aspect.Resume()
	}
}

// sellWithLock sells with the lock.
func sellWithLock(ctx context.Context, d *demo) (string, error) {
	s, err := d.sell(ctx, "teapot")
	if err == nil && (s.sold != pieces || s.left != 0) {
		err = fmt.Errorf("sold %d and %d left, want %d and 0", s.sold, s.left, pieces)
	}
	return fmt.Sprintf("%d sold, %d left", s.sold, s.left), err
}

// sale is the result for all customers.
type sale struct {
	sold, soldOut, left int
	took                time.Duration
}

// sell sends all customers within the rush, each to one of the four instances.
func (d *demo) sell(ctx context.Context, item string) (sale, error) {
	if err := d.stock.Write(ctx, item, pieces); err != nil {
		return sale{}, err
	}
	began := time.Now()
	s, err := d.serveAll(d.sendCustomers(ctx, item))
	s.took = time.Since(began)
	if err != nil {
		return s, err
	}
	if s.left, err = d.stock.Read(ctx, item); err != nil {
		return s, err
	}
	d.out.linef("%d sold, %d answered that it is sold out, %d left in the stock, %d ms", s.sold, s.soldOut, s.left, s.took.Milliseconds())
	return s, nil
}

type purchase struct {
	outcome outcome
	err     error
}

func (d *demo) sendCustomers(ctx context.Context, item string) <-chan purchase {
	purchases := make(chan purchase, customers)
	instances := d.instances()
	for n := range customers {
		go func() {
			time.Sleep(rand.N(rush))
			outcome, err := instances[n%len(instances)].buy(ctx, item)
			purchases <- purchase{outcome, err}
		}()
	}
	return purchases
}

// serveAll counts the purchases.
func (d *demo) serveAll(purchases <-chan purchase) (s sale, err error) {
	d.out.write(indent)
	for n := range customers {
		p := <-purchases
		switch p.outcome {
		case sold:
			s.sold++
		case soldOut:
			s.soldOut++
		default:
			err = p.err
		}
		if n%10 == 0 {
			d.out.dot()
		}
	}
	d.out.write("\n")
	return s, err
}
