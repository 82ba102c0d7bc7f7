package ruleset

// Provider gives an adapter its rules: a [*Set], which never changes, or a [*Live]
// set, which is replaced when its file is.
type Provider interface {
	// Current is the set in force.
	Current() *Set

	// Subscribe asks for prepare to be called with every set that is to replace the
	// one in force, until cancel is called. All subscribers prepare before any
	// commits; one error, and the set is refused and nobody commits. prepare and
	// commit are never called concurrently, and must not call the Provider; commit
	// must not fail and not block. Nothing is called for the set in force now.
	Subscribe(prepare Prepare) (cancel func())
}

// Prepare makes everything ready to work with the set next, and changes nothing
// before commit is called.
type Prepare func(next *Set) (commit func(), err error)

// Current is the set itself.
func (s *Set) Current() *Set { return s }

// Subscribe does nothing: a Set is never replaced.
func (s *Set) Subscribe(Prepare) (cancel func()) { return func() {} }
