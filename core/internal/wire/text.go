package wire

import (
	"context"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// withheld replaces a message that may contain a key.
const withheld = " (the rest is withheld: it may quote a key)"

// ReplyText returns the part of an error reply that may be logged: its code, and messages that are known
// to contain no key. In some error replies Redis quotes the arguments of the command. Each version
// quotes and truncates them in a different way, so a key cannot be removed from an unknown message.
func ReplyText(reply string) string {
	words := strings.Fields(withoutScript(reply))
	known := withoutPlace(words)
	if slices.ContainsFunc(strings.Split(texts, "\n"), func(text string) bool {
		return matches(known, text) || matches(known, strings.TrimPrefix(text, "ERR ")) // Redis 6, inside of a script
	}) {
		return strings.Join(words, " ")
	}
	if command, ok := unknownCommandOf(words); ok {
		return "ERR unknown command '" + command + "'" + withheld
	}
	if len(words) == 0 || !slices.Contains(strings.Fields(codes), words[0]) {
		return "error reply" + withheld
	}
	return words[0] + withheld
}

// codes are the first words of error replies.
const codes = "ASK BUSY BUSYKEY CLUSTERDOWN CROSSSLOT DENIED ERR EXECABORT LOADING MASTERDOWN MISCONF MOVED " +
	"NOAUTH NOPERM NOPROTO NOREPLICAS NOSCRIPT OOM READONLY REDIRECT TRYAGAIN UNBLOCKED UNKILLABLE WRONGPASS WRONGTYPE"

// texts lists whole error replies. <name> stands for the name of a user (letters, digits, dashes and
// underscores), <slot> for a number, <address> for a host and a port, and <command> for one of
// commands.
const texts = `ASK <slot> <address>
BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.
BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
BUSY Redis is busy running a module command.
CLUSTERDOWN Hash slot not served
CLUSTERDOWN The cluster is down
CLUSTERDOWN The cluster is down and only accepts read commands
CROSSSLOT Keys in request don't hash to the same slot
ERR max number of clients + cluster connections reached
ERR max number of clients reached
ERR max concurrent connections exceeded
ERR handle response, backend conn reset
ERR ACL failure in script: User <name> has no permissions to run the <command> command
ERR ACL failure in script: No permissions to access a channel
ERR ACL failure in script: No permissions to access a key
ERR Attempted to access a non local key in a cluster node
ERR DB index is out of range
ERR Dynomite: Keys in the script cannot span multiple nodes
ERR This instance has cluster support disabled
ERR <command> command keys must in same slot
ERR bad lua script for redis cluster, all the keys that the script uses should be passed using the KEYS array
ERR bad lua script for redis cluster, all the keys that the script uses should be passed using the KEYS array, and KEYS should not be in expression
ERR bad lua script for redis cluster, first parameter of redis.call/redis.pcall must be a single literal string.
ERR eval/evalsha command keys must be in same slot
ERR Script attempted to access a non local key in a cluster node
ERR The user executing the script can't access at least one of the keys mentioned in the command arguments
ERR The user executing the script can't publish to the channel mentioned in the command
ERR The user executing the script can't run this command or subcommand
ERR Unable to execute command <command> in script because undeclared keys were accessed during rehashing of the slot
ERR invalid DB index
ERR the counter of fencing tokens is too high: it has to be below 2^53
ERR invalid password
LOADING Dragonfly is loading the dataset in memory
LOADING KeyDB is loading the dataset in memory
LOADING Redis is loading the dataset in memory
MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.
MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.
MOVED <slot> <address>
NOAUTH Authentication required.
NOPERM No permissions to access a channel
NOPERM No permissions to access a key
NOPERM User <name> has no permissions to run the <command> command
NOPERM this user has no permissions to access one of the channels used as arguments
NOPERM this user has no permissions to access one of the keys used as arguments
NOPERM this user has no permissions to run the <command> command
NOPERM this user has no permissions to run the <command> command or its subcommand
NOPROTO unsupported protocol version
NOREPLICAS Not enough good replicas to write.
NOSCRIPT No matching script. Please use EVAL.
NOSCRIPT No matching script. Please use [E]VAL.
OOM command not allowed when used memory > 'maxmemory'.
READONLY You can't write against a read only replica.
REDIRECT <address>
TRYAGAIN Multiple keys request during rehashing of slot
WRONGPASS invalid username-password pair or user is disabled.
WRONGTYPE Operation against a key holding the wrong kind of value
no upstream host
upstream failure
upstream protocol error`

// commands are the commands whose names may appear in an error.
const commands = "auth client cluster command eval evalsha hello ping psubscribe publish pubsub script select wait info spublish " +
	"ssubscribe subscribe sunsubscribe unsubscribe decr decrby del exists get hdel hexists hget hgetall hkeys hlen hmget hscan " +
	"hset hsetnx hstrlen incr incrby lindex linsert llen lpop lpos lrange lrem pexpire pexpireat pttl rpush set setnx strlen " +
	"time type zadd zcard zcount zrange zrangebyscore zrem zremrangebyscore zscore"

// withoutPlace removes the position of the error in a script: the words "script:
// <digest>, on @user_script:7.". Valkey 9 omits the digest. In Redis 6 an error that the
// script caught begins with "@user_script: 7:".
func withoutPlace(words []string) []string {
	if len(words) > 2 && words[0] == "@user_script:" && consists(words[1], digits+":") {
		return words[2:]
	}
	n := len(words) - 2
	if n < 1 || words[n] != "on" {
		return words
	}
	line, ok := strings.CutPrefix(words[n+1], "@user_script:")
	if !ok || !consists(line, digits+".") {
		return words
	}
	if digest := words[n-1]; len(digest) == 41 && consists(digest, "0123456789abcdef,") {
		n--
	}
	if n < 2 || words[n-1] != "script:" {
		return words
	}
	return words[:n-1]
}

// matches compares words with one of texts.
func matches(words []string, text string) bool {
	return slices.EqualFunc(words, strings.Fields(text), func(word, want string) bool {
		switch want {
		case "<slot>":
			return consists(word, digits)
		case "<address>":
			host, port, ok := cutLast(word, ":")
			return ok && consists(host, digits+letters+".-:[]") && consists(port, digits) && strings.ContainsAny(host, ".:")
		case "<name>":
			return consists(word, digits+letters+"-_")
		case "<command>":
			return isCommand(strings.Trim(word, "'"))
		default:
			return word == want
		}
	})
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// consists reports whether a word contains only characters of a set.
func consists(word, set string) bool { return word != "" && strings.Trim(word, set) == "" }

func cutLast(s, sep string) (before, after string, found bool) {
	at := strings.LastIndex(s, sep)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(sep):], true
}

func isCommand(word string) bool {
	return slices.Contains(strings.Fields(commands), strings.ToLower(word))
}

// unknownCommandOf returns the command that the server does not have, if the error names one.
func unknownCommandOf(words []string) (command string, ok bool) {
	if len(words) < 4 || words[0] != "ERR" || words[1] != "unknown" || words[2] != "command" {
		return "", false
	}
	command = strings.ToLower(strings.Trim(words[3], "'`\","))
	return command, isCommand(command)
}

// KnownText returns the message of err if it is known to contain no key: a reply without the parts that
// Redis quotes, a fixed message of this package or of go-redis, or an error of the network. It does not
// inspect the errors that err wraps.
func KnownText(err error) (text string, ok bool) {
	switch e := err.(type) { //nolint:errorlint // only err itself
	case redis.Error:
		return ReplyText(e.Error()), true
	case *net.OpError:
		return e.Error(), true
	case *ShortfallError:
		return e.Error(), true
	}
	if slices.ContainsFunc(fixed(), func(known error) bool { return err == known }) { //nolint:errorlint // as above
		return err.Error(), true
	}
	return err.Error(), fromNetwork(err)
}

// fixed returns the errors whose message is a constant.
func fixed() []error {
	return []error{
		errNoAnswer, ErrSilent, errNoConnection, errPending, errPipelineClosed,
		errHangs, errMute, errMuteTLS, errGarbled, errManyDials, errDialEnded, errHookLeft, errForeign, errChanged, errNaming, errUnnamed, errNoRoom, errNotAgain, ErrClient,
		redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrAutoPipelineQueueFull,
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, net.ErrClosed,
	}
}

// fromNetwork reports whether the type of err belongs to one of the packages that open connections. Their
// errors contain no keys.
func fromNetwork(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := t.PkgPath()
	return slices.Contains([]string{"net", "os", "syscall", "internal/poll"}, path) || strings.HasPrefix(path, "crypto/")
}
