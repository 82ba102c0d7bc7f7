package main

import (
	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// pubSubFlag says how the lock clients of a Cluster send and listen.
func pubSubFlag(set *pflag.FlagSet, value *string) {
	set.StringVar(value, "pubsub", "auto", "`mode` of the lock client in a Cluster (core.WithPubSub): auto, sharded or classic")
}

// pubSubOf is the mode that a flag names.
func pubSubOf(value string) (core.PubSub, error) {
	modes := map[string]core.PubSub{"auto": core.PubSubAuto, "sharded": core.PubSubSharded, "classic": core.PubSubClassic}
	return modes[value], oneOf("pubsub", value, []string{"auto", "sharded", "classic"})
}
