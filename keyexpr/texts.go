package keyexpr

import (
	"net/netip"
	"time"
)

// AddressType returns the type of IP addresses. Each has the text of [netip.Addr]; an IPv4
// address in IPv6 has the text of the IPv4 address. A text that is not an address stays unchanged.
func AddressType() Type {
	typ := TextType("an IP address", func(text string) (string, bool) { return addressText(text), true })
	typ.convert = func(v any) any {
		if text, ok := v.(string); ok {
			return addressText(text)
		}
		return v
	}
	return typ
}

// addressText returns the canonical text of an IP address. It returns any other text unchanged.
func addressText(text string) string {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Unmap().String()
	}
	return text
}

// endpointText returns the canonical text of an IP address with a port. It returns any other text
// unchanged.
func endpointText(text string) string {
	if e, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(e.Addr().Unmap(), e.Port()).String()
	}
	return text
}

// timeType returns the type of instants, whose values timeText returns.
func timeType() Type {
	typ := TextType("a time, such as 2006-01-02T15:04:05Z", func(text string) (string, bool) {
		var t time.Time
		if text != "" && t.UnmarshalText([]byte(text)) != nil {
			return "", false
		}
		canonical, ok := timeText(t).(string)
		return canonical, ok
	})
	typ.texts.vocabularies[0].isTime = true
	return typ
}

// timeText returns the text of an instant: RFC 3339 in UTC, without zeros at the end of the
// fraction. It returns "" for the zero time, and nil for a year that RFC 3339 cannot write.
func timeText(t time.Time) any {
	if t.IsZero() {
		return ""
	}
	text, err := t.UTC().MarshalText()
	if err != nil {
		return nil
	}
	return string(text)
}
