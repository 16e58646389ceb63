package portable

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func start(t *testing.T, body string) (StartExecution, error) {
	t.Helper()
	text, err := Text([]byte(body))
	if err != nil {
		return StartExecution{}, err
	}
	return ReadStart(text)
}

func TestAStartIsReadByExactNamesAndTypes(t *testing.T) {
	const good = `{"conversationId":"c","providerId":"p","input":""`
	for _, bad := range []string{
		`null`, `[]`, `42`, `"x"`, `{}`, good + `,"config":null}`, good + `,"config":[]}`, good + `,"requiredCapabilities":null}`,
		good + `,"requiredCapabilities":[""]}`, good + `,"requiredCapabilities":[1]}`, good + `,"requiredCapabilities":{}}`, good + `,"idempotencyKey":""}`,
		good + `,"idempotencyKey":null}`, good + `,"idempotencyKey":"` + strings.Repeat("k", 201) + `"}`, good + `,"input":null}`,
		`{"conversationId":"","providerId":"p","input":""}`, `{"conversationId":"c","providerId":"p","INPUT":"x"}`,
	} {
		if _, err := start(t, bad); err == nil {
			t.Errorf("%.60s is taken", bad)
		} else if e, ok := errors.AsType[*Error](err); !ok || e.Code != Validation || e.HTTPStatus() != 400 || e.Message != "Invalid execution request" {
			t.Errorf("%.60s: %v", bad, err)
		}
	}
	r, err := start(t, "\xef\xbb\xbf"+good+`,"input":"é","extra":1,"requiredCapabilities":["b","a","b"],"config":{ "n": 9007199254740993, "f":1.0 },"idempotencyKey":"`+strings.Repeat("😀", 200)+`"}`)
	if err != nil {
		t.Fatal(err)
	}
	if r.Input != "é" || strings.Join(r.Capabilities, ",") != "a,b" || string(r.Config) != `{"n":9007199254740993,"f":1.0}` {
		t.Errorf("read %+v", r)
	}
}

func TestABodyThatIsNoSoundJSONIsRefused(t *testing.T) {
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}` }
	for _, c := range []struct{ name, body, text string }{
		{"syntax", `{`, "not valid JSON"},
		{"trailing text", `{}x`, "not valid JSON"},
		{"single quotes", `{'a':1}`, "not valid JSON"},
		{"invalid UTF-8", "{\"a\xff\":1}", "not valid JSON"},
		{"lone high surrogate", `{"a":"\ud83d"}`, "not valid JSON"},
		{"lone low surrogate", `{"a":"\ude00"}`, "not valid JSON"},
		{"high surrogate before text", `{"a":"\ud83dx"}`, "not valid JSON"},
		{"high surrogate before another escape", `{"a":"\ud83d\n"}`, "not valid JSON"},
		{"number out of range", `{"a":1e999}`, "not valid JSON"},
		{"257 deep", deep(257), "nested too deeply"},
		{"20000 deep", deep(20000), "nested too deeply"},
	} {
		if _, err := Text([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, good := range []string{deep(256), `{"a":"\ud83d\ude00"}`, `{"a":"\\ud83d"}`, `{"a":-1.5e-3,"b":[1e308]}`, `{"":"\u0000"}`} {
		if _, err := Text([]byte(good)); err != nil {
			t.Errorf("%.40s: %v", good, err)
		}
	}
	if text, err := Text([]byte(" \t\r\n")); text != nil || err != nil {
		t.Errorf("white space: %q, %v", text, err)
	}
}

func TestEquivalentStartsHaveOneFingerprint(t *testing.T) {
	const head = `{"conversationId":"c","providerId":"p","input":"x",`
	digest := func(rest string) string {
		r, err := start(t, head+rest+"}")
		if err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		d, err := r.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, pair := range [][2]string{
		{`"config":{"a":1,"b":[{"x":1,"y":2}]},"requiredCapabilities":["m","n"]`, `"config":{"b":[{"y":2,"x":1.0}],"a":1e0},"requiredCapabilities":["n","m","n"]`},
		{`"config":{}`, `"extra":1`},
		{`"config":{"n":1}`, `"config":{"n":0.1e1}`},
		{`"config":{"n":-0}`, `"config":{"n":0}`},
		{`"config":{"\u00e9":1,"e\u0301":2}`, `"config":{"e\u0301":2,"é":1}`},
	} {
		if digest(pair[0]) != digest(pair[1]) {
			t.Errorf("%s differs from %s", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{`"config":{"n":9007199254740992}`, `"config":{"n":9007199254740993}`},
		{`"config":{"l":[1,2]}`, `"config":{"l":[2,1]}`},
		{`"config":{"m":null}`, `"config":{}`},
		{`"config":{}`, `"requiredCapabilities":["a"]`},
	} {
		if digest(pair[0]) == digest(pair[1]) {
			t.Errorf("%s equals %s", pair[0], pair[1])
		}
	}
}

func TestCancelsAndAnswersAreRead(t *testing.T) {
	for _, bad := range []string{`[]`, `null`, `{"reason":""}`, `{"reason":4}`, `{"reason":null}`, `{"reason":"` + strings.Repeat("😀", 501) + `"}`} {
		if _, err := ReadCancel(json.RawMessage(bad)); err == nil {
			t.Errorf("cancel %.30s is taken", bad)
		}
	}
	if r, err := ReadCancel(json.RawMessage(`{"reason":"` + strings.Repeat("😀", 500) + `"}`)); err != nil || utf8.RuneCountInString(*r) != 500 {
		t.Errorf("500 characters: %v", err)
	}
	if r, err := ReadCancel(nil); r != nil || err != nil {
		t.Errorf("no body: %v, %v", r, err)
	}
	for _, bad := range []string{`[]`, `null`, `{"approved":"yes"}`, `{"approved":null}`, `{"metadata":[]}`, `{"metadata":null}`} {
		if _, err := ReadResponse(json.RawMessage(bad)); err == nil {
			t.Errorf("answer %s is taken", bad)
		}
	}
	for body, want := range map[string]string{`{}`: "", `{"value":"a"}`: "a", `{"value":null}`: "", `{"value":{"optionId":"o"}}`: "o", `{"value":3}`: ""} {
		if r, err := ReadResponse(json.RawMessage(body)); err != nil || r.Choice() != want {
			t.Errorf("%s picks %q, %v", body, r.Choice(), err)
		}
	}
}

func TestNamesThatObjectsInheritElsewhereAreAbsentCapabilities(t *testing.T) {
	m := NewManifest("p", "P", "1", "embedded", "parallel", map[string]string{"a": Native, "off": Absent, "d": Degraded})
	err := m.Preflight([]string{"A", "__proto__", "a", "d", "off", "toString"})
	if err == nil || err.HTTPStatus() != 422 {
		t.Fatalf("preflight: %v", err)
	}
	if got := err.Details["capabilities"].([]string); strings.Join(got, ",") != "A,__proto__,off,toString" {
		t.Errorf("missing %v", got)
	}
	if err := m.Preflight([]string{"a", "d"}); err != nil {
		t.Errorf("offered: %v", err)
	}
}

// FuzzReadBodies holds the decoders to this: what they take can be told again, and nothing panics.
func TestAConversationsMetadataIsAnObjectWhateverIsStored(t *testing.T) {
	for stored, want := range map[string]string{"": `{}`, "null": `{}`, `{"a":1}`: `{"a":1}`} {
		if c := NewConversation("conv_1", time.Now(), json.RawMessage(stored)); string(c.Metadata) != want {
			t.Errorf("stored %q: shown %s, want %s", stored, c.Metadata, want)
		}
	}
}

func FuzzReadBodies(f *testing.F) {
	for _, s := range []string{`{"conversationId":"c","providerId":"p","input":"x","config":{"a":[1,{"b":null}]}}`, `{"reason":"x"}`, `{"approved":true,"value":{"optionId":"a"}}`, `{"metadata":{"\u0000":1e21}}`, "\xef\xbb\xbf{}", `{"a":"\ud83d\ude00"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := Text(body)
		if err != nil || text == nil {
			return
		}
		if !json.Valid(text) || !utf8.Valid(text) {
			t.Fatalf("taken as JSON: %q", text)
		}
		if r, err := ReadStart(text); err == nil {
			if _, err := r.Digest(); err != nil {
				t.Fatalf("no fingerprint of %q: %v", text, err)
			}
			if !json.Valid(r.Config) || utf8.RuneCountInString(r.Key) > 200 {
				t.Fatalf("read %+v", r)
			}
		}
		if m, err := ReadConversation(text); err == nil && !json.Valid(m) {
			t.Fatalf("metadata %q", m)
		}
		_, _ = ReadCancel(text)
		if r, err := ReadResponse(text); err == nil {
			_, _ = r.Choice(), r.Words()
		}
		_, _ = ReadArtifact(text)
	})
}
