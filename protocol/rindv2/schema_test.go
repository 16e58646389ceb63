package rindv2_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol/rindv2"
)

var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), string(got)); diff != "" {
		t.Errorf("%s is out of date (-file +now); read the difference, then run with -update:\n%s", path, diff)
	}
}

func TestTheSchemaAndTheDeclarationsAreThoseOfTheCodec(t *testing.T) {
	schema, err := rindv2.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/schema.json", schema)
	golden(t, "testdata/rind-v2.d.ts", rindv2.TypeScript())
}

// Clients are written against the schema: whoever changes it says what that means for them.
func TestAChangedSchemaHasAnEntryInTheChangelog(t *testing.T) {
	schema, err := rindv2.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var tight bytes.Buffer
	if err := json.Compact(&tight, schema); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(tight.Bytes())
	want := hex.EncodeToString(sum[:8])
	log, err := os.ReadFile("../../docs/protocol/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile("(?m)^## .*schema `([0-9a-f]{16})`").FindSubmatch(log)
	if entry == nil || string(entry[1]) != want {
		t.Errorf("the newest entry of docs/protocol/CHANGELOG.md is not of this schema: add one headed with schema `%s`", want)
	}
}

func TestEveryReferenceOfTheSchemaLeadsSomewhere(t *testing.T) {
	schema, err := rindv2.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Defs    map[string]json.RawMessage `json:"$defs"`
		Methods map[string]struct{ Params, Result json.RawMessage }
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		t.Fatal(err)
	}
	refs := regexp.MustCompile(`#/\$defs/([A-Za-z]+)`).FindAllSubmatch(schema, -1)
	if len(refs) < 100 {
		t.Fatalf("only %d references found", len(refs))
	}
	used := map[string]bool{"RequestLine": true, "ResponseLine": true, "AuthPromptParams": true, "AuthPromptAnswer": true, "AuthUpdateLine": true, "ExecutionLine": true}
	for _, r := range refs {
		used[string(r[1])] = true
		if doc.Defs[string(r[1])] == nil {
			t.Errorf("%s is named and not described", r[1])
		}
	}
	for name := range doc.Defs {
		if !used[name] {
			t.Errorf("%s is described and not used", name)
		}
	}
	if len(doc.Methods) != len(rindv2.Methods()) {
		t.Errorf("%d of %d methods are described", len(doc.Methods), len(rindv2.Methods()))
	}
}

func TestEveryMethodOfTheContractIsInTheTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/protocol/rind-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, m := range rindv2.Methods() {
		if have[m.Name] {
			t.Errorf("%s stands in the table twice", m.Name)
		}
		have[m.Name] = true
	}
	_, table, _ := strings.Cut(string(doc), "\n## 4. Methods")
	table, _, _ = strings.Cut(table, "\n### 4.1")
	found := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.HasPrefix(strings.TrimSpace(cells[1]), "-") {
			continue
		}
		for _, name := range methodsOf(cells[1]) {
			found++
			if !have[name] {
				t.Errorf("%s of section 4 is not in the table", name)
			}
		}
	}
	if found < len(have)-1 {
		t.Errorf("%d methods found in section 4, the table has %d", found, len(have))
	}
}

// methodsOf reads a cell of names, where later ones may leave out what they share with the first.
func methodsOf(cell string) (names []string) {
	cell = strings.NewReplacer("(ours)", "", "…/", "rind/session/").Replace(cell)
	for group := range strings.SplitSeq(cell, ";") {
		base := ""
		for name := range strings.FieldsFuncSeq(group, func(r rune) bool { return r == ',' || r == '|' }) {
			for part := range strings.SplitSeq(name, " / ") {
				part = strings.TrimSpace(part)
				switch {
				case part == "" || part == "method":
					continue
				case base == "" || strings.Contains(part, "/"):
					base = part[:strings.LastIndexByte(part, '/')+1]
				default:
					part = base + part
				}
				names = append(names, part)
			}
		}
	}
	return names
}
