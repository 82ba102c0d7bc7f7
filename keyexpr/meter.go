package keyexpr

// Sized is an [Env] that knows how many bytes its request has: what was received and
// read of it. A larger request may cost more, see the package comment. An Env that is
// not Sized has the budget of 1 MiB. Size is asked at most once per template or
// condition, and only where it costs more than every request may.
type Sized interface {
	Size() int
}

// SizeOf is the size of an Env's request: 1 MiB if the Env is not [Sized]. An Env around
// another one passes it on.
func SizeOf(env Env) int {
	if s, ok := env.(Sized); ok {
		return s.Size()
	}
	return mebibyte
}

// The budget of one template or condition. Work is counted in units of about a
// nanosecond at the dearest that was measured, so that half of the ten milliseconds
// per MiB are left for slower machines. It is counted, not timed: a busy machine
// accepts what a quiet one accepts.
const (
	floorWork  = 2_500_000 // of any request
	sizedWork  = 2_500_000 // more per MiB of the request
	floorBytes = 2 * mebibyte
	sizedBytes = 2 * mebibyte
	mebibyte   = 1 << 20

	// dearest and largest keep the arithmetic within an int.
	dearest = 1 << 50
	largest = 1 << 40
)

// price is what something costs: units of work, and bytes that it allocates.
type price struct{ work, bytes int }

func (p price) plus(q price) price { return price{p.work + q.work, p.bytes + q.bytes} }

func (p price) times(n int) price { return price{p.work * n, p.bytes * n} }

// meter counts what one evaluation of a template or condition costs. The zero meter
// has spent nothing. One goroutine uses it.
type meter struct {
	spent   price
	granted price // beyond the floor
	asked   bool  // for the size of the request
}

// spend pays a price, before the work is done; allocating is work, too. It reports
// false if the budget of the request does not allow it.
func (m *meter) spend(env Env, p price) bool {
	bytes := min(p.bytes, dearest)
	m.spent.work += min(p.work, dearest) + bytes/2
	m.spent.bytes += bytes
	if m.affordable() {
		return true
	}
	m.grant(env)
	return m.affordable()
}

func (m *meter) affordable() bool {
	return m.spent.work <= floorWork+m.granted.work && m.spent.bytes <= floorBytes+m.granted.bytes
}

// grant adds what the size of the request allows.
func (m *meter) grant(env Env) {
	if m.asked {
		return
	}
	m.asked = true
	size := min(max(SizeOf(env), 0), largest)
	m.granted = price{size * sizedWork / mebibyte, size * sizedBytes / mebibyte}
}

// tooCostly is the failure of an expression that exceeds the budget.
func tooCostly(subject string) *EvalError {
	return failed(ReasonTooCostly, subject, "costs more time or memory for these values than a request of this size may")
}
