package core_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A prefix that leaves no room for names, or for short ones only, is a mistake that
// every acquisition would run into.
func TestNew_PrefixLeavesRoomForNames(t *testing.T) {
	t.Parallel()
	long := func(n int) core.Option { return core.WithPrefix(strings.Repeat("p", n)) }
	tests := []struct {
		name string
		opts []core.Option
		want string // in the error; "" for none
	}{
		{"as long as a key", []core.Option{long(core.DefaultMaxKeyLength)}, "a prefix of at most 960 bytes, or WithMaxKeyLength(1088)"},
		{"longer than a key", []core.Option{long(5000)}, "a prefix of at most 960 bytes, or WithMaxKeyLength(5064)"},
		{"room for a few bytes", []core.Option{long(961)}, "at most 960 bytes"},
		{"room", []core.Option{long(960)}, ""},
		{"options in another order", []core.Option{core.WithMaxKeyLength(100), core.WithPrefix("shop:orders:of:the:month:of:may:2026:")}, "at most 36 bytes"},
		{"keys too short for any prefix", []core.Option{core.WithPrefix("p:"), core.WithMaxKeyLength(40)}, "write WithMaxKeyLength(66) or more"},
		{"short keys without a prefix", []core.Option{core.WithMaxKeyLength(20)}, ""},
	}
	for _, tt := range tests {
		locks, err := core.New(locktest.Nowhere(t), tt.opts...)
		if err == nil {
			if closing := locks.Close(t.Context()); closing != nil {
				t.Error(closing)
			}
		}
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: got %v", tt.name, err)
		case tt.want != "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "WithPrefix(")):
			t.Errorf("%s: got %v", tt.name, err)
		case len(errorText(err)) > 300:
			t.Errorf("%s: the error has %d bytes", tt.name, len(err.Error()))
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestClient_MaxNameLength(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, locktest.Nowhere(t), core.WithPrefix("shop:"), core.WithMaxKeyLength(200))
	locktest.WantSame(t, "the longest name", locks.ForAdapters().MaxNameLength(), 195)
}
