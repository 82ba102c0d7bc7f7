package redisstore

import "strings"

// newGroup returns the kind of the group lock (RedissonFasterMultiLock): many values in one hash, each a separate lock.
//
//	group    hash with three fields for each value: <value>, its holder; <value>:<holder>:expire_time, the end of its
//	         lease in ms since 1970; <value>:<holder>:lock_count, its hold count. The TTL is 100 ms longer than the longest lease
//	channel  redisson_lock__channel:{group}; a message is "1" (Redisson sends "0")
//
// The key of a value is not a key in Redis: [MemberKey] derives it from the group and the value. It is in the slot of
// the group. The scripts get the group as KEYS[1], and "<value>:<holder>" instead of the field of a holder.
//
//	acquire, acquire_all:  group, group_acquire           takes free values, or none
//	sethold:               group, group_sethold           sets the hold count: re-entry and partial release
//	renew:                 group, group_renew(_each)      raises a lease
//	refresh:               group, group_refresh           sets a lease
//	release:               group, group_release           frees a value
//	handoff:               group, group_handoff           replaces the holder of a value
//	force:                 holder, group, group_force     frees a value, whichever client holds it
//	state:                 group, group_state             reads a value
//	clear:                 group, group_clear(_each)      frees a value whose acquire got no answer
func newGroup() *Kind {
	operation := func(name string) script { return scriptOf("group", "group_"+name) }
	return &Kind{
		Name: "group", Family: "group lock",
		names: names{
			members: true,
			channel: func(key string) string { group, _ := splitMember(key); return Channel(group) },
		},
		scripts: scripts{
			acquire: operation("acquire"), acquireAll: operation("acquire"), hold: operation("sethold"),
			renew: operation("renew").each("renew_each"), refresh: operation("refresh"), release: operation("release"),
			handOff: operation("handoff"), force: scriptOf("holder", "group", "group_force"), state: operation("state"),
			clear: operation("clear").each("clear_each"),
		},
	}
}

// MemberKey returns the key of a value of a group: the group in braces, and the value. The separator shows whether the
// group contains a brace itself. The value is a result of [GroupValue].
func MemberKey(group, value string) string {
	if strings.Contains(group, "{") {
		return group + "@" + value
	}
	return "{" + group + "}#" + value
}

// splitMember returns the group and the value of a [MemberKey].
func splitMember(key string) (group, value string) {
	at := len(key) - groupValueLength - 1
	if at < 0 {
		return key, ""
	}
	group, value = key[:at], key[at+1:]
	if key[at] == '#' {
		group = group[1 : at-1]
	}
	return group, value
}

// HasMembers reports whether the keys of the kind are values of groups; see [MemberKey].
func (k *Kind) HasMembers() bool { return k.members }

// hash returns the key in Redis that contains a lock.
func (k *Kind) hash(key string) string {
	if !k.members {
		return key
	}
	group, _ := splitMember(key)
	return group
}

// holder returns a field in the form that the scripts about a holder need.
func (k *Kind) holder(key, field string) string {
	if !k.members {
		return k.Holds.wire(field)
	}
	return k.member(key, field)
}

// member returns a field unchanged, or the value of a group and the field.
func (k *Kind) member(key, field string) string {
	if !k.members {
		return field
	}
	_, value := splitMember(key)
	return value + ":" + field
}
