//go:build !unix

package main

import (
	"errors"
	"os"
)

var errNoSignals = errors.New("a process can be stopped on unix only")

func stop(*os.Process) error { return errNoSignals }

func resume(*os.Process) error { return errNoSignals }
