package aspect

import "context"

// Run runs one call under the rules of the point; see the package comment. ctx is
// the caller's. It returns when the handler returned and the locks were released.
func (p *Point) Run(ctx context.Context, call Call) Outcome {
	panic("unbuilt")
}
