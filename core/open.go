package core

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Open is [New] with a client of its own, made from a URL as redis.ParseURL
// understands it: redis://user:password@host:6379/0 or rediss://… . Close closes
// it. The error never shows the user or the password.
func Open(url string, opts ...Option) (*Client, error) {
	parsed, err := redis.ParseURL(url)
	if err != nil {
		return nil, invalidf("Open: %w; want redis://user:password@host:6379/0", withoutCredentials(url, err))
	}
	rdb := redis.NewClient(parsed)
	c, err := New(rdb, opts...)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	c.ownRedis = rdb
	return c, nil
}

// withoutCredentials says what is wrong with a URL. The parsers of net/url and
// go-redis quote the part that they do not understand, which with a raw % or / in a
// password is the password, so the URL is parsed again without it.
func withoutCredentials(url string, err error) error {
	at := strings.LastIndex(url, "@")
	if at < 0 {
		return err
	}
	scheme, _, found := strings.Cut(url, "://")
	if !found {
		return errNoScheme
	}
	if _, err := redis.ParseURL(scheme + "://" + url[at+1:]); err != nil {
		return err
	}
	return errCredentials
}

var (
	errNoScheme    = errors.New("no :// behind the scheme")
	errCredentials = errors.New("user or password has a character that must be percent-encoded, such as %25 for % and %2F for /")
)
