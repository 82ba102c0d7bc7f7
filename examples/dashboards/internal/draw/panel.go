package draw

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/interlock-go/interlock/examples/dashboards/board"
)

// Sizes within a panel, in pixels.
const (
	plotLeft   = 60
	plotTop    = 34
	plotWidth  = panelWidth - plotLeft - 12
	plotHeight = 120
	mostLines  = 8
)

func colors() []string {
	return []string{"#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#37872d"}
}

func (c *canvas) panel(x, y int, p *board.Panel, lines []line) {
	c.addf(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" class="box"/>`, x, y, panelWidth, panelHeight)
	c.text(x+10, y+20, "name", p.Title)
	if p.Form != board.Lines {
		lines = current(lines)
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(b.greatest(), a.greatest()), strings.Compare(a.legend, b.legend))
	})
	switch {
	case len(lines) == 0:
		c.text(x+panelWidth/2-20, y+panelHeight/2, "note", "no data")
	case p.Form == board.Stat:
		c.text(x+panelWidth/2, y+panelHeight/2+24, "big", number(lines[0].last(), p.Unit))
	case p.Form == board.Table:
		c.table(x, y, p, lines)
	default:
		c.plot(x, y, p, lines)
	}
}

// current returns the lines that have a value at the end.
func current(lines []line) (now []line) {
	_, to, _ := extent(lines)
	for _, l := range lines {
		if len(l.values) > 0 && l.values[len(l.values)-1].Timestamp == to {
			now = append(now, l)
		}
	}
	return now
}

// table shows a row for each series.
func (c *canvas) table(x, y int, p *board.Panel, lines []line) {
	for i, l := range lines[:min(len(lines), mostLines)] {
		var cells []string
		for _, name := range []model.LabelName{"instance", "distributed_lock_client_id", "distributed_lock_hash"} {
			if v, ok := l.labels[name]; ok {
				cells = append(cells, string(v))
			}
		}
		c.text(x+10, y+50+i*18, "", strings.Join(cells, "   ")+"   "+number(l.last(), p.Unit))
	}
}

// plot draws the lines over the time range of all their values.
func (c *canvas) plot(x, y int, p *board.Panel, lines []line) {
	from, to, top := extent(lines)
	for i := range 3 {
		at := y + plotTop + plotHeight*i/2
		c.addf(`<line x1="%d" x2="%d" y1="%d" y2="%d" class="grid"/>`, x+plotLeft, x+plotLeft+plotWidth, at, at)
		c.text(x+8, at+4, "axis", number(top*float64(2-i)/2, p.Unit))
	}
	palette := colors()
	for i, l := range lines[:min(len(lines), mostLines)] {
		color := palette[i%len(palette)]
		c.addf(`<path stroke="%s" d="%s"/>`, color, path(&l, from, to, top, x+plotLeft, y+plotTop))
		lx, ly := x+10+i%2*(panelWidth/2), y+plotTop+plotHeight+24+i/2*16
		c.addf(`<rect x="%d" y="%d" width="8" height="8" fill="%s"/>`, lx, ly-8, color)
		c.text(lx+13, ly, "", l.legend)
	}
	if more := len(lines) - mostLines; more > 0 {
		c.text(x+10, y+plotTop+plotHeight+24+mostLines/2*16, "note", fmt.Sprintf("and %d more", more))
	}
}

// extent returns the time range of the lines and their greatest value.
func extent(lines []line) (from, to model.Time, top float64) {
	from = model.Latest
	for _, l := range lines {
		for _, v := range l.values {
			from, to = min(from, v.Timestamp), max(to, v.Timestamp)
		}
		top = max(top, l.greatest())
	}
	if top == 0 {
		top = 1
	}
	return from, to, top
}

// path returns the SVG path of a line, with a gap for each missing value.
func path(l *line, from, to model.Time, top float64, x, y int) string {
	var b strings.Builder
	pen := "M"
	var before model.Time
	for _, v := range l.values {
		f := float64(v.Value)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			pen = "M"
			continue
		}
		if v.Timestamp.Sub(before) > 3*time.Second {
			pen = "M"
		}
		at := float64(x) + float64(plotWidth)*float64(v.Timestamp-from)/float64(max(to-from, 1))
		fmt.Fprintf(&b, "%s%.0f %.1f", pen, at, float64(y)+plotHeight*(1-f/top))
		pen, before = "L", v.Timestamp
	}
	return b.String()
}

// number formats a value with its unit as Grafana does.
func number(f float64, unit string) string {
	switch unit {
	case "s":
		return time.Duration(f * float64(time.Second)).Round(rounding(f)).String()
	case "percentunit":
		return strconv.FormatFloat(f*100, 'g', 3, 64) + " %"
	case "ops":
		return strconv.FormatFloat(f, 'g', 3, 64) + " /s"
	case "dateTimeAsIso":
		return time.UnixMilli(int64(f)).UTC().Format(time.DateTime)
	default:
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
}

// rounding rounds a time in seconds to three digits.
func rounding(f float64) time.Duration {
	unit := time.Second / 100
	for range 4 {
		if f >= unit.Seconds()*100 {
			break
		}
		unit /= 10
	}
	return unit
}
