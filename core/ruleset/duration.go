package ruleset

import "time"

func (f *fileReader) duration(v value) (time.Duration, bool) {
	text, ok := f.scalar(v, "a time such as 10s")
	if !ok {
		return 0, false
	}
	switch text {
	case "none":
		return NoWait, true
	case "forever":
		return WaitForever, true
	case "watchdog":
		return Watchdog, true
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		f.reportf(v.node, v.field, "%s: write a time such as 10s", scalarText(v.node))
		return 0, false
	}
	return d, true
}
