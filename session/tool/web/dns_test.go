package web

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// names is a name server on loopback. Each lookup of a name's IPv4 addresses takes the next of its answers; the last one stays.
type names struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   []string
	conn    net.PacketConn
}

func newNames(t testing.TB, answers map[string][][]string) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{answers: answers, conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return n
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", n.conn.LocalAddr().String())
	}}
}

// lookups are the names asked for so far.
func (n *names) lookups() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

func (n *names) serve() {
	buf := make([]byte, 2048)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := n.reply(buf[:size]); reply != nil {
			_, _ = n.conn.WriteTo(reply, from)
		}
	}
}

// reply answers one question, in the bytes of RFC 1035 section 4.
func (n *names) reply(q []byte) []byte {
	if len(q) < 12 {
		return nil
	}
	var labels []string
	i := 12
	for i < len(q) && q[i] != 0 && i+1+int(q[i]) <= len(q) {
		labels = append(labels, string(q[i+1:i+1+int(q[i])]))
		i += 1 + int(q[i])
	}
	if i+5 > len(q) {
		return nil
	}
	name, kind := strings.Join(labels, "."), binary.BigEndian.Uint16(q[i+1:])
	n.mu.Lock()
	defer n.mu.Unlock()
	list, ok := n.answers[name]
	var addresses []string
	if ok && kind == 1 {
		n.asked = append(n.asked, name)
		addresses = list[0]
		if len(list) > 1 {
			n.answers[name] = list[1:]
		}
	}
	r := append([]byte{}, q[:i+5]...)
	r[2], r[3] = 0x81, 0x80
	if !ok {
		r[3] |= 3 // there is no such name
	}
	binary.BigEndian.PutUint16(r[4:], 1)
	binary.BigEndian.PutUint16(r[6:], uint16(len(addresses)))
	binary.BigEndian.PutUint32(r[8:], 0)
	for _, a := range addresses {
		r = append(r, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		r = append(r, net.ParseIP(a).To4()...)
	}
	return r
}

// port is the port of a server on loopback.
func port(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// guarded takes 127.0.0.1 for an address of the public internet and every other of loopback for a private one.
func guarded(n *names) Config {
	return Config{Proxy: noProxy, Resolver: n.resolver(), public: only("127.0.0.1")}
}

func TestANameThatLeadsToAPublicAddressIsFetched(t *testing.T) {
	n := newNames(t, map[string][][]string{"page.example": {{"127.0.0.1"}}})
	at := "http://page.example:" + port(t, serve(t, "text/plain", "hello"))
	if res := fetch(t, guarded(n), at); res.Data != "hello" {
		t.Errorf("%v %s", res.Data, res.Error)
	}
}

func TestANameThatLeadsInsideIsRefusedWhenItIsDialled(t *testing.T) {
	n := newNames(t, map[string][][]string{"inside.example": {{"127.0.0.2"}}, "meta.example": {{"169.254.169.254"}}, "lan.example": {{"10.1.2.3", "192.168.0.1"}}})
	for _, name := range []string{"inside.example", "meta.example", "lan.example"} {
		res := fetch(t, guarded(n), "http://"+name+"/")
		refusedAs(t, res, "PermissionDenied")
		if !strings.Contains(res.Error, name) || !strings.Contains(res.Error, "settings") {
			t.Errorf("%q does not say what to do", res.Error)
		}
	}
}

func TestANameThatChangesItsAddressIsJudgedByTheOneThatIsDialled(t *testing.T) {
	n := newNames(t, map[string][][]string{"rebind.example": {{"127.0.0.1"}, {"127.0.0.2"}}})
	var hits atomic.Int32
	at := ""
	at = "http://rebind.example:" + port(t, handle(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, at+"/again", http.StatusFound)
	}))
	refusedAs(t, fetch(t, guarded(n), at), "PermissionDenied")
	refusedAs(t, fetch(t, guarded(n), at), "PermissionDenied")
	if n := hits.Load(); n != 1 {
		t.Errorf("the server was asked %d times, want once: by the first address", n)
	}
	if asked := n.lookups(); len(asked) != 3 {
		t.Errorf("lookups %v, want one for each connection", asked)
	}
}

func TestOfSeveralAddressesOnlyPublicOnesAreTried(t *testing.T) {
	n := newNames(t, map[string][][]string{"both.example": {{"127.0.0.2", "127.0.0.1"}}})
	at := "http://both.example:" + port(t, serve(t, "text/plain", "hello"))
	if res := fetch(t, guarded(n), at); res.Data != "hello" {
		t.Errorf("%v %s", res.Data, res.Error)
	}
}

func TestARedirectGoesNowhereThatCouldNotBeAskedFor(t *testing.T) {
	n := newNames(t, map[string][][]string{"page.example": {{"127.0.0.1"}}, "inside.example": {{"127.0.0.2"}}})
	inside := handle(t, func(http.ResponseWriter, *http.Request) { t.Error("the inside was reached") })
	for where, want := range map[string]string{
		inside:                            "PermissionDenied",
		"//127.1:" + port(t, inside):      "PermissionDenied",
		"http://localhost/":               "PermissionDenied",
		"http://[::1]/":                   "PermissionDenied",
		"http://inside.example/":          "PermissionDenied",
		"http://169.254.169.254/latest/":  "PermissionDenied",
		"http://other.example/":           "PermissionDenied",
		"file:///etc/passwd":              "InvalidArguments",
		"ftp://page.example/":             "InvalidArguments",
		"javascript:alert(1)":             "InvalidArguments",
		"http://me:secret@page.example/":  "InvalidArguments",
		"http://":                         "InvalidArguments",
		"http://%zz/":                     "NotFound",
		"/" + strings.Repeat("x", maxURL): "TooLarge",
	} {
		at := "http://page.example:" + port(t, handle(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", where)
			w.WriteHeader(http.StatusMovedPermanently)
		}))
		res := fetch(t, guarded(n), at)
		if res.ErrorType != want {
			t.Errorf("redirect to %.80q: %q (%s), want %s", where, res.ErrorType, res.Error, want)
		}
		if strings.Contains(res.Error, "secret") {
			t.Errorf("%q shows a password", res.Error)
		}
	}
}

func TestAHostThatDoesNotExistIsNotFound(t *testing.T) {
	res := fetch(t, guarded(newNames(t, nil)), "https://nowhere.example./x")
	refusedAs(t, res, "NotFound")
}
