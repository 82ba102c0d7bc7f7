package mempipe_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/mempipe"
)

func TestConn_WriteDoesNotWait(t *testing.T) {
	t.Parallel()
	a, b := mempipe.New()
	for _, p := range []string{"one", "two"} {
		if n, err := a.Write([]byte(p)); n != 3 || err != nil {
			t.Fatalf("Write: got %d, %v", n, err)
		}
	}
	_ = a.Close()
	if got, err := io.ReadAll(b); string(got) != "onetwo" || err != nil {
		t.Errorf("ReadAll: got %q, %v, want all written bytes, then the end", got, err)
	}
}

func TestConn_Closed(t *testing.T) {
	t.Parallel()
	a, b := mempipe.New()
	_ = a.Close()
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of the closed end: got %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write to the closed end: got %v", err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write to the other end: got %v", err)
	}
	if _, err := b.(syscall.Conn).SyscallConn(); !errors.Is(err, io.EOF) {
		t.Errorf("SyscallConn of the other end: got %v, want EOF", err)
	}
}

func TestConn_CloseWakesReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := mempipe.New()
		time.AfterFunc(time.Second, func() { _ = a.Close() })
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want closed", err)
		}
	})
}

func TestConn_ReadDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := mempipe.New()
		start := time.Now()
		_ = a.SetReadDeadline(start.Add(time.Hour))
		time.AfterFunc(time.Second, func() { _ = a.SetReadDeadline(start.Add(2 * time.Second)) })
		_, err := a.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %s, want a timeout after 2s", err, time.Since(start))
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("net does not take %v for a timeout", err)
		}
		_ = a.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { _, _ = b.Write([]byte("x")) })
		if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("without a deadline: got %d, %v", n, err)
		}
	})
}
