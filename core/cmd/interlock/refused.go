package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// refusedf says why a server refuses a command, and what to write. The error does not match [core.ErrUnavailable],
// because waiting does not help.
func refusedf(format string, args ...any) error {
	return fmt.Errorf(format, args...) //nolint:err113 // a text for people
}

// explain replaces a refusal that is known by its reason, and adds the likely cause if the server has not answered.
// Other errors stay as they are.
func (r *target) explain(err error) error {
	if !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	if refused := refusalByTLS(err); refused != nil {
		return refused
	}
	_, reply, ofSentinels := strings.Cut(err.Error(), "all sentinels specified in configuration are unreachable: ")
	if said, ok := errors.AsType[redis.Error](err); ok && !ofSentinels {
		reply = said.Error()
	}
	if refused := refusalBy(reply, ofSentinels); refused != nil {
		return refused
	}
	_, garbled, isGarbled := strings.Cut(err.Error(), " reply: ") // as go-redis quotes what it cannot parse
	switch {
	case isGarbled:
		return refusedf("the server is not a Redis: it answers %.100s; write the host and port of one", garbled)
	case r.tls && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w; if the server has no TLS, write redis:// instead of rediss://", err)
	case !r.tls && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return fmt.Errorf("%w; if the server has TLS, write rediss:// instead of redis://", err)
	}
	return err
}

// refusalByTLS returns why a TLS handshake failed; nil if none did.
func refusalByTLS(err error) error {
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return refusedf("the server does not speak TLS: write redis:// instead of rediss://")
	}
	if e, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return refusedf("the certificate of the server is not accepted: %v; let SSL_CERT_FILE name the file with the certificate of its CA", e.Err)
	}
	if e, is := errors.AsType[*net.OpError](err); is && e.Op == "remote error" {
		return refusedf("the server refuses the TLS connection: %v; a server that wants certificates of its clients cannot be asked, because a URL has none", e.Err)
	}
	return nil
}

// refusalBy returns what a reply of Redis or of its Sentinels means; nil if that is not known.
func refusalBy(reply string, ofSentinels bool) error {
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(reply, text) })
	}
	switch {
	case ofSentinels && has("redis: nil"):
		return refusedf("the Sentinels do not know the master: write its name, as SENTINEL MASTERS shows it, into master_name=…")
	case ofSentinels && has("NOAUTH", "WRONGPASS"):
		return refusedf("the Sentinels refuse the password (%s): write sentinel_username=…&sentinel_password=… into the URL", reply)
	case ofSentinels && has("ERR unknown command"):
		return refusedf("the server is not a Sentinel: write the URL without master_name, or with the port of a Sentinel")
	case has("NOAUTH"):
		return refusedf("Redis wants a password: write redis://user:password@host:6379/0, without the user for the default one")
	case has("WRONGPASS", "ERR invalid password", "ERR AUTH <password> called without any password"):
		return refusedf("Redis refuses the user or the password of the URL (%s)", reply)
	case has("NOPERM", "ERR The user executing the script can't", "ERR ACL failure in script"), has("ERR Error running script") && strings.Contains(reply, "NOPERM"):
		return refusedf("the user of Redis may not do that: %s; ACL LOG in redis-cli names the command or the key, and examples/operating/README.md lists under Rights what is needed", reply)
	case has("MOVED "):
		return errOneNode
	case has("ERR This instance has cluster support disabled"):
		return refusedf("the server does not belong to a Cluster: leave --cluster out")
	case has("ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed"):
		return refusedf("Redis does not have the database at the end of the URL (%s): write the number of one that it has, such as /0", reply)
	case has("READONLY"):
		return refusedf("the server is a replica, on which no lock can be released: write the URL of its master")
	case has("DENIED"):
		return refusedf("Redis is in protected mode, in which it answers no other machine: give its default user a password")
	case has("ERR unknown command"):
		return refusedf("the server is not a Redis that can have locks, or hides commands that they need: %s", reply)
	}
	return nil
}

var errOneNode = usagef("the server belongs to a Cluster, of which one node knows only its own keys: write --cluster")
