package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

var texts = []string{
	``, ` `, `null`, `nul`, `nulll`, `true`, `falsy`, `""`, `"`, `"\`, `"\"`, `"a\u12aF"`, `"a\u12g0"`, `"\u12`, `"\x"`, "\"a\nb\"", "\"\x7f\xff\"",
	`0`, `-0`, `00`, `-`, `1.`, `1.5`, `.5`, `1e`, `1e+`, `1E-07`, `1.0e5`, `+1`, `1 2`, `-a`,
	`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a" : [ ] , "b":{}}`, `{a:1}`, `{"a":1]`, `{"a":1}}`, `{"a":1`, `{1:2}`, `{"a",1}`,
	`[]`, `[1,]`, `[,1]`, `[1 2]`, `[1,[2,[3]]]`, `[}`, `]`, `}`, `,`, `:`, `[[]`, `[{},[],"",0,true,null]`, " [1]\t\r\n", "[1]\v",
	`{"type":"assistant_delta","ts":"2026-01-02T03:04:05.000006+00:00","text":"a \"word\" of \\ 8 bytes\u2028 and ünïcödé"}`,
	`"1234567` + "\x1f" + `"`, `"1234567\"12345678"`, `"12345678` + "\x00" + `"`, `"!#[]^~ !#[]^~ !#[]"`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat("}", 40),
}

func TestValidSaysWhatTheStandardLibrarySays(t *testing.T) {
	for _, s := range texts {
		if got, want := Valid([]byte(s)), json.Valid([]byte(s)); got != want {
			t.Errorf("%.60q: %v, json.Valid says %v", s, got, want)
		}
	}
	for c := range 256 { // each byte at each place of the eight that are looked at together
		for at := range 10 {
			b := []byte(`"0123456789"`)
			b[1+at] = byte(c)
			if got, want := Valid(b), json.Valid(b); got != want {
				t.Errorf("%q: %v, json.Valid says %v", b, got, want)
			}
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range texts {
		if len(s) < 1000 {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := Valid(b), json.Valid(b); got != want {
			t.Fatalf("%q: %v, json.Valid says %v", b, got, want)
		}
	})
}

// BenchmarkValid looks at what an entry of a streamed answer holds.
func BenchmarkValid(b *testing.B) {
	event := []byte(`{"type":"assistant_delta","ts":"2026-11-30T14:19:52.763676+00:00","event_id":"f58c42970a22c37b783369cc709840f2","session_id":"20261130_141952_5f32a97f","turn_id":"429b8b3119dd5f7b5f82a51603512974","text":"word "}`)
	for name, valid := range map[string]func([]byte) bool{"ours": Valid, "encoding-json": json.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(event)))
			for b.Loop() {
				if !valid(event) {
					b.Fatal("not valid")
				}
			}
		})
	}
}
