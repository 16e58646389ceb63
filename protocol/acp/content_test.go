package acp

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
)

func TestAnAddressOfAFileOfThisMachineHasAPath(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///ws/a%20b.go":      "/ws/a b.go",
		"file://localhost/ws/a.go": "/ws/a.go",
		"file:///ws/a.go#L3-9":     "/ws/a.go",
		"file:///C:/ws/a.go":       "C:/ws/a.go",
		"file://elsewhere/ws/a.go": "",
		"file:a.go":                "",
		"zed:///agent/thread/1":    "",
		"https://example.com/a.go": "",
		"file:///%zz":              "",
		"":                         "",
	} {
		if got, ok := FilePath(uri); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", uri, got, ok)
		}
	}
}

func TestALinkKeepsTheSizeTheClientSays(t *testing.T) {
	size, wrong := int64(12), int64(-1)
	_, parts := Input([]Block{{Type: "resource_link", URI: "zed:///x", Size: &size}, {Type: "resource_link", URI: "zed:///y", Size: &wrong}})
	if len(parts) != 2 || parts[0].Size != 12 || parts[1].Size != 0 {
		t.Errorf("%+v", parts)
	}
}

// A hosted agent is given what the person attached, whole; what it does not take becomes text, or refuses the prompt where it would be lost.
func TestAHostedAgentGetsWhatWasAttachedAsFarAsItTakesIt(t *testing.T) {
	long := strings.Repeat("x", 4<<20)
	text := protocol.Part{Kind: "resource", URI: "file:///a", Text: long}
	image := protocol.Part{Kind: "image", MIME: "image/png", Data: []byte(long)}
	link := protocol.Part{Kind: "resource_link", URI: "zed:///x", Name: "x"}
	all := &Hosted{}
	all.Image, all.Embedded = true, true
	blocks, err := PromptBlocks(all, []string{"before"}, "do it", []protocol.Part{text, image, link})
	if err != nil || len(blocks) != 5 || *blocks[0].Text != "before" || *blocks[1].Text != "do it" || *blocks[2].Resource.Text != long || len(blocks[3].Data) < len(long) || blocks[4].URI != link.URI {
		t.Fatalf("%v, %d blocks", err, len(blocks))
	}
	blocks, err = PromptBlocks(&Hosted{}, nil, "", []protocol.Part{text, {Kind: "resource", URI: "file:///b", Data: []byte{0}}})
	if err != nil || len(blocks) != 2 || *blocks[0].Text != "Content of file:///a:\n"+long || blocks[1].Type != "resource_link" || blocks[1].URI != "file:///b" {
		t.Errorf("%v, %d blocks", err, len(blocks))
	}
	if _, err := PromptBlocks(&Hosted{}, nil, "look", []protocol.Part{image}); err == nil {
		t.Error("an image is left out silently")
	}
}
