package peers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// Talks plays the transcripts that a pattern names. play returns the sections as they were spoken, by what spoke them; those of the first
// have to be in the file as they are. With rewrite they are put there.
func Talks(t *testing.T, pattern string, rewrite bool, play func(t *testing.T, ar *txtar.Archive) []Spoken) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			spoken := play(t, ar)
			if t.Failed() {
				return
			}
			if rewrite {
				put(t, file, ar, spoken)
			}
			for _, s := range spoken {
				if d := cmp.Diff(strings.Split(Section(ar, s.Section), "\n"), strings.Split(s.Text, "\n")); d != "" {
					t.Errorf("%s of %s (-want +got, -update rewrites):\n%s", s.Section, s.By, d)
				}
			}
		})
	}
}

// Spoken is a section of a transcript as it was spoken.
type Spoken struct {
	Section string
	By      string // what spoke it
	Text    string
}

// put writes the file with what was spoken. Of several texts of a section the first counts.
func put(t *testing.T, file string, ar *txtar.Archive, spoken []Spoken) {
	t.Helper()
	done := map[string]bool{}
	for _, s := range spoken {
		for i := range ar.Files {
			if ar.Files[i].Name == s.Section && !done[s.Section] {
				ar.Files[i].Data, done[s.Section] = []byte(s.Text), true
			}
		}
	}
	if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Section is the text of a section of a transcript, "" for none.
func Section(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}
