package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// roundTrips are the distances of Redis. 0 is the loopback.
var roundTrips = []time.Duration{0, 500 * time.Microsecond, time.Millisecond, 5 * time.Millisecond}

// network is a Redis at several distances.
type network struct {
	addrs map[time.Duration]string
	stops []func() punctuality
}

// openNetwork starts a proxy for each round trip except 0, which is the server itself.
func openNetwork(server string, distances []time.Duration) (*network, error) {
	n := &network{addrs: map[time.Duration]string{0: server}}
	for _, roundTrip := range distances {
		if n.addrs[roundTrip] != "" {
			continue
		}
		addr, stop, err := startProxy(server, roundTrip)
		if err != nil {
			n.close()
			return nil, err
		}
		n.addrs[roundTrip] = addr
		n.stops = append(n.stops, stop)
	}
	return n, nil
}

// serveProxy runs a proxy for another program until the standard input is closed.
func serveProxy(server string, roundTrip time.Duration) error {
	addr, stop, err := startProxy(server, roundTrip)
	if err != nil {
		return err
	}
	fmt.Println(addr)
	_, err = io.Copy(io.Discard, os.Stdin)
	fmt.Fprintln(os.Stderr, stop())
	return err
}

// close closes the proxies and returns their common punctuality.
func (n *network) close() punctuality {
	var all punctuality
	for _, stop := range n.stops {
		one := stop()
		all.parcels += one.parcels
		all.late += one.late
	}
	n.stops = nil
	return all
}

// punctuality counts the parcels that went through a proxy, and those that left it more than 0.1 ms late because
// the machine had no free core.
type punctuality struct{ parcels, late int }

func (p *punctuality) add(delay time.Duration) {
	p.parcels++
	if delay > 100*time.Microsecond {
		p.late++
	}
}

func (p punctuality) String() string {
	onTime := 100 * float64(p.parcels-p.late) / float64(p.parcels)
	return fmt.Sprintf("Of %d parcels of bytes %.2f %% left the proxy at most 0.1 ms late.", p.parcels, onTime)
}

// describeRoundTrips returns a sentence with the measured round trips.
func (n *network) describeRoundTrips(ctx context.Context) (string, error) {
	var text strings.Builder
	for _, roundTrip := range slices.Sorted(maps.Keys(n.addrs)) {
		took, err := pingTime(ctx, n.addrs[roundTrip])
		if err != nil {
			return "", err
		}
		if roundTrip == 0 {
			fmt.Fprintf(&text, "Round trip of a PING in ms, median: %.3f on loopback", took)
			continue
		}
		fmt.Fprintf(&text, ", %.3f with %g added", took, ms(roundTrip))
	}
	return text.String() + ".\n", nil
}

// pingTime returns the median time of 100 PINGs in milliseconds.
func pingTime(ctx context.Context, addr string) (float64, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil { // connects
		return 0, err
	}
	times := make([]float64, 100)
	for i := range times {
		start := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return 0, err
		}
		times[i] = ms(time.Since(start))
	}
	return median(times), nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
