package web

import (
	"encoding/binary"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// closed lists the IPv4 networks nobody on the public internet is reached at: this host, private and shared networks, link-local with its
// metadata services, documentation, benchmarking, relays, multicast, reserved.
var closed = [...]struct {
	a, b, c, d byte
	bits       uint
}{
	{0, 0, 0, 0, 8},
	{10, 0, 0, 0, 8},
	{100, 64, 0, 0, 10},
	{127, 0, 0, 0, 8},
	{169, 254, 0, 0, 16},
	{172, 16, 0, 0, 12},
	{192, 0, 0, 0, 24},
	{192, 0, 2, 0, 24},
	{192, 88, 99, 0, 24},
	{192, 168, 0, 0, 16},
	{198, 18, 0, 0, 15},
	{198, 51, 100, 0, 24},
	{203, 0, 113, 0, 24},
	{224, 0, 0, 0, 4},
	{240, 0, 0, 0, 4},
	{168, 63, 129, 16, 32}, // a cloud's host agent, which only the machine's own host answers
}

// Public tells whether an address is one of the public internet. Addresses that carry another (v4-mapped, NAT64) are judged by that; of
// IPv6 only 2000::/3 is public, without documentation, protocol assignments (Teredo among them) and 6to4. An address with a zone is not.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if a.Is4() {
		is := a.As4()
		for _, n := range closed {
			net := [4]byte{n.a, n.b, n.c, n.d}
			if (binary.BigEndian.Uint32(is[:])^binary.BigEndian.Uint32(net[:]))>>(32-n.bits) == 0 {
				return false
			}
		}
		return true
	}
	b := a.As16()
	first, second := uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3])
	switch {
	case first == 0x64 && second == 0xff9b: // 64:ff9b::/96; 64:ff9b:1::/48 is for local use
		for _, zero := range b[4:12] {
			if zero != 0 {
				return false
			}
		}
		return Public(netip.AddrFrom4([4]byte(b[12:])))
	case first&0xe000 != 0x2000, first == 0x2002:
		return false
	case first == 0x2001 && (second < 0x200 || second == 0xdb8), first == 0x3fff && second < 0x1000:
		return false
	}
	return true
}

// localNames end names that never belong to the public internet.
var localNames = []string{"localhost", "localdomain", "local", "internal", "intranet", "lan", "home.arpa", "onion"}

// checkURL refuses what is not fetched whatever it leads to; nil is fine so far. Where its host leads is checked when it is dialled.
func (c Config) checkURL(u *url.URL) *fault {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		if u.Scheme == "" || u.Opaque != "" && !strings.Contains(u.String(), "://") {
			return invalid("%q is no address of a page: begin it with https://.", shown(u))
		}
		return invalid("Addresses beginning with %q are not fetched: only http and https are.", protocol.OneLine(u.Scheme, 40)+":")
	case u.Opaque != "" || u.Hostname() == "":
		return invalid("%q names no host: write it as https://HOST/PATH.", shown(u))
	case u.User != nil:
		return invalid("%q holds a user name or password, which is never sent: leave out what stands before the @.", shown(u))
	}
	if c.AllowPrivate {
		return nil
	}
	return checkHost(u.Hostname())
}

// checkHost refuses a host that names a private address by its spelling alone, and one that spells an address so that programs read it
// differently.
func checkHost(host string) *fault {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		if !Public(a) {
			return private(host)
		}
		return nil
	}
	if strings.ContainsAny(host, "%:[]") || numeric(host) {
		return refused("The host %q spells an address in a form that is not used here: write it as four decimal numbers, or as a name.", protocol.OneLine(host, 100))
	}
	for _, r := range host {
		if r >= utf8.RuneSelf && (!unicode.In(r, unicode.L, unicode.M) || r >= 0xff00 && r <= 0xffef || r >= 0x1d400 && r <= 0x1d7ff) {
			return refused("The host %q holds characters that stand for others: write it in plain letters, or in its xn-- form.", protocol.OneLine(host, 100))
		}
	}
	for _, name := range localNames {
		if host == name || strings.HasSuffix(host, "."+name) {
			return private(host)
		}
	}
	return nil
}

// numeric tells whether resolvers would read host as an address written as one to four numbers: its last label begins as a number.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return true // "", "127.0.0.1..": nothing a name ends with
	}
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func private(host string) *fault {
	return refused("%q is not on the public internet, and pages of private addresses are not fetched unless the settings allow it.", protocol.OneLine(host, 100))
}

// shown is an address as errors name it: short, without user, query and fragment.
func shown(u *url.URL) string {
	v := *u
	v.User, v.RawQuery, v.ForceQuery, v.Fragment, v.RawFragment = nil, "", false, "", ""
	return protocol.OneLine(v.String(), 200)
}
