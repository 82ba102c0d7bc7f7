package main

import (
	"strings"
	"testing"
	"time"
)

// A text from Redis is shown with visible characters only, and long texts are shortened.
func TestSafeText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"shop:order:pay:42": "shop:order:pay:42", "名前": "名前", "": `""`, "-": `"-"`, `a"b`: `"a\"b"`, "a b": `"a b"`,
		"\x1b[31m": `"\x1b[31m"`, "a\nb": `"a\nb"`, "\xff": `"\xff"`, "\u202e": `"\u202e"`, "\u009b31m": `"\u009b31m"`,
		strings.Repeat("k", 10_000): strings.Repeat("k", 100) + "… (10000 bytes)",
	} {
		if got := safeText(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// A short lease is shown to a tenth of a second, a long one to a minute.
func TestFormatLease(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: "no end", 0: "-", 1: "100ms", time.Second: "1s", 2094 * time.Millisecond: "2.1s",
		9901 * time.Millisecond: "10s", 10*time.Second + 1: "11s", 90 * time.Second: "1m30s",
		time.Hour - 1: "1h0m0s", time.Hour: "1h0m", 100*time.Hour - time.Second: "100h0m",
	} {
		if got := formatLease(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}
