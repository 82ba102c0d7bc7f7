package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
)

// printer writes whole lines, from any goroutine.
type printer struct {
	mu   sync.Mutex
	w    io.Writer
	hide string // lines with this text are not printed; empty: all lines are printed
}

const indent = "    "

func (p *printer) titlef(format string, args ...any) {
	p.write("\n" + fmt.Sprintf(format, args...) + "\n")
}

func (p *printer) linef(format string, args ...any) {
	p.write(indented(fmt.Sprintf(format, args...)))
}

// Write writes lines unchanged but indented.
func (p *printer) Write(b []byte) (int, error) {
	p.write(indented(string(b)))
	return len(b), nil
}

func (p *printer) write(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hide != "" {
		text = strings.ReplaceAll(text, p.hide, "")
	}
	fmt.Fprint(p.w, text)
}

func indented(text string) string {
	return indent + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+indent) + "\n"
}

func (p *printer) table(results []result) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "step\texpected\tseen\tok")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.name, r.expected, r.seen, verdict(r.err))
	}
	_ = w.Flush() //nolint:errcheck // a Builder returns no error
	p.write(indented(b.String()))
}

func verdict(err error) string {
	if err != nil {
		return "NO"
	}
	return "yes"
}
