package fence_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m) }
