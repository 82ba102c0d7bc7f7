package aspect

import (
	"net/http"
	"testing"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestCompiled_DecideKey(t *testing.T) {
	t.Parallel()
	plain, own := &compiledRule{}, &compiledRule{policy: failpolicy.Policy{
		OnKey:    failpolicy.Skip,
		Statuses: failpolicy.Statuses{Key: failpolicy.Status{HTTP: 422}},
	}}
	for status, want := range map[int]struct {
		ownHTTP int
		grpc    string
		program bool
	}{
		http.StatusBadRequest:            {422, "INVALID_ARGUMENT", false},
		http.StatusRequestEntityTooLarge: {422, "INVALID_ARGUMENT", false},
		http.StatusUnsupportedMediaType:  {422, "INVALID_ARGUMENT", false},
		http.StatusInternalServerError:   {500, "INTERNAL", true},
	} {
		if got := plain.decideKey(status).status; got.HTTP != status || got.GRPC.String() != want.grpc {
			t.Errorf("%d: got %+v", status, got)
		}
		d := own.decideKey(status)
		if d.status.HTTP != want.ownHTTP || d.status.GRPC.String() != want.grpc {
			t.Errorf("%d with an own status: got %+v", status, d.status)
		}
		if d.cause != failpolicy.Key || d.program != want.program || (d.strategy == failpolicy.Error) != want.program {
			t.Errorf("%d: got %+v", status, d)
		}
	}
}
