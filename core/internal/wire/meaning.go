package wire

import "strings"

// Meaning classifies an error reply. It depends only on the text of the reply, however often the
// reply is wrapped.
type Meaning uint8

// The values of Meaning.
const (
	MeansFinal       Meaning = iota // Redis will refuse the next attempt as well
	MeansPasses                     // temporary: Redis will serve, but not now
	MeansFull                       // temporary: the server has too many clients and closes the connection
	MeansInMotion                   // temporary: another node of the Cluster may already serve the key
	MeansReplica                    // temporary: the connection leads to a server that is not the master
	MeansApart                      // an endpoint in front of several servers accepts the keys of a script only one by one
	MeansUnchecked                  // as MeansApart, because the endpoint cannot find the keys in the source of the script
	MeansElsewhere                  // another node of a Cluster has the key
	MeansNoScript                   // the server does not have the script of the digest
	MeansWrongType                  // the value of the key is not a lock
	MeansDenied                     // an ACL forbids the command
	MeansNoCommand                  // the server does not have the command
	MeansUnsupported                // the server does not have the subcommand
	MeansNoCluster                  // the server does not belong to a Cluster
	MeansUnanswered                 // a proxy does not know whether the server executed the command
)

// replyMeaning is the meaning of the replies that begin with a prefix, or with "ERR " and the prefix.
type replyMeaning struct {
	begins string
	means  Meaning
}

// meanings returns the replies that are not final. Nearly all of them refuse a script before the script
// changed anything. The exception is a key that is not local: while a slot moves, a script may fail halfway
// because it has to create a key, which only the other node can do. Even then the script may be executed
// again, like any script.
func meanings() []replyMeaning {
	return []replyMeaning{
		{"LOADING ", MeansPasses},    // also from KeyDB and Dragonfly
		{"BUSY ", MeansPasses},       // a script, a function or a command of a module is running
		{"MASTERDOWN ", MeansPasses}, // a replica that lost its master
		{"NOREPLICAS ", MeansPasses},
		{"MISCONF ", MeansPasses}, // the server cannot write to its disk and tries again by itself
		{"UNBLOCKED ", MeansPasses},
		{"max number of clients", MeansFull},
		{"max concurrent connections exceeded", MeansFull}, // Upstash
		{"server is shutting down", MeansPasses},
		{"SHUTDOWN ", MeansPasses},
		{"Service unavailable", MeansPasses},
		{"no upstream host", MeansPasses}, // Envoy: nothing was sent
		{"TRYAGAIN ", MeansInMotion},
		{"CLUSTERDOWN ", MeansInMotion},
		{"Script attempted to access a non local key", MeansInMotion},
		{"Lua script attempted to access a non local key", MeansInMotion}, // Redis 6
		{"Attempted to access a non local key", MeansInMotion},            // Valkey 9
		{"Unable to execute command ", MeansInMotion},                     // Redis 8, Valkey 8: "… because undeclared keys were accessed during rehashing of the slot"
		{"READONLY ", MeansReplica},
		{"REDIRECT ", MeansReplica}, // Valkey, to a client that announced that it follows redirections
		{"CROSSSLOT ", MeansApart},  // Redis, Redis Enterprise, Azure, and any endpoint in front of a Redis Cluster
		{"Dynomite: Keys in the script cannot span multiple nodes", MeansApart},
		{"bad lua script for redis cluster", MeansUnchecked}, // Alibaba Cloud accepts each key only as KEYS[1], and each command only literally
		{"'EVALSHA' command keys must", MeansApart},          // Alibaba Cloud, here and below: "in same slot"
		{"'EVAL' command keys must", MeansApart},
		{"eval/evalsha command keys must", MeansApart},
		{"MOVED ", MeansElsewhere},
		{"ASK ", MeansElsewhere},
		{"NOSCRIPT ", MeansNoScript},
		{"WRONGTYPE ", MeansWrongType},
		{"NOPERM ", MeansDenied},
		{"unknown command", MeansNoCommand},
		{"unknown ", MeansUnsupported},
		{"Unknown ", MeansUnsupported},
		{"This instance has cluster support disabled", MeansNoCluster},
		{"upstream failure", MeansUnanswered},        // Envoy
		{"upstream protocol error", MeansUnanswered}, // as above
		{"handle response", MeansUnanswered},         // Codis
		{"Connection timed out", MeansUnanswered},    // twemproxy, here and below
		{"Connection reset by peer", MeansUnanswered},
		{"Connection refused", MeansUnanswered},
		{"Broken pipe", MeansUnanswered},
		{"Host is down", MeansUnanswered},
	}
}

// withoutScript removes the text before an error inside a script. Redis 6 writes "ERR Error running
// script (call to f_<digest>): @user_script:7: @user_script: 7: -". The embedded Redis writes "ERR
// Error compiling script (new function): :7: ".
func withoutScript(text string) string {
	for begin, place := range map[string]string{"ERR Error running script ": "user_script:", "ERR Error compiling script (new function): ": "): :"} {
		if at := strings.LastIndex(text, place); at >= 0 && strings.HasPrefix(text, begin) {
			return strings.TrimLeft(text[at+len(place):], "0123456789: -")
		}
	}
	return text
}

// meaningOfReply returns the meaning of an error reply with this message.
func meaningOfReply(text string) Meaning {
	text = strings.TrimPrefix(withoutScript(text), "ERR ")
	for _, m := range meanings() {
		if strings.HasPrefix(text, m.begins) {
			return m.means
		}
	}
	return MeansFinal
}
