package keyexpr

import (
	"errors"
	"fmt"
)

// Limits and their defaults.
const (
	// DefaultMaxLength is the longest key in bytes before it is shortened.
	DefaultMaxLength = 512
	// DefaultMaxElements is the most keys that one template may yield.
	DefaultMaxElements = 100
	// MaxTemplateLength is the longest template or condition in bytes.
	MaxTemplateLength = 4096
	// MaxNodes is the most nodes in one expression. What is compared twice, as b in
	// a < b < c, counts twice.
	MaxNodes = 200

	// MaxPrefixLength is the longest [Prefix] in bytes under the default MaxLength: an
	// overlong key keeps some of what follows, and ends in a hash.
	MaxPrefixLength = DefaultMaxLength - minRoom

	minMaxLength = 64
	minRoom      = len(hashMark) + hashDigits + 14
)

// Option changes how [Compile] builds keys.
type Option interface{ apply(c *config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	strict      bool
	prefix      string
	maxLength   int
	maxElements int
}

// Strict makes a value that would have to be encoded, and a key that would have
// to be shortened, an error. Use it while programs that build the same keys
// without encoding share the locks. A value with a colon is refused, so an IPv6
// address and the route of a Gin route with parameters always are. Default: encode
// and shorten.
func Strict() Option {
	return optionFunc(func(c *config) { c.strict = true })
}

// Prefix puts literal text before every key. It is no template: a #{ in it stands
// for itself. Positions in errors do not count it. At most [MaxPrefixLength] bytes, or
// 48 less than MaxLength.
func Prefix(text string) Option {
	return optionFunc(func(c *config) { c.prefix = text })
}

// MaxLength limits a key to n bytes, at least 64. Default: [DefaultMaxLength].
func MaxLength(n int) Option {
	return optionFunc(func(c *config) { c.maxLength = n })
}

// MaxElements limits the keys of a list to n, at least 1. Default:
// [DefaultMaxElements].
func MaxElements(n int) Option {
	return optionFunc(func(c *config) { c.maxElements = n })
}

func newConfig(opts []Option) (config, error) {
	c := config{maxLength: DefaultMaxLength, maxElements: DefaultMaxElements}
	var problems []error
	for _, o := range opts {
		if o == nil {
			problems = append(problems, errors.New("keyexpr: an option is nil"))
			continue
		}
		o.apply(&c)
	}
	if c.maxLength < minMaxLength {
		problems = append(problems, fmt.Errorf("keyexpr: MaxLength(%d): at least %d bytes are needed for a readable head and a hash", c.maxLength, minMaxLength))
	} else if n, limit := len(c.prefix), c.maxLength-minRoom; n > limit {
		problems = append(problems, fmt.Errorf("keyexpr: Prefix: %d bytes leave no room in keys of %d: write one of at most %d", n, c.maxLength, limit))
	}
	if c.maxElements < 1 {
		problems = append(problems, fmt.Errorf("keyexpr: MaxElements(%d): at least 1", c.maxElements))
	}
	return c, errors.Join(problems...)
}
