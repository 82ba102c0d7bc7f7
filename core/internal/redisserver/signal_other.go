//go:build !unix

package redisserver

import (
	"errors"
	"os"
)

// PauseProcess returns errors.ErrUnsupported.
func PauseProcess(*os.Process) error { return errors.ErrUnsupported }

// ResumeProcess returns errors.ErrUnsupported.
func ResumeProcess(*os.Process) error { return errors.ErrUnsupported }
