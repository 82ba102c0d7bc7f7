//go:build !unix

package main

import (
	"errors"
	"os"
)

var errNoSignals = errors.New("stopping a process needs Unix")

func stop(*os.Process) error { return errNoSignals }

func resume(*os.Process) error { return errNoSignals }
