package openai

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestThePageOfModelsSaysWhatTheTableHolds(t *testing.T) {
	page, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for i, row := range table {
		efforts := strings.Join(row.efforts, ", ")
		if efforts == "" {
			efforts = "–"
		}
		want += fmt.Sprintf("| `%s` | %d | %s | %s |\n", row.prefix, row.window, efforts, map[bool]string{true: "yes", false: "no"}[row.images])
		for _, before := range table[:i] {
			if rest, ok := strings.CutPrefix(row.prefix, before.prefix); ok && (rest == "" || strings.IndexByte("-.:@", rest[0]) >= 0) {
				t.Errorf("%q is never reached behind %q", row.prefix, before.prefix)
			}
		}
	}
	if !strings.Contains(strings.ReplaceAll(string(page), "\r\n", "\n"), want) {
		t.Errorf("docs/models.md lacks\n%s", want)
	}
}
