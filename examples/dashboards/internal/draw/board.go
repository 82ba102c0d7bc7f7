// Package draw draws the panels of the dashboard as one SVG picture, from Prometheus' answers to their queries. It is for
// readers without a Grafana and shows less: no time axes, no exemplars and no variables.
package draw

import (
	"context"
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/interlock-go/interlock/examples/dashboards/board"
)

// Ask answers a query of a panel for the time range of the picture.
type Ask func(ctx context.Context, expr string) (model.Matrix, error)

// Sizes in pixels.
const (
	columns     = 4
	panelWidth  = 400
	panelHeight = 250
	gap         = 10
	headHeight  = 34
	width       = columns*(panelWidth+gap) + gap
)

// Board draws all rows. over is the length of the time range of ask.
func Board(ctx context.Context, rows []board.Row, ask Ask, over time.Duration) (string, error) {
	c := &canvas{}
	y := gap
	c.text(gap, y+16, "title", "Distributed locks")
	c.text(gap+160, y+16, "note", fmt.Sprintf("the last %s, drawn from the panels' queries by go run ./dashboards; Grafana draws them differently", over.Round(time.Second)))
	y += headHeight
	for _, row := range rows {
		c.text(gap, y+20, "row", row.Question)
		y += headHeight
		for i := range row.Panels {
			p := &row.Panels[i]
			answers, err := askAll(ctx, p, ask)
			if err != nil {
				return "", err
			}
			if i > 0 && i%columns == 0 {
				y += panelHeight + gap
			}
			c.panel(gap+i%columns*(panelWidth+gap), y, p, answers)
		}
		y += panelHeight + gap
	}
	return c.svg(y), nil
}

// line is one series of a panel.
type line struct {
	legend string
	labels model.Metric
	values []model.SamplePair
}

func (l *line) last() float64 {
	if len(l.values) == 0 {
		return 0
	}
	return float64(l.values[len(l.values)-1].Value)
}

// greatest returns the greatest value, or 0 if none is positive.
func (l *line) greatest() (top float64) {
	for _, v := range l.values {
		if f := float64(v.Value); !math.IsInf(f, 0) && f > top {
			top = f
		}
	}
	return top
}

func askAll(ctx context.Context, p *board.Panel, ask Ask) (lines []line, err error) {
	for i, expr := range p.Exprs() {
		series, err := ask(ctx, expr)
		if err != nil {
			return nil, err
		}
		for _, s := range series {
			lines = append(lines, line{legend: legend(p.Queries[i].Legend, s.Metric), labels: s.Metric, values: s.Values})
		}
	}
	return lines, nil
}

// legend replaces the placeholders in a Grafana legend with the labels of a series.
func legend(template string, labels model.Metric) string {
	for name, value := range labels {
		template = strings.ReplaceAll(template, "{{"+string(name)+"}}", string(value))
	}
	return template
}

// canvas collects the elements of a picture.
type canvas struct{ b strings.Builder }

func (c *canvas) addf(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

func (c *canvas) text(x, y int, class, text string) {
	c.addf(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, html.EscapeString(text))
}

func (c *canvas) svg(height int) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="The dashboard of distributed locks">
<style>%[3]s</style>
<rect width="%[1]d" height="%[2]d" fill="#111217"/>
%[4]s</svg>
`, width, height, style, c.b.String())
}

const style = `text { font: 11px sans-serif; fill: #ccccdc; }
.title { font-size: 18px; } .row { font-size: 15px; fill: #fff; } .note, .axis { fill: #9a9aaa; }
.name { font-size: 12px; font-weight: bold; fill: #fff; } .big { font-size: 64px; fill: #73bf69; text-anchor: middle; }
.box { fill: #181b1f; stroke: #2c3235; } .grid { stroke: #2c3235; } path { fill: none; stroke-width: 1.3; }`
