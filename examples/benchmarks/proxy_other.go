//go:build !linux

package main

import (
	"errors"
	"time"
)

// startProxy returns an error, because the proxy uses epoll and the timers of Linux.
func startProxy(string, time.Duration) (addr string, stop func() punctuality, err error) {
	return "", nil, errors.New("scenarios with a round trip need Linux: omit them with -only")
}
