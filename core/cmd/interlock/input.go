package main

import (
	"context"
	"io"
)

// input is the standard input, of which no read lasts longer than ctx: Ctrl-C ends a question, too.
// A terminal cannot be told to stop reading, so a read that is given up goes on until the process ends.
type input struct {
	ctx context.Context //nolint:containedctx // a reader gets none with its calls
	io.Reader
}

// Read is that of the reader, or the cause of the end of the context.
func (in input) Read(p []byte) (int, error) {
	type answer struct {
		bytes []byte
		err   error
	}
	read := make(chan answer, 1)
	go func() {
		room := make([]byte, len(p))
		n, err := in.Reader.Read(room)
		read <- answer{room[:n], err}
	}()
	select {
	case a := <-read:
		return copy(p, a.bytes), a.err
	case <-in.ctx.Done():
		return 0, context.Cause(in.ctx)
	}
}
