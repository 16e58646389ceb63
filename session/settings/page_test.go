package settings

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write docs/settings.md anew")

func TestTheSettingsPageIsCurrent(t *testing.T) {
	const path = "../../docs/settings.md"
	want := page()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
		t.Error("docs/settings.md does not say what the table says: run go generate ./session/settings")
	}
}

func page() []byte {
	var b bytes.Buffer
	b.WriteString(`# Settings

<!-- Written by go generate ./session/settings from the table in session/settings/table.go. -->

The settings are one file, ` + "`settings.json`" + ` in the data root: ` + "`$RIND_HOME`" + `, else ` + "`~/.rind`" + `. It is one JSON object without comments
or trailing commas, in UTF-8. A missing file is fine. Members that no setting has are ignored; ` + "`rind config check`" + ` lists them.
` + "`rind config set KEY VALUE`" + ` changes one setting and leaves the rest of the file as it is. A member of an entry
is named with dots, ` + "`providers.NAME.model`" + `; VALUE is the text of a string as it is, JSON of everything else.

With no provider, baseUrl or apiKey set, the first of these environment variables that is set selects the provider:
` + strings.Join(KeyVariables(), ", ") + `. A key from the environment goes to the address it was made for and to no other: a provider with
a baseUrl of its own needs an apiKey of its own, which may be ` + "`\"$NAME\"`, or `\"\"`" + ` where none is needed.

` + "`rind login`" + ` puts a key into the system's keyring, or where there is none into this file, which only its owner can read. Where several
are set, the environment variable of the provider wins over the keyring, and that over the file; an ` + "`apiKey`" + ` that names a variable
means that variable.

A local model:

` + "```json" + `
{"baseUrl": "http://localhost:11434/v1", "apiKey": "", "model": "qwen3"}
` + "```" + `

Settings inside a workspace (` + "`.rind/settings.json`" + `) are read only while the workspace is trusted; whatever changes in
` + "`" + strings.Join(enabling, "`, `") + "`" + ` asks for trust again. A provider named there is taken whole: no key of your file goes with it.

## The file
`)
	rowsOf(&b, top)
	b.WriteString("\n## Providers that are built in\n\n| name | speaks | address | key | model |\n|---|---|---|---|---|\n")
	for _, p := range builtin {
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s |\n", p.Name, p.Type, p.BaseURL, p.Variable, p.Model)
	}
	fmt.Fprintf(&b, "| `%s` | fixed rules, no AI | – | – | – |\n", Demo)
	b.WriteString("\n## One entry of `providers`\n\nThe `model` and `reasoningEffort` beside `provider` win over those of the entry it names. " +
		"Paths count from the file's folder.\n")
	rowsOf(&b, perProvider)
	return b.Bytes()
}

func rowsOf(b *bytes.Buffer, rows []Row) {
	b.WriteString("\n| member | type | default | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		kind := map[string]string{"list": "list of strings", "map": "object of strings"}[r.Type]
		if kind == "" {
			kind = r.Type
		}
		if r.Enum != nil {
			kind = strings.Join(r.Enum, ", ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", r.Key, kind, r.Default, strings.ReplaceAll(r.Text, "|", `\|`))
	}
}

// tags lists the json tags of a struct and of what it embeds.
func tags(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		if f.Anonymous {
			for k, v := range tags(f.Type) {
				out[k] = v
			}
		} else if tag := f.Tag.Get("json"); tag != "-" {
			out[tag] = f.Type
		}
	}
	return out
}

func TestEveryRowHasAFieldOfItsTypeAndEveryFieldARow(t *testing.T) {
	kinds := map[string]string{
		"string": "*string", "integer": "*int", "boolean": "*bool", "list": "[]string", "map": "map[string]string", "object": "json.RawMessage",
	}
	for _, c := range []struct {
		rows []Row
		of   reflect.Type
	}{{top, reflect.TypeFor[document]()}, {perProvider, reflect.TypeFor[named]()}} {
		fields := tags(c.of)
		for _, r := range c.rows {
			if r.Key == "providers" {
				continue // read entry by entry
			}
			f, ok := fields[r.Key]
			if !ok || f.String() != kinds[r.Type] {
				t.Errorf("%s: the table says %s, %s has %v", r.Key, r.Type, c.of.Name(), f)
			}
			delete(fields, r.Key)
		}
		for tag := range fields {
			t.Errorf("%s of %s has no row", tag, c.of.Name())
		}
	}
	for _, r := range Rows() {
		if !strings.HasSuffix(r.Text, ".") && !strings.HasSuffix(r.Text, ").") {
			t.Errorf("%s: its text is no sentence: %q", r.Key, r.Text)
		}
	}
}

func TestTheSchemaAcceptsWhatWeReadAndRefusesWhatWeRefuse(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{
		`{}`, `{"model":null,"approvalMode":null}`, `{"unknown":1}`, `{"providers":{"a":{"type":"acp","command":"x","args":["y"]}}}`,
		`{"approvalMode":"no"}`, `{"images":"yes"}`, `{"contextWindow":0}`, `{"providers":{"a":{"type":"x"}}}`, `{"providers":{"a.b":{}}}`,
		`{"headers":{"a":1}}`, `[]`,
	} {
		_, ours := Parse("x", []byte(src))
		var v any
		if err := json.Unmarshal([]byte(src), &v); err != nil {
			t.Fatal(err)
		}
		if theirs := resolved.Validate(v); (ours == nil) != (theirs == nil) {
			t.Errorf("%s: we say %v, the schema says %v", src, ours, theirs)
		}
	}
	if !slices.ContainsFunc(Rows(), func(r Row) bool { return r.Key == "providers.NAME.passEnv" }) {
		t.Error("the rows of one provider are missing from Rows")
	}
}
