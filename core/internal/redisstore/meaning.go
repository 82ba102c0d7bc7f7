package redisstore

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// meaning is what an error reply says. It is read from the reply itself, however often that is wrapped.
type meaning uint8

const (
	final       meaning = iota // the next attempt is refused as well
	passes                     // Redis will serve, but not now
	inMotion                   // passes; another node of a Cluster may serve already
	replica                    // passes; the connection leads to a server that is not the master
	apart                      // an endpoint in front of several servers wants the keys of a script one by one
	unchecked                  // the same, because it cannot check the text of the script
	elsewhere                  // another node of a Cluster has the key
	noScript                   // the server does not know the digest
	wrongType                  // the key holds something that is not a lock
	denied                     // by an ACL
	noCommand                  // the server does not know the command
	unsupported                // the server does not know the subcommand
	noCluster                  // the server does not belong to a Cluster
	unanswered                 // a proxy does not know what the server has done, if anything
)

// meant is the meaning of a reply that begins with a text, with or without "ERR " before it.
type meant struct {
	begins string
	means  meaning
}

// meanings returns the replies that are not final. Nearly all refuse a script before it has changed anything.
// The exception is a key that is not local: while a slot moves, a script may find in the middle that a key
// has become empty, which it could only create on the other node. It may be executed again then, as any
// script may.
func meanings() []meant {
	return []meant{
		{"LOADING ", passes},    // also of KeyDB and Dragonfly
		{"BUSY ", passes},       // a script, a function or a command of a module takes its time
		{"MASTERDOWN ", passes}, // a replica that has lost its master
		{"NOREPLICAS ", passes},
		{"MISCONF ", passes}, // it cannot persist, and tries again by itself
		{"UNBLOCKED ", passes},
		{"max number of clients", passes},
		{"max concurrent connections exceeded", passes}, // Upstash
		{"server is shutting down", passes},
		{"SHUTDOWN ", passes},
		{"Service unavailable", passes},
		{"no upstream host", passes}, // Envoy: nothing was sent
		{"TRYAGAIN ", inMotion},
		{"CLUSTERDOWN ", inMotion},
		{"Script attempted to access a non local key", inMotion},
		{"Lua script attempted to access a non local key", inMotion}, // Redis 6
		{"Attempted to access a non local key", inMotion},            // Valkey 9
		{"Unable to execute command ", inMotion},                     // Redis 8, Valkey 8: "… because undeclared keys were accessed during rehashing of the slot"
		{"READONLY ", replica},
		{"REDIRECT ", replica}, // Valkey, to a client that has announced that it follows
		{"CROSSSLOT ", apart},  // Redis, Redis Enterprise, Azure, and whatever has a Redis Cluster behind it
		{"Dynomite: Keys in the script cannot span multiple nodes", apart},
		{"bad lua script for redis cluster", unchecked}, // Alibaba Cloud wants each key as KEYS[1], and each command literally
		{"'EVALSHA' command keys must", apart},          // Alibaba Cloud, here and below: "in same slot"
		{"'EVAL' command keys must", apart},
		{"eval/evalsha command keys must", apart},
		{"MOVED ", elsewhere},
		{"ASK ", elsewhere},
		{"NOSCRIPT ", noScript},
		{"WRONGTYPE ", wrongType},
		{"NOPERM ", denied},
		{"unknown command", noCommand},
		{"unknown ", unsupported},
		{"Unknown ", unsupported},
		{"This instance has cluster support disabled", noCluster},
		{"upstream failure", unanswered},        // Envoy
		{"upstream protocol error", unanswered}, // likewise
		{"handle response", unanswered},         // Codis
		{"Connection timed out", unanswered},    // twemproxy, here and below
		{"Connection reset by peer", unanswered},
		{"Connection refused", unanswered},
		{"Broken pipe", unanswered},
		{"Host is down", unanswered},
	}
}

// meaningOf returns what the error reply inside an error means.
func meaningOf(err error) meaning {
	reply, ok := replyOf(err)
	if !ok {
		return final
	}
	text := strings.TrimPrefix(withoutScript(reply.Error()), "ERR ")
	for _, m := range meanings() {
		if strings.HasPrefix(text, m.begins) {
			return m.means
		}
	}
	return final
}

// replyOf returns the error reply inside an error. An explanation of the error may contain others.
func replyOf(err error) (redis.Error, bool) {
	if explained, ok := errors.AsType[*explainedError](err); ok {
		return replyOf(explained.err)
	}
	return errors.AsType[redis.Error](err)
}

// withoutScript cuts off what Redis 6 writes in front of an error inside of a script:
// "ERR Error running script (call to f_<digest>): @user_script:7: @user_script: 7: -"; and the embedded
// Redis: "ERR Error compiling script (new function): :7: ".
func withoutScript(text string) string {
	for begin, place := range map[string]string{"ERR Error running script ": "user_script:", "ERR Error compiling script (new function): ": "): :"} {
		if at := strings.LastIndex(text, place); at >= 0 && strings.HasPrefix(text, begin) {
			return strings.TrimLeft(text[at+len(place):], "0123456789: -")
		}
	}
	return text
}
