package main

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// echo starts a server that returns the bytes it gets, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	return listener.Addr().String()
}

func through(t *testing.T, roundTrip time.Duration) func() net.Conn {
	t.Helper()
	addr, stop, err := startProxy(echo(t), roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	return func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

func TestProxy_MinimumDelay(t *testing.T) {
	t.Parallel()
	for _, roundTrip := range []time.Duration{500 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
		conn := through(t, roundTrip)()
		answer := make([]byte, 4)
		for range 20 {
			start := time.Now()
			if _, err := conn.Write([]byte("ping")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, answer); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took < roundTrip || string(answer) != "ping" {
				t.Errorf("%q after %s, want \"ping\" after at least %s", answer, took, roundTrip)
			}
		}
	}
}

// More data than all buffers can take must not be lost, reordered or blocked. The sender sends everything, closes its
// direction, and only then reads.
func TestProxy_KeepsOrderAndBytes(t *testing.T) {
	t.Parallel()
	dial := through(t, time.Millisecond)
	var senders sync.WaitGroup
	for range 4 {
		conn := dial().(*net.TCPConn)
		senders.Go(func() {
			sent := make([]byte, 4<<20)
			_, _ = rand.Read(sent)
			if _, err := conn.Write(sent); err != nil {
				t.Error(err)
			}
			if err := conn.CloseWrite(); err != nil {
				t.Error(err)
			}
			got, err := io.ReadAll(conn)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back, %v: want the %d that were sent", len(got), err, len(sent))
			}
		})
	}
	senders.Wait()
}

func TestProxy_ForwardsTheEnd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	addr, stop, err := startProxy(listener.Addr().String(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	near, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := far.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // by the contract of io.Reader
		t.Errorf("after the client closed: %d bytes, %v, want the end", n, err)
	}
	if counts := stop(); counts.parcels != 1 {
		t.Errorf("%d parcels went through, want only the end", counts.parcels)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("still listening when stopped")
	}
}

// A client that sends without end and never reads disconnects. Its pending data, and data that the server could not
// send, must not affect other connections.
func TestProxy_SurvivesABrokenConnection(t *testing.T) {
	t.Parallel()
	dial := through(t, time.Millisecond)
	for range 5 {
		conn := dial().(*net.TCPConn)
		if err := conn.SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(make([]byte, 64<<20)) // as much as fits
		_ = conn.SetLinger(0)
		_ = conn.Close() // with a reset
	}
	conn := dial()
	answer := make([]byte, 4)
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "ping" {
		t.Errorf("%q, %v, want \"ping\"", answer, err)
	}
}
