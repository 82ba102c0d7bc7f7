package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// guard detects two holders at the same time, in one process or in several. It is a page of memory that
// all processes map. It costs nanoseconds, so it does not affect the measurement.
type guard struct {
	page *guardPage
	raw  []byte
}

type guardPage struct {
	inside     atomic.Int64
	violations atomic.Int64
	plain      int64 // not atomic, so increments are lost if there are two holders
	entered    atomic.Int64
}

// newGuardFile creates the file of a guard, filled with zeros.
func newGuardFile() (string, error) {
	f, err := os.CreateTemp("", "benchmarks-guard-")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Name(), f.Truncate(int64(os.Getpagesize()))
}

func openGuard(path string) (*guard, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &guard{page: (*guardPage)(unsafe.Pointer(&raw[0])), raw: raw}, nil
}

// A holder calls enter after it gets the lock and leave before it releases the lock.
func (g *guard) enter() {
	if g.page.inside.Add(1) != 1 {
		g.page.violations.Add(1)
	}
	g.page.plain++
	g.page.entered.Add(1)
}

func (g *guard) leave() { g.page.inside.Add(-1) }

// violations returns the number of times that a holder was not alone.
func (g *guard) violations() int64 {
	lost := g.page.entered.Load() - g.page.plain
	return max(g.page.violations.Load(), lost)
}

func (g *guard) close() error { return syscall.Munmap(g.raw) }
