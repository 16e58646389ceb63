package dispatcher_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// checker validates lines against the schema of the protocol.
type checker struct {
	t    *testing.T
	defs json.RawMessage
	meth map[string]struct {
		Result struct {
			Ref string `json:"$ref"`
		} `json:"result"`
	}
	known map[string]*jsonschema.Resolved
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	text, err := rindv2.Schema()
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{t: t, known: map[string]*jsonschema.Resolved{}}
	var doc struct {
		Defs    json.RawMessage `json:"$defs"`
		Methods json.RawMessage `json:"methods"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	c.defs = doc.Defs
	if err := json.Unmarshal(doc.Methods, &c.meth); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *checker) validate(ref string, v any) error {
	r := c.known[ref]
	if r == nil {
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(`{"$ref":"`+ref+`","$defs":`+string(c.defs)+`}`), &s); err != nil {
			c.t.Fatal(err)
		}
		var err error
		if r, err = s.Resolve(nil); err != nil {
			c.t.Fatal(err)
		}
		c.known[ref] = r
	}
	return r.Validate(v)
}

var (
	number = regexp.MustCompile(`:(?:<n>|"<(?:n|ms|unix|cursor[0-9]+)>")`)
	asked  = regexp.MustCompile(`^([A-Z])> (\S+) (\S+)`)
)

func TestEveryLineOfTheTranscriptsIsOfTheSchema(t *testing.T) {
	files, err := filepath.Glob("../fixtures/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	c := newChecker(t)
	lines := 0
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		methods := map[string]string{} // by connection and id
		for _, row := range strings.Split(peers.Section(ar, "talk"), "\n") {
			if g := asked.FindStringSubmatch(row); g != nil {
				methods[g[1]+g[2]] = g[3]
			}
			if len(row) < 3 || row[1:3] != "< " {
				continue
			}
			text := number.ReplaceAllString(row[3:], ":1")
			text = strings.ReplaceAll(text, `"commands":["…"]`, `"commands":[]`)
			var l struct {
				Kind   string          `json:"kind"`
				Method string          `json:"method"`
				ID     json.RawMessage `json:"request_id"`
				Result json.RawMessage `json:"result"`
			}
			var v any
			if json.Unmarshal([]byte(text), &l) != nil || json.Unmarshal([]byte(text), &v) != nil {
				t.Errorf("%s: not JSON: %s", file, text)
				continue
			}
			lines++
			ref := "#/$defs/ResponseLine"
			switch {
			case l.Kind == "request":
				ref = "#/$defs/RequestLine"
			case l.Kind == "event" && l.Method == rindv2.MethodAuthUpdate:
				ref = "#/$defs/AuthUpdateLine"
			case l.Kind == "event" && l.Method == rindv2.MethodExecution:
				ref = "#/$defs/ExecutionLine"
			case l.Kind == "event":
				ref = "#/$defs/EventLine"
			}
			if err := c.validate(ref, v); err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(file), err, text)
			}
			if l.Result == nil {
				continue
			}
			method := methods[row[:1]+string(l.ID)]
			var result any
			if err := json.Unmarshal(l.Result, &result); err != nil {
				t.Fatal(err)
			}
			if err := c.validate(c.meth[method].Result.Ref, result); err != nil {
				t.Errorf("%s: result of %s: %v\n%s", filepath.Base(file), method, err, l.Result)
			}
		}
	}
	if lines < 200 {
		t.Errorf("only %d lines were checked", lines)
	}
}
