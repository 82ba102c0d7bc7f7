package keyexpr_test

import (
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// TestDecodeJSON_NumbersNextToZero: a number that takes long to read, because it is next
// to zero, ends the document, so that only one is read.
func TestDecodeJSON_NumbersNextToZero(t *testing.T) {
	t.Parallel()
	for number, refused := range map[string]bool{
		"2.47e-324": true, "4.9406564584124654e-324": true, "-2.2250738585072011e-308": true, "1e-400": true,
		"1e-99999999999999999999": true, "0.000001e-303": true, "1000000e-315": true, "0." + zeros(400) + "1": true,
		"0": false, "0.0": false, "0e-999": false, "-0.000e-400": false, "1e-300": false, "3.1e-305": false,
		"0.5": false, "12.3456789": false, "1e400": false, "1e99999999999999999999": false, zeros(0) + "7": false,
		"100000000e-310": false, "1" + zeros(400) + "e-500": false, "0.00001e-300": false,
	} {
		_, err := keyexpr.DecodeJSON([]byte(`{"amount":` + number + `}`))
		if (err != nil) != refused {
			t.Errorf("%s: got %v, want an error: %v", number, err, refused)
		}
	}
}

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
}
