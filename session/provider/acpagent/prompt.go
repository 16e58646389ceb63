package acpagent

import (
	"strings"

	"github.com/rind-dev/rind/protocol/acp"
)

// prompt is what the child was asked, to know it again where the child repeats it.
type prompt struct {
	said    string // all of its text
	parts   bool   // it carries more than text
	compact bool   // the person asks for room in the child's context
}

// promptOf keeps the blocks of a prompt; text is the person's part of it.
func promptOf(blocks []acp.Content, text string) prompt {
	p := prompt{compact: strings.HasPrefix(strings.TrimSpace(text), "/compact")}
	var said strings.Builder
	for _, b := range blocks {
		if b.Type == "text" && b.Text != nil {
			said.WriteString(*b.Text)
		} else {
			p.parts = true
		}
	}
	p.said = said.String()
	return p
}

// echoes reports whether a block is part of the prompt.
func (p *prompt) echoes(b *acp.HostBlock) bool {
	if !b.Plain {
		return p.parts
	}
	return strings.Contains(p.said, b.Text)
}
