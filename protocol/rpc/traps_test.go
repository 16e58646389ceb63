package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rpc"
)

// The names are those of docs/protocol/acp.md section 6: what jsonrpc2 does by itself, and must not do here.

func TestJ1BadLinesAreAnsweredAndReadingGoesOn(t *testing.T) {
	for _, bad := range []string{
		"garbage", `{"id":1`, "{}", "42", `"str"`, "null", "[]", `[{"id":1,"method":"x"}]`, `{"id":1,"method":7}`, `{"id":1,"method":null,"jsonrpc":"2.0"}`,
	} {
		want := []string{"refused no request", "request 2 ping "}
		if diff := cmp.Diff(want, serve(t, []byte(bad+"\n"+`{"id":2,"method":"ping"}`+"\n"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", bad, diff)
		}
	}
	// These close the library's connection, but are fine by the rules of a codec.
	for _, odd := range []string{`{"id":1,"method":"x","result":null}`, `{"id":1,"method":"x","error":{"code":1.5}}`} {
		if got := serve(t, []byte(odd+"\n"+odd+"\n")); len(got) != 2 || got[0] != "request 1 x " || got[0] != got[1] {
			t.Errorf("%s: %q", odd, got)
		}
	}
}

func TestJ2ALineIsAMessageAndNothingElseIs(t *testing.T) {
	in := `{"id":1,"met` + "\n" + `hod":"x"}` + "\n" + `{"id":2,"method":"x"}{"id":3,"method":"x"}` + "\n \n\n" + `{"id":4,"method":"x"}` + "\n"
	want := []string{"refused no request", "refused no request", "refused no request", "request 4 x "}
	if diff := cmp.Diff(want, serve(t, []byte(in))); diff != "" {
		t.Error(diff)
	}
}

func TestJ3ALongLineIsOneFaultAndCostsBoundedMemory(t *testing.T) {
	p := newPeer()
	long := io.LimitReader(spaces{}, 256<<20)
	in := io.MultiReader(strings.NewReader(`{"id":1`), long, strings.NewReader("}\n"+`{"id":2,"method":"ping"}`+"\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := serveAll(t.Context(), frame.NewReader(in), p); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	want := []string{"refused frame exceeds the bound of bytes", "request 2 ping "}
	if diff := cmp.Diff(want, p.got); diff != "" {
		t.Error(diff)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 96<<20 {
		t.Errorf("256 MiB of one line allocated %d MiB", got>>20)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestJ4IdsComeByteForByte(t *testing.T) {
	for _, id := range []string{`-7`, `1.5`, `1e3`, `18446744073709551616`, `9007199254740993`, `0`, `-0`, `1e400`, `"str"`, `""`, `"1"`, `"\u0041"`, `"\ud800"`} {
		want := []string{"request " + id + " x "}
		if diff := cmp.Diff(want, serve(t, []byte(`{"id":`+id+`,"method":"x"}`+"\n"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

func TestJ5TheCodecDecidesAboutNullIds(t *testing.T) { // not the library, which takes such a request for a notification
	if got := serve(t, []byte(`{"id":null,"method":"x"}`+"\n")); len(got) != 1 || got[0] != "request null x " {
		t.Errorf("got %q", got)
	}
}

func TestJ6AnswersToNothingAreDropped(t *testing.T) {
	c := open(t, newPeer(), rpc.Options{})
	answer := c.call(t.Context(), "auth-1")
	receive(t, c.sent)
	for _, id := range []string{"null", "0", "-1", "1", `"auth-2"`, "1.5", "{}", "[1]"} {
		c.say(t, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"no"}}`)
	}
	c.say(t, `{"id":"auth-1","result":{"value":"k"}}`)
	if got := receive(t, answer); got.err != nil || string(got.result) != `{"value":"k"}` {
		t.Errorf("the call got %s, %v", got.result, got.err)
	}
	c.say(t, `{"id":"auth-1","result":{"value":"again"}}`)
	c.say(t, `{"id":7,"method":"ping"}`)
	if got := c.wait(t, 1); got[0] != "request 7 ping " { // none of them was a request, or refused, and reading goes on
		t.Errorf("got %q", got)
	}
}

func TestJ8DuplicateIdsAreBothShownSoThatTheSecondCanBeRefused(t *testing.T) {
	in := `{"id":7,"method":"a"}` + "\n" + `{"id":"7","method":"b"}` + "\n" + `{"id":7,"method":"c"}` + "\n"
	want := []string{`request 7 a `, `request "7" b `, `request 7 c `}
	if diff := cmp.Diff(want, serve(t, []byte(in))); diff != "" {
		t.Error(diff)
	}
}

func TestJ9ParamsAndResultsComeByteForByte(t *testing.T) {
	params := `{"z":1,"a":123456789012345678901234567890,"z":2,"t":"<>&\u2028\ud800","n":1.0e+2}`
	if got := serve(t, []byte(`{"id":1,"method":"x","params":`+params+`}`+"\n")); len(got) != 1 || got[0] != "request 1 x "+params {
		t.Errorf("params: %q", got)
	}
	c := open(t, newPeer(), rpc.Options{})
	answer := c.call(t.Context(), "1")
	if sent := receive(t, c.sent); string(sent.Params) != `{"q":"<&>"}` || sent.ID != "1" || sent.Method != "ask" {
		t.Errorf("sent %+v, params %s", sent, sent.Params)
	}
	c.say(t, `{"id":1,"result":`+params+`}`)
	if got := receive(t, answer); got.err != nil || string(got.result) != params {
		t.Errorf("result %s, %v", got.result, got.err)
	}
}

func TestJ9BigParamsCostAFewTimesTheirSize(t *testing.T) {
	line := append(append([]byte(`{"id":1,"method":"x","params":{"t":"`), bytes.Repeat([]byte("a"), 8<<20)...), "\"}}\n"...)
	p := &sink{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := serveAll(t.Context(), frame.NewReader(bytes.NewReader(line)), p); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(line)); p.n != 1 || got > 8 {
		t.Errorf("%d requests, %d times the line was allocated", p.n, got)
	}
}

// sink counts requests.
type sink struct{ n int }

func (*sink) Ready() {}
func (*sink) Decode(b []byte) (protocol.Request, error) {
	return protocol.Request{ID: []byte("1"), Method: "x", Params: bytes.Clone(b)}, nil
}
func (s *sink) Request(protocol.Request) { s.n++ }
func (*sink) Refuse(error)               {}

func TestJ10MissingParamsAreNil(t *testing.T) {
	if got := serve(t, []byte(`{"id":1,"method":"x"}`+"\n")); len(got) != 1 || got[0] != "request 1 x " {
		t.Errorf("got %q", got)
	}
}

func TestJ11ACallFromBesideTheReadingGoroutineDoesNotStopIt(t *testing.T) {
	p := newPeer()
	c := open(t, p, rpc.Options{})
	answers := make(chan outcome, 1)
	p.request = func(r protocol.Request) {
		if r.Method == "login" {
			go func() {
				res, err := c.conn.Call(context.Background(), protocol.Call{ID: "q", Method: "ask"})
				answers <- outcome{res, err}
			}()
		}
	}
	c.say(t, `{"id":1,"method":"login"}`)
	receive(t, c.sent)
	c.say(t, `{"id":2,"method":"cancel"}`) // seen while the call is open
	if got := p.wait(t, 2); got[1] != "request 2 cancel " {
		t.Errorf("got %q", got)
	}
	c.say(t, `{"id":"q","result":1}`)
	if got := receive(t, answers); got.err != nil || string(got.result) != "1" {
		t.Errorf("%s, %v", got.result, got.err)
	}
}

func TestJ12RequestsComeInReadingOrder(t *testing.T) {
	var in strings.Builder
	const n = 20_000
	for i := range n {
		fmt.Fprintf(&in, `{"id":%d,"method":"x"}`+"\n", i)
	}
	got := serve(t, []byte(in.String()))
	for i, g := range got {
		if g != fmt.Sprintf("request %d x ", i) {
			t.Fatalf("request %d is %q", i, g)
		}
	}
	if len(got) != n {
		t.Errorf("%d of %d came", len(got), n)
	}
}

func TestJ12NobodyUsesTheLibrarysHandlersOrStreams(t *testing.T) {
	banned := map[string]bool{
		"AsyncHandler": true, "HandlerWithError": true, "NewBufferedStream": true, "NewPlainObjectStream": true, "VSCodeObjectCodec": true,
		"VarintObjectCodec": true, "PlainObjectCodec": true,
	}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "../../"+path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // the build tells
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "jsonrpc2" && banned[sel.Sel.Name] {
				t.Errorf("%s uses jsonrpc2.%s", set.Position(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestJ15APanicIsAnsweredAndTheConnectionLives(t *testing.T) {
	p := newPeer()
	p.request = func(r protocol.Request) {
		if r.Method == "bad" {
			panic("no good")
		}
	}
	type report struct {
		id    string
		value any
		stack string
	}
	reports := make(chan report, 1)
	c := open(t, p, rpc.Options{Panicked: func(r protocol.Request, v any, stack []byte) { reports <- report{string(r.ID), v, string(stack)} }})
	c.say(t, `{"id":1,"method":"bad"}`)
	c.say(t, `{"id":2,"method":"ping"}`)
	if got := receive(t, reports); got.id != "1" || got.value != "no good" || !strings.Contains(got.stack, "traps_test.go") {
		t.Errorf("reported %+v", got)
	}
	if got := p.wait(t, 2); got[1] != "request 2 ping " {
		t.Errorf("got %q", got)
	}
}

func TestJ17ACallerIsNotHeldUpByAPeerThatDoesNotRead(t *testing.T) {
	c := open(t, newPeer(), rpc.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var answers []<-chan outcome
	for i := range 20 { // nobody reads what is sent; all are queued all the same
		answers = append(answers, c.call(ctx, fmt.Sprint(i)))
	}
	for range answers {
		receive(t, c.sent)
	}
	c.say(t, `{"id":3,"result":"r"}`)
	if got := receive(t, answers[3]); got.err != nil || string(got.result) != `"r"` {
		t.Errorf("%s, %v", got.result, got.err)
	}
	cancel()
	c.to.Close()
	for i, a := range answers {
		if i == 3 {
			continue
		}
		if got := receive(t, a); !errors.Is(got.err, rpc.ErrEnded) && !errors.Is(got.err, context.Canceled) {
			t.Errorf("call %d: %v", i, got.err)
		}
	}
}
