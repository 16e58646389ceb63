//go:build unix

package undo_test

import (
	"testing"

	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/tool/shell"
)

// bash is a command for the real shell.
func bash(line string) step {
	return step{tool: "bash", args: map[string]any{"command": line}}
}

func TestWhatARealCommandDidIsUndoneWithTheEditsAroundIt(t *testing.T) {
	d := newDesk(t, map[string]string{"a.txt": "one\n", "bin": "\x00\xff", "gone": "text", "src/x": "x\n"})
	children := proc.NewChildren("")
	d.process.stop()
	d.process = d.start("with a shell", d.kept, shell.Bash(shell.Config{Children: children, Images: d.kept, Mode: shell.ModeOff}))
	t.Cleanup(func() {
		if err := children.KillAll(); err != nil {
			t.Error(err)
		}
	})
	start := d.tree()
	first := d.turn(
		edit("a.txt", "one", "two"),
		bash(`printf 'three\n' >> a.txt; printf '\001' > bin; rm gone; mkdir -p made/deep; echo new > made/deep/f; mv src/x src/y`),
		edit("a.txt", "three", "four"), write("made/deep/f", "newer\n"))
	between := d.tree()
	d.turn(bash(`rm -r made; echo lost > a.txt`))
	d.undone("", "a.txt restored, made/deep/f restored")
	same(t, "after one undo", d.tree(), between)
	if got := d.undone("", "a.txt restored, bin restored, gone restored, made/deep/f restored, src/x restored, src/y restored"); got != first {
		t.Errorf("undid %s", got)
	}
	same(t, "in the end", d.tree(), start)
}
