package protovars

import (
	"encoding/json"
	"math/big"
	"time"

	"github.com/interlock-go/interlock/keyexpr"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// wellKnown is a message of seconds and nanoseconds that is also a value by itself.
type wellKnown struct {
	message

	typ   keyexpr.Type
	value func(seconds int64, nanos int32) any
}

// objectOf describes a message type.
func objectOf(d protoreflect.MessageDescriptor) keyexpr.Object {
	if d.Fields().ByNumber(1) == nil || d.Fields().ByNumber(2) == nil {
		return message{d}
	}
	switch d.FullName() {
	case "google.protobuf.Timestamp":
		return wellKnown{message{d}, keyexpr.TimeType(), instant}
	case "google.protobuf.Duration":
		return wellKnown{message{d}, keyexpr.IntType(), nanoseconds}
	}
	return message{d}
}

// Value implements [keyexpr.Valued]. An invalid message is a missing value.
func (w wellKnown) Value() keyexpr.Field {
	seconds, nanos := getter(w.descriptor.Fields().ByNumber(1)), getter(w.descriptor.Fields().ByNumber(2))
	return keyexpr.Field{Type: w.typ, Get: func(parent any) any {
		s, okS := seconds(parent).(int64)
		n, okN := nanos(parent).(int32)
		if !okS || !okN {
			return nil
		}
		return w.value(s, n)
	}}
}

func instant(seconds int64, nanos int32) any {
	if !(&timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}).IsValid() {
		return nil
	}
	return keyexpr.FromTime(time.Unix(seconds, int64(nanos)))
}

// nanoseconds is exact beyond the 292 years of a time.Duration.
func nanoseconds(seconds int64, nanos int32) any {
	if !(&durationpb.Duration{Seconds: seconds, Nanos: nanos}).IsValid() {
		return nil
	}
	n := new(big.Int).Mul(big.NewInt(seconds), big.NewInt(int64(time.Second)))
	return json.Number(n.Add(n, big.NewInt(int64(nanos))).String())
}
