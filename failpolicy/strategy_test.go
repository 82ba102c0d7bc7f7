package failpolicy_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestParseStrategy(t *testing.T) {
	t.Parallel()
	for _, s := range failpolicy.Strategies() {
		if got, err := failpolicy.ParseStrategy(string(s)); got != s || err != nil {
			t.Errorf("%s: got %q, %v", s, got, err)
		}
	}
	for word, want := range map[string]string{
		"EXCEPTION": "error", "FAIL_FAST": "error", "fail_fast": "error", "fail": "error", "reject": "error",
		"RETURN_NULL": "null_response", "CONTINUE": "proceed", "NO_OPERATION": "proceed", "ignore": "",
		"Error": "error", "NULL_RESPONSE": "null_response", "nullResponse": "null_response", "null-response": "null_response",
		"fallbak": "fallback", "Skip_": "skip", "sikp": "skip",
		"": "", "banana": "", "retry": "", "x": "",
	} {
		_, err := failpolicy.ParseStrategy(word)
		var unknown *failpolicy.UnknownWordError
		if !errors.As(err, &unknown) {
			t.Errorf("%q: got %v, want an UnknownWordError", word, err)
			continue
		}
		if unknown.Suggestion != want {
			t.Errorf("%q: suggested %q, want %q", word, unknown.Suggestion, want)
		}
	}
}

func TestParseOnLost(t *testing.T) {
	t.Parallel()
	for _, o := range failpolicy.LossChoices() {
		if got, err := failpolicy.ParseOnLost(string(o)); got != o || err != nil {
			t.Errorf("%s: got %q, %v", o, got, err)
		}
	}
	for word, want := range map[string]string{"FAIL_FAST": "fail", "NO_OPERATION": "ignore", "cancle": "cancel", "error": "fail", "zzzzz": "", "x": ""} {
		_, err := failpolicy.ParseOnLost(word)
		var unknown *failpolicy.UnknownWordError
		if !errors.As(err, &unknown) || unknown.Suggestion != want {
			t.Errorf("%q: got %v, want the suggestion %q", word, err, want)
		}
	}
}
