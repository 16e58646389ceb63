//go:build unix

package shell_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// images keeps contents in memory.
type images map[string]string

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (m images) Keep(_ context.Context, _ session.SessionID, data []byte) (string, error) {
	m[digest(string(data))] = string(data)
	return digest(string(data)), nil
}

func (m images) Image(_ context.Context, _ session.SessionID, d string) ([]byte, error) {
	if text, ok := m[d]; ok {
		return []byte(text), nil
	}
	return nil, session.ErrNotFound
}

func TestWhatACommandTouchedIsToldWithWhatWasThereBefore(t *testing.T) {
	d := newDesk(t)
	kept := images{}
	d.config.Images = kept
	for _, name := range []string{"mod", "same", "gone", "touched", "moved", "node_modules/x/f", ".git/f", "sub/deep/mod"} {
		d.put(t, "app/"+name, "old "+name+"\n")
	}
	d.put(t, "app/target/CACHEDIR.TAG", "")
	d.put(t, "app/target/f", "old")
	_, res := d.run(t, `echo new >made; echo new >mod; rm gone; touch touched; mv moved to; echo new >sub/deep/mod; cat same >s && cat s >same && rm s
		echo x >node_modules/x/f; echo x >.git/f; echo x >target/f; ln -s mod link; mkdir dir; head -c 11000000 /dev/zero >big`)
	want := []protocol.Touch{
		{Path: "big", Kind: "created"},
		{Path: "gone", Kind: "removed", Before: digest("old gone\n")},
		{Path: "made", Kind: "created", After: digest("new\n")},
		{Path: "mod", Kind: "modified", Before: digest("old mod\n"), After: digest("new\n")},
		{Path: "moved", Kind: "removed", Before: digest("old moved\n")},
		{Path: "sub/deep/mod", Kind: "modified", Before: digest("old sub/deep/mod\n"), After: digest("new\n")},
		{Path: "to", Kind: "created", After: digest("old moved\n")},
	}
	for i := range want {
		want[i].Path = filepath.Join(d.root, want[i].Path)
	}
	if res.Touched == nil || !slices.Equal(res.Touched.Files, want) || res.Touched.More != 0 || res.Touched.Unknown {
		t.Errorf("got  %+v\nwant %+v", res.Touched, want)
	}
	if kept[digest("old gone\n")] != "old gone\n" || len(kept) != 4 {
		t.Errorf("kept %v", kept)
	}
	if _, res = d.run(t, "cat mod; ls"); res.Touched != nil {
		t.Errorf("nothing was touched: %+v", res.Touched)
	}
	d.config.Images = nil
	if _, res = d.run(t, "echo other >mod"); res.Touched.Files[0].Before != "" || res.Touched.Files[0].After != digest("other\n") {
		t.Errorf("%+v", res.Touched)
	}
}

func TestManyTouchedFilesAreCountedAndTooManyAreUnknown(t *testing.T) {
	d := newDesk(t)
	_, res := d.run(t, "for i in $(seq 300); do echo $i >f$i; done")
	if res.Touched == nil || len(res.Touched.Files) != 200 || res.Touched.More != 100 {
		t.Errorf("%+v", res.Touched)
	}
	var names strings.Builder
	for i := range 20_100 {
		fmt.Fprintf(&names, "g%d\n", i)
	}
	d.put(t, "names", names.String())
	if _, res = d.run(t, "xargs touch <~/names"); res.Touched == nil || !res.Touched.Unknown {
		t.Errorf("%+v", res.Touched)
	}
}
