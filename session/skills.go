package session

import (
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// loadSkills loads what a prompt names: `/skill:name`, which must exist (InvalidRequest `Unknown Skill: x`), and `$name` where there is
// such a skill; other words with a dollar sign are just words (docs/protocol/rind-v2.md section 4.3). Each is loaded once, in the order of the
// text.
func (ss *Sessions) loadSkills(workspace, input string) ([]protocol.SystemMessage, error) {
	if !strings.Contains(input, "/skill:") && !strings.Contains(input, "$") {
		return nil, nil
	}
	var out []protocol.SystemMessage
	loaded := map[string]bool{}
	for _, word := range strings.Fields(input) {
		name, must := strings.CutPrefix(word, "/skill:")
		if !must {
			var ok bool
			if name, ok = strings.CutPrefix(word, "$"); !ok {
				continue
			}
			name = strings.TrimRight(name, ".,;:!?)")
		}
		if name == "" && !must || loaded[name] {
			continue
		}
		skill, ok := ss.cfg.Guide.Skill(workspace, name)
		switch {
		case ok:
			loaded[name] = true
			out = append(out, SkillMessage(skill))
		case must:
			return nil, protocol.Errorf(protocol.InvalidRequest, "Unknown Skill: %s", protocol.Prefix(name, 100))
		}
	}
	return out, nil
}

// SkillMessage is a skill as the model is given it with a prompt.
func SkillMessage(s Skill) protocol.SystemMessage {
	return protocol.SystemMessage{Content: "The person asks you to use the skill " + s.Name + ":\n\n" + s.Text, Kind: "skill"}
}
