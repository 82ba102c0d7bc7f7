package main

import (
	"fmt"
	"html"
	"os"
	"strings"
)

// Sizes of the picture in pixels.
const (
	pictureWidth = 1060
	lineHeight   = 22
)

// columns are the left edges of the columns. Each cell has a fixed position, so the picture does not depend on the width
// of a font.
var columns = []int{16, 120, 510, 990}

// drawTable returns the table of results as an SVG for README.md. Its background is dark on light and on dark pages.
func drawTable(results []result) string {
	var b strings.Builder
	height := (len(results)+1)*lineHeight + 16
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="The steps of the quickstart">`+"\n", pictureWidth, height)
	fmt.Fprintln(&b, `<style>text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: #e6edf3; } .head { fill: #8b949e; } .yes { fill: #3fb950; } .no { fill: #f85149; }</style>`)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="6" fill="#0d1117"/>`+"\n", pictureWidth, height)
	drawRow(&b, 0, "head", "head", "step", "expected", "seen", "ok")
	for i, r := range results {
		ok := verdict(r.err)
		drawRow(&b, i+1, "cell", strings.ToLower(ok), r.name, r.expected, r.seen, ok)
	}
	return b.String() + "</svg>\n"
}

// drawRow draws the cells of a line. The last cell has a separate class.
func drawRow(b *strings.Builder, line int, class, last string, cells ...string) {
	for i, cell := range cells {
		if i == len(cells)-1 {
			class = last
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" class="%s">%s</text>`+"\n", columns[i], (line+1)*lineHeight+4, class, html.EscapeString(cell))
	}
}

// savePicture writes the picture to the file of -picture. Without a file or results it writes nothing.
func savePicture(file string, results []result) error {
	if file == "" || len(results) == 0 {
		return nil
	}
	return os.WriteFile(file, []byte(drawTable(results)), 0o600)
}
