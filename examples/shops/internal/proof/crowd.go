package proof

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Tally calls fn n times at once, with 0 to n-1, and counts the results.
func Tally[T comparable](n int, fn func(i int) T) map[T]int {
	var all sync.WaitGroup
	results := make(chan T, n)
	for i := range n {
		all.Go(func() { results <- fn(i) })
	}
	all.Wait()
	close(results)
	tally := make(map[T]int)
	for result := range results {
		tally[result]++
	}
	return tally
}

// Post sends JSON to a service without a network and returns the status of the answer.
func Post(ctx context.Context, service http.Handler, path, json string) int {
	return Send(ctx, service, http.MethodPost, path, json).Code
}

// Send is like Post for any method. It returns the whole answer.
func Send(ctx context.Context, service http.Handler, method, path, json string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(json))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	service.ServeHTTP(w, r)
	return w
}
