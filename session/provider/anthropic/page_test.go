package anthropic

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestThePageOfModelsSaysWhatTheTablesHold(t *testing.T) {
	page, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	number := func(n int) string {
		if n == 0 {
			return "unknown"
		}
		return fmt.Sprint(n)
	}
	want := ""
	for _, row := range table {
		name, way, efforts := "`"+row.prefix+"`", map[string]string{thinksNot: "none", thinksOn: "budget", thinksFree: "adaptive"}[row.thinking], strings.Join(row.efforts, ", ")
		if row.prefix == "" {
			name = "anything else"
		}
		if efforts == "" {
			efforts = "–"
		}
		want += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", name, number(row.window), number(row.output), way, efforts)
	}
	for _, effort := range budgetEfforts {
		want += fmt.Sprintf("\x00| %s | %d |\n", effort, rooms[effort])
	}
	want += fmt.Sprintf("\x00| xhigh, max | %d |\n", rooms["max"])
	if rooms["xhigh"] != rooms["max"] {
		t.Error("xhigh and max are one row of the page")
	}
	for _, piece := range strings.Split(want, "\x00") {
		if !strings.Contains(string(page), piece) {
			t.Errorf("docs/models.md lacks\n%s", piece)
		}
	}
}

func TestTheTableIsReadFromTheMostSpecialRowOn(t *testing.T) {
	for i, row := range table {
		for _, before := range table[:i] {
			if strings.HasPrefix(row.prefix, before.prefix) {
				t.Errorf("%q is never reached behind %q", row.prefix, before.prefix)
			}
		}
	}
}
