package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMemberFindsWhatDecodingFinds(t *testing.T) {
	const text = ` { "a" : 1 , "text":"x\",\"b\":2" ,"o":{"in":[{"b":[]},{}], "deep":{"text":"no"}},"e":{},"l":[ ], "n":null,"t":true, "f" : -1.5e+7,"\u0061b":"escaped","":"empty","last":[1,2] } `
	var want map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	for name, value := range want {
		if got := Member([]byte(text), name); string(got) != string(value) {
			t.Errorf("%q: %s, want %s", name, got, value)
		}
	}
	for _, c := range [][2]string{{text, "b"}, {text, "in"}, {text, "deep"}, {`{}`, "a"}, {`{}`, ""}, {`[]`, "a"}, {`["a"]`, "a"}, {``, "a"}, {`7`, "a"}, {`{"a":{}}`, "b"}} {
		if got := Member([]byte(c[0]), c[1]); got != nil {
			t.Errorf("%s has no %q: %s", c[0], c[1], got)
		}
	}
}

func TestMembersAreThoseThatDecodingFinds(t *testing.T) {
	const text = ` {"a":1,"a" : "again","\u0061\"":{"a":2}, "":[ ]}`
	var got []string
	for name, value := range Members([]byte(text)) {
		got = append(got, string(name)+"="+string(value))
	}
	if want := []string{`a=1`, `a="again"`, `a"={"a":2}`, `=[ ]`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for range Members([]byte(text)) {
		break // the walk ends where its reader does
	}
	for _, none := range []string{`{}`, ` { } `, `[]`, `["a",1]`, `"a"`, `null`, ``, ` `} {
		for name := range Members([]byte(none)) {
			t.Errorf("%q has a member %q", none, name)
		}
		if IsObject([]byte(none)) != strings.Contains(none, "{") {
			t.Errorf("%q is an object: %v", none, IsObject([]byte(none)))
		}
	}
}

func TestTextIsWhatDecodingMakesOfAString(t *testing.T) {
	for _, j := range []string{`""`, `"plain"`, `"a\n\"\u00e4\\"`, `"\ud800 alone"`, `"\ud83d\ude00"`, "\"bad \xff\"", `"ünï"`} {
		var want string
		if err := json.Unmarshal([]byte(j), &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := Text([]byte(j)); !ok || got != want {
			t.Errorf("%s: %q, %v; want %q", j, got, ok, want)
		}
	}
	for _, j := range []string{``, `"`, `1`, `null`, `true`, `["a"]`, `{"a":"b"}`} {
		if got, ok := Text([]byte(j)); ok || got != "" {
			t.Errorf("%s: %q, %v", j, got, ok)
		}
	}
}

func FuzzMembers(f *testing.F) {
	f.Add(`{"a":{"b":[1,"}"]},"b":"\"","c":[],"a":null}`)
	f.Add(` {"\u0061":"\ud800"} `)
	f.Fuzz(func(t *testing.T, text string) {
		got := map[string]json.RawMessage{}
		for name, value := range Members([]byte(text)) { // ends, whatever it is given
			got[string(name)] = value
		}
		var want map[string]json.RawMessage
		if !utf8.ValidString(text) || json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		if len(got) != len(want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		for name, value := range want {
			if string(got[name]) != string(value) {
				t.Errorf("%q of %q: %q, want %q", name, text, got[name], value)
			}
			plain, ok := Text(value)
			var s string
			if json.Unmarshal(value, &s) == nil && value[0] == '"' != ok || ok && plain != s {
				t.Errorf("%q: %q, %v, want %q", value, plain, ok, s)
			}
		}
	})
}

func FuzzMember(f *testing.F) {
	f.Add(`{"a":{"b":[1,"}"]},"b":"\"","c":[]}`, "b")
	f.Add(`{"":""}`, "")
	f.Fuzz(func(t *testing.T, text, name string) {
		got := Member([]byte(text), name) // never fails, whatever it is given
		var all map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &all) != nil {
			return
		}
		if got != nil && !Valid(got) {
			t.Errorf("%q of %q: %q is no JSON", name, text, got)
		}
		if value, ok := all[name]; !ok && got != nil && !odd(name) {
			t.Errorf("%q of %q: %q, but there is none (%q)", name, text, got, value)
		}
	})
}

// odd names are read by encoding/json as others: it mends what is no UTF-8.
func odd(name string) bool {
	b, _ := json.Marshal(name)
	var again string
	_ = json.Unmarshal(b, &again)
	return again != name
}

func BenchmarkMember(b *testing.B) {
	event := []byte(`{"type":"turn_started","ts":"2026-11-30T17:35:43.249546+00:00","event_id":"e0f70e76cc80d89ff47c8816ee26bd5d","session_id":"20261130_173537_47d23019","turn_id":"3f5d3b825aa56a72163ebf9794e6bc77","user_message_chars":0,"operation":"prompt","origin":"user","user_message_id":"c2b7471e71ff7d79d65c5b112ee19e90","input":"","input_truncated":false}`)
	for b.Loop() {
		if string(Member(event, "origin")) != `"user"` {
			b.Fatal("not found")
		}
	}
}
