package lockz

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// The plots are so many units of SVG wide and high. They are made of numbers only.
const (
	plotWidth  = 150
	plotHeight = 32
)

// spark draws acquisitions per second, and below them refusals.
func spark(acquired, refused []float64) template.HTML {
	top := 0.0
	for _, v := range acquired {
		top = max(top, v)
	}
	for _, v := range refused {
		top = max(top, v)
	}
	label := fmt.Sprintf("five minutes: at most %s acquired or refused in a second", rate(top))
	return svg(label, path("acquired", acquired, top)+path("refused", refused, top))
}

func path(class string, list []float64, top float64) string {
	if len(list) < 2 || top == 0 {
		return ""
	}
	var points strings.Builder
	for i, v := range list {
		x := float64(i) / float64(len(list)-1) * plotWidth
		y := (plotHeight - 1) - v/top*(plotHeight-2)
		fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
	}
	return fmt.Sprintf(`<polyline class=%q points=%q/>`, class, strings.TrimSpace(points.String()))
}

// bars draws a histogram. The height is the root of a count, so that few beside many show.
func bars(what string, d Durations) template.HTML {
	var most int64
	for _, n := range d.Counts {
		most = max(most, n)
	}
	label := fmt.Sprintf("histogram of the %s: half within %s, 99%% within %s", what, ago(d.P50), ago(d.P99))
	if most == 0 {
		return svg("histogram of the "+what+": none yet", "")
	}
	var all strings.Builder
	width := float64(plotWidth) / float64(len(d.Counts))
	for i, n := range d.Counts {
		if n == 0 {
			continue
		}
		height := math.Sqrt(float64(n)/float64(most)) * plotHeight
		fmt.Fprintf(&all, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, float64(i)*width, plotHeight-height, width-1, height)
	}
	return svg(label, all.String())
}

// svg makes a picture that a screen reader reads as its label.
func svg(label, inner string) template.HTML {
	head := fmt.Sprintf(`<svg class="plot" role="img" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" preserveAspectRatio="none"`, plotWidth, plotHeight)
	return template.HTML(head + ` aria-label="` + template.HTMLEscapeString(label) + `">` + inner + `</svg>`) //nolint:gosec // numbers and words of this file
}

// within is in which time half and 99 % of all were over.
func within(d Durations) string {
	if d.P99 == 0 {
		return "none"
	}
	return "≤ " + ago(d.P50) + ", " + ago(d.P99)
}

// ago is a number of seconds for readers.
func ago(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d <= 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// rate is a number of events per second.
func rate(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1:
		return "< 0.1"
	case v < 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}
