package web

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
)

// nowhere is a Config that fails the test when it looks up a name.
func nowhere(t testing.TB) Config {
	return Config{Proxy: noProxy, Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("a name was looked up")
		return nil, errors.New("no")
	}}}
}

func TestHostsThatSpellAPrivateAddressAreRefusedUnasked(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.255.255.254", "127.0.0.1..", "0177.0.0.1", "0177.0000.0000.0001", "0x7f.0.0.1", "0x7f000001",
		"0X7F.1", "0x7F.0x0.0x0.0x1", "2130706433", "017700000001", "00000177.0.0.01", "127.0.0.01", "127.00.0.1", "0x7f.1", "4294967295", "0", "0.0.0.0", "0.1.2.3",
		"10.0.0.1", "10.255.255.255", "167772161", "012.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.168.257", "0xc0a80101",
		"100.64.0.1", "100.127.255.255", "100.100.100.200", "169.254.169.254", "169.254.43518", "0xa9fea9fe", "2852039166", "169.254.169.254.", "192.0.0.192",
		"192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16", "192.88.99.1",
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:10.0.0.1]", "[::FFFF:169.254.169.254]",
		"[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]", "[3fff::1]",
		"[fe80::1]", "[fe80::1%25eth0]", "[fec0::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[100::1]", "[::ffff:0:127.0.0.1]", "[5f00::1]",
		"localhost", "LOCALHOST", "localhost.", "api.localhost", "localhost.localdomain", "printer.local", "metadata.google.internal", "x.intranet", "router.lan", "x.home.arpa",
		"１２７.０.０.１", "127。0。0。1", "①②⑦.0.0.1", "ⓛocalhost", "ｌocalhost", "𝟏𝟐𝟕.0.0.1", "١٢٧.0.0.1",
	} {
		for _, at := range []string{"http://" + host + "/", "https://" + host + ":8443/a?b=c"} {
			res := fetch(t, nowhere(t), at)
			if res.ErrorType != protocol.ErrPermissionDenied || res.Status != protocol.ToolRejected {
				t.Errorf("%s: %s %s (%s), want it refused", at, res.Status, res.ErrorType, res.Error)
			}
		}
	}
}

func TestAddressesThatAreNoPagesAreInvalidArguments(t *testing.T) {
	for _, at := range []string{
		"", " ", "example.com", "example.com/x", "/etc/passwd", "file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "data:text/html,x",
		"javascript:alert(1)", "about:blank", "mailto:a@b.example", "http:example.com", "http:///x", "https://", "http://:80/", "//example.com/", "http://exa mple.com/",
		"http://example.com:port/", "http://[::1", "http://ex%61mple.com/", "http://user@example.com/", "http://user:canary@example.com/", "https://:canary@example.com/",
		"http://example.com/\x00", "http://example.com/\nHost: evil", "http://127.0.0.1\\@example.com/", "view-source:https://example.com", "https://example.com/" + strings.Repeat("x", maxURL),
		"https://user:canary@exa mple.com/", "ws://example.com/",
	} {
		res := fetch(t, nowhere(t), at)
		if res.ErrorType != protocol.ErrInvalidArguments || res.Status != protocol.ToolRejected {
			t.Errorf("%.60q: %s %s (%s)", at, res.Status, res.ErrorType, res.Error)
		}
		if strings.Contains(res.Error, "canary") {
			t.Errorf("%q shows a password", res.Error)
		}
	}
}

func TestPublicAddressesAreTold(t *testing.T) {
	for _, a := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0",
		"172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15",
		"2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "3ffe::1", "2003::1",
	} {
		if !Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is none of the public internet")
	}
}

func TestHostsInOrdinarySpellingsAreNotRefusedByName(t *testing.T) {
	for _, host := range []string{
		"example.com", "EXAMPLE.com.", "8.8.8.8", "2606:4700::1111", "3com.example", "0x.example", "127.0.0.1.nip.example", "xn--bcher-kva.example", "bücher.example", "例え.example",
		"local.example", "internal.example", "a_b.example", "1e100.net",
	} {
		if f := checkHost(host); f != nil {
			t.Errorf("%s: %s", host, f.text)
		}
	}
}

func TestWithConsentOfTheSettingsPrivatePagesAreFetched(t *testing.T) {
	if res := fetch(t, local(), serve(t, "text/plain", "inside")); res.Data != "inside" {
		t.Errorf("%v %s", res.Data, res.Error)
	}
}
