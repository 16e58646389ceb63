package protocol

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// documented is one row of docs/protocol/catalogue.md.
type documented struct{ class, prune, told, portable string }

// rows reads the table of docs/protocol/catalogue.md. A row may name several kinds ("tool_input_started, _delta, _ended (3 kinds)").
func rows(t *testing.T) map[string]documented {
	t.Helper()
	text, err := os.ReadFile("../docs/protocol/catalogue.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]documented{}
	name := regexp.MustCompile(`_?[a-z]+(?:[._][a-z]+)*`)
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 9 || !regexp.MustCompile(`^ *[0-9]+ *$`).MatchString(cells[1]) {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		d := documented{class: cells[3], prune: cells[4], told: cells[5], portable: cells[6]}
		title, _, _ := strings.Cut(cells[2], " (")
		title, _, _ = strings.Cut(title, ", first")
		title, _, _ = strings.Cut(title, ", origin")
		first := ""
		for _, n := range name.FindAllString(title, -1) {
			if strings.HasPrefix(n, "_") { // the end of a name like the first one's
				n = first[:strings.LastIndex(first, "_")] + n
			} else {
				first = n
			}
			if _, twice := out[n]; !twice {
				out[n] = d
			}
		}
	}
	return out
}

func TestEveryKindIsInTheDocumentedCatalogueAsItIsHere(t *testing.T) {
	docs := rows(t)
	classes := map[Class]string{Fact: "fact", Increment: "incr", Note: "note"}
	prunes := map[Prune]string{Keep: "–", PruneEditor: "ed", PruneAll: "all", PruneOlder: "all, newest"}
	told := map[Durability]string{NotTold: "no", Incremental: "I", Durable: "D", DurableTask: "DT"}
	seen := map[string]bool{}
	for k := Kind(1); k < kindEnd; k++ {
		i := k.Info()
		d, ok := docs[i.Name]
		if !ok {
			t.Errorf("kind %d (%s) has no row in docs/protocol/catalogue.md", k, i.Name)
			continue
		}
		seen[i.Name] = true
		if d.class != classes[i.Class] {
			t.Errorf("%s: class %s, documented %q", i.Name, classes[i.Class], d.class)
		}
		if !strings.HasPrefix(d.prune, prunes[i.Prune]) {
			t.Errorf("%s: prune %s, documented %q", i.Name, prunes[i.Prune], d.prune)
		}
		words := strings.Fields(strings.NewReplacer(",", " ", "(", " ").Replace(d.told))
		if i.Told == NotTold && words[0] != "no" || i.Told != NotTold && !contains(words, told[i.Told]) {
			t.Errorf("%s: told %s, documented %q", i.Name, told[i.Told], d.told)
		}
		if (i.Portable == "") != (d.portable == "0") {
			t.Errorf("%s: portable %q, documented P = %s", i.Name, i.Portable, d.portable)
		}
		if b := i.New(); b.Kind() != k {
			t.Errorf("%s makes a body of kind %s", i.Name, b.Kind())
		}
	}
	for name := range docs {
		if !seen[name] {
			t.Errorf("docs/protocol/catalogue.md has %q, the code has not", name)
		}
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// fill sets every field of a body to something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		switch v.Type() {
		case reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(`{"a":1}`))
		case reflect.TypeFor[[]json.RawMessage]():
			v.Set(reflect.ValueOf([]json.RawMessage{json.RawMessage(`{"a":1}`)}))
		default:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		val := reflect.New(v.Type().Elem()).Elem()
		fill(val)
		v.SetMapIndex(reflect.ValueOf("k"), val)
	case reflect.String:
		v.SetString("text \"\u2028<é😀\n")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.25)
	default:
		if v.CanInt() {
			v.SetInt(7)
		} else if v.CanUint() {
			v.SetUint(3)
		}
	}
}

func TestEveryBodyReadsBackAsItWasWritten(t *testing.T) {
	h := Head{Time: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC), EventID: strings.Repeat("e", 32), Session: "s1", Turn: TurnID(strings.Repeat("a", 32))}
	for k := Kind(1); k < kindEnd; k++ {
		for _, filled := range []bool{false, true} {
			want := k.Info().New()
			if filled {
				fill(reflect.ValueOf(want).Elem())
			}
			if r, ok := want.(*ReasoningCompleted); ok {
				r.More.Hidden = false // hidden reasoning has no event to read its content from
			}
			e, err := Encode(h, want)
			if err != nil {
				if !filled {
					continue // raw members that must be there
				}
				t.Errorf("%s: %v", k, err)
				continue
			}
			if e.Event != nil && !json.Valid(e.Event) || e.More != nil && !json.Valid(e.More) {
				t.Errorf("%s: event %s more %s", k, e.Event, e.More)
			}
			if strings.Contains(string(e.Event), "\u2028") {
				t.Errorf("%s: a raw line separator in %s", k, e.Event)
			}
			got, err := Decode(&e)
			if err != nil {
				t.Errorf("%s: %v", k, err)
				continue
			}
			if k.Info().Told == NotTold && e.Event != nil {
				t.Errorf("%s has an event", k)
			}
			if k.Info().Told != NotTold && EventID(e.Event) != h.EventID {
				t.Errorf("%s: event_id %q", k, EventID(e.Event))
			}
			a, _ := json.Marshal([]any{want, want.more()})
			b, _ := json.Marshal([]any{got, got.more()})
			if filled && string(a) != string(b) {
				t.Errorf("%s:\nwrote %s\nread  %s", k, a, b)
			}
		}
	}
}

func TestPortableCountsFollowTheCatalogue(t *testing.T) {
	open := Numbering{Execution: true, Open: true}
	second := &AssistantDelta{}
	second.More.Separator = true
	parts := &UserMessage{}
	parts.More.Origin, parts.More.Parts = OriginUser, []Part{{Kind: "image"}}
	firstChange := &FileChange{}
	firstChange.More.First = true
	for _, c := range []struct {
		name string
		b    Body
		n    Numbering
		want int
	}{
		{"a delta", &AssistantDelta{}, open, 1},
		{"the first delta of a second message", second, open, 2},
		{"a plain user message", &UserMessage{}, open, 0},
		{"a user message with parts", parts, open, 1},
		{"a message", &AssistantMessageCompleted{}, open, 1},
		{"a message of a parallel provider", &AssistantMessageCompleted{}, Numbering{Execution: true, Open: true, Parallel: true}, 0},
		{"an approval by a client", &ApprovalResolved{By: ByClient}, open, 1},
		{"an approval closed by cancel", &ApprovalResolved{By: ByCancel}, open, 0},
		{"a file's first change", firstChange, open, 2},
		{"a file's next change", &FileChange{}, open, 1},
		{"a good end", &TurnCompleted{}, open, 2},
		{"a bad end", &TurnFailed{}, open, 1},
		{"anything of a compaction", &TurnStarted{}, Numbering{Open: true}, 0},
		{"a task of an ended turn", &TaskUpdated{}, Numbering{Execution: true}, 0},
	} {
		if got := PortableCount(c.b, c.n); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func FuzzStringsAreEscapedAsTheStandardLibraryDoes(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\"\\/<>&", "\u2028\u2029é😀", "\xff\xc3(", "\b\f\n\r\t\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendString(nil, s); string(got) != string(want) {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	})
}

func TestCanonicalTextIsEqualForEqualValuesOnly(t *testing.T) {
	canon := func(s string) string {
		b, err := Canonical(strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, same := range [][]string{
		{"1", "1.0", "1e0", "0.1e1", "10e-1", "1E+0"},
		{"0", "-0", "0.0", "0e99"},
		{`{"a":1,"b":[2,1]}`, `{ "b":[2.0,1], "a":1e0 }`},
		{`"é"`, `"\u00e9"`},
		{"1e400", "10e399"},
	} {
		for _, s := range same[1:] {
			if canon(s) != canon(same[0]) {
				t.Errorf("%s and %s differ: %s, %s", same[0], s, canon(same[0]), canon(s))
			}
		}
	}
	for _, d := range [][2]string{{"9007199254740992", "9007199254740993"}, {"[1,2]", "[2,1]"}, {`{"a":null}`, `{}`}, {"1", `"1"`}, {"1", "-1"}, {`"e\u0301"`, `"é"`}} {
		if canon(d[0]) == canon(d[1]) {
			t.Errorf("%s and %s are equal", d[0], d[1])
		}
	}
}

func TestSessionIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"20260102_030405_0a1b2c3d": true, "a": true, "A.b-c_d": true, "": false, ".a": false, "-a": false, "a/b": false, "a..b": false, "a b": false, "é": false,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
	} {
		if ValidSessionID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
	id := NewSessionID(RandomIDs{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600)))
	if !ValidSessionID(string(id)) || !strings.HasPrefix(string(id), "20260102_020405_") || len(id) != 24 {
		t.Errorf("made %q", id)
	}
}
