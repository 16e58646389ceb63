package modelhttp

import (
	"testing"

	"github.com/rind-dev/rind/protocol"
)

func TestALinkIsToldWithWhatIsKnownOfIt(t *testing.T) {
	for want, p := range map[string]protocol.Part{
		"[resource_link file:///b.go]":              {Kind: "resource_link", URI: "file:///b.go", Name: "b.go"},
		"[resource_link file:///b.go (2048 bytes)]": {Kind: "resource_link", URI: "file:///b.go", Name: "b.go", Size: 2048},
		"[resource_link Thread zed:///agent/1]":     {Kind: "resource_link", URI: "zed:///agent/1", Name: "Thread"},
		"[resource_link zed:///agent/1]":            {Kind: "resource_link", URI: "zed:///agent/1"},
	} {
		if got := PartText(p); got != want {
			t.Errorf("%+v: %s, not %s", p, got, want)
		}
	}
}
