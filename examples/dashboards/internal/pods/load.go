package pods

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
)

// client is the HTTP client of the customers. The metrics show the answers that they get.
type client struct {
	http  *http.Client
	conns []*grpc.ClientConn
}

func newCaller() *client {
	return &client{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}}
}

func (c *client) dial(p *pod) error {
	conn, err := grpc.NewClient(p.rpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	c.conns = append(c.conns, conn)
	return err
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *client) post(ctx context.Context, addr, path, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, res.Body) //nolint:errcheck // read only to reuse the connection
	_ = res.Body.Close()
}

// crowd is a number of customers of each pod that send the same request, with a pause after each call.
type crowd struct {
	customers int
	pause     time.Duration
	call      func(ctx context.Context, pod, n int)
}

func (s *Shop) crowds() []crowd {
	web := func(path string) func(context.Context, int, int) {
		return func(ctx context.Context, pod, _ int) {
			s.client.post(ctx, s.pods[pod].webAddr, path, "{}")
		}
	}
	return []crowd{
		{30, 100 * time.Millisecond, web("/items/teapot/buy")},
		{3, 100 * time.Millisecond, func(ctx context.Context, pod, _ int) {
			shop := shoppb.NewShopClient(s.client.conns[pod])
			_, _ = shop.Buy(ctx, &shoppb.BuyRequest{Item: "teapot"}) //nolint:errcheck // the metrics show refusals
		}},
		{1, 500 * time.Millisecond, func(ctx context.Context, pod, _ int) {
			s.client.post(ctx, s.pods[pod].webAddr, "/items/"+countedItem(pod)+"/count", "{}")
		}},
		{1, 500 * time.Millisecond, web("/exports")},
		{1, 100 * time.Millisecond, func(ctx context.Context, pod, _ int) {
			s.client.post(ctx, s.pods[pod].webAddr, fmt.Sprintf("/reports/%d", pod), "{}")
		}},
		{2, 300 * time.Millisecond, web("/coupons/spring")},
		{1, 500 * time.Millisecond, func(ctx context.Context, pod, _ int) {
			s.client.post(ctx, s.pods[pod].webAddr, fmt.Sprintf("/transfers/alice-%d/bob-%d", pod, pod), "{}")
		}},
		{2, 200 * time.Millisecond, func(ctx context.Context, pod, n int) {
			body := fmt.Sprintf(`{"order": "%d-%d"}`, pod, n)
			if n%10 == 0 {
				body = `{}`
			}
			s.client.post(ctx, s.pods[pod].webAddr, "/orders", body)
		}},
		{2, 200 * time.Millisecond, web("/baskets/7")},
	}
}

// countedItem returns the item whose stock a pod counts for hours.
func countedItem(pod int) string { return fmt.Sprintf("cellar-%d", pod+1) }

// Load simulates customers that call the pods until ctx is done. It returns after the last call.
func (s *Shop) Load(ctx context.Context) {
	var running sync.WaitGroup
	for pod := range s.pods {
		for _, c := range s.crowds() {
			for range c.customers {
				running.Go(func() {
					for n := 0; pause(ctx, c.pause) == nil; n++ {
						c.call(ctx, pod, n)
					}
				})
			}
		}
	}
	running.Wait()
}
