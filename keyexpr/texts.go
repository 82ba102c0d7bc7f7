package keyexpr

import (
	"net/netip"
	"strings"
	"time"
)

// AddressType returns the type of IP addresses. Each has the text of [netip.Addr]; an IPv4
// address in IPv6 has the text of the IPv4 address. The empty text and the address of a Unix socket
// are missing, because all clients of a socket have one such text. Another text that is not an IP
// address stays unchanged.
func AddressType() Type {
	typ := TextType("an IP address", func(text string) (string, bool) { return addressText(text), !isSocket(text) })
	typ.convert = func(v any) any {
		text, ok := v.(string)
		switch {
		case !ok:
			return v
		case text == "" || isSocket(text):
			return nil
		default:
			return addressText(text)
		}
	}
	return typ
}

// isSocket reports whether a text is the address of a Unix socket: "@" without a name, "@name", or a path.
func isSocket(text string) bool { return strings.HasPrefix(text, "@") || strings.HasPrefix(text, "/") }

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
