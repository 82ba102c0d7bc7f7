package redisstore

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Rights returns what a Redis user needs for some kinds of lock whose keys begin with prefix, as
// the rules of one ACL SETUSER: key patterns, channel patterns, commands. The commands are read
// from the scripts.
func (s *Store) Rights(prefix string, kinds []*Kind) string {
	keys := map[string]bool{escape(prefix) + "*": true, "{" + escape(prefix) + "*": true}
	channels, commands := make(map[string]bool), make(map[string]bool)
	for name := range strings.FieldsSeq(s.usualCommands()) {
		commands[name] = true
	}
	call := regexp.MustCompile(`redis\.p?call\('(\w+)'`)
	for _, k := range kinds {
		for _, key := range k.beyond("") {
			if before, _, _ := strings.Cut(key, "{"); before != "" {
				keys[before+"*"] = true
			}
		}
		if before, _, _ := strings.Cut(k.Channel(""), "{"); before != "" {
			channels[before+"*"] = true
		}
		for _, source := range k.Sources() {
			for _, found := range call.FindAllStringSubmatch(source, -1) {
				commands[strings.ToLower(found[1])] = true
			}
		}
	}
	rules := prefixed("~", keys)
	return strings.Join(append(append(rules, prefixed("&", channels)...), prefixed("+", commands)...), " ")
}

// usualCommands are the commands that the Store sends for every kind of lock.
func (s *Store) usualCommands() string {
	usual := "eval evalsha ping info del publish subscribe unsubscribe"
	if s.cluster != nil {
		usual += " spublish ssubscribe sunsubscribe pubsub asking cluster command"
	}
	if s.Database() != 0 {
		usual += " select"
	}
	if s.cfg.Replication.Acks != wire.NoAcks {
		usual += " wait"
	}
	return usual
}

// beyond returns the keys other than its own that a lock of this kind uses.
func (k *Kind) beyond(key string) (list []string) {
	if k.beside != nil {
		for _, other := range k.beside(key) {
			list = append(list, other.(string)) //nolint:errcheck,forcetypeassert // they are keys
		}
	}
	if k.Fenced {
		list = append(list, tokenCounter(key))
	}
	if k.Holds == Unheld {
		list = append(list, behind(key, "interlock_ops"))
	}
	return list
}

func prefixed(mark string, set map[string]bool) []string {
	list := slices.Sorted(maps.Keys(set))
	for i := range list {
		list[i] = mark + list[i]
	}
	return list
}

// Username is the Redis user of the Store.
func (s *Store) Username() string {
	if s.cluster != nil {
		return cmp.Or(s.cluster.Options().Username, "default")
	}
	return cmp.Or(s.single.Options().Username, "default")
}
