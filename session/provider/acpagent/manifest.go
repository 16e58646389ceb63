package acpagent

import "github.com/rind-dev/rind/protocol/acp"

// Levels of a capability (docs/protocol/acp.md section 5.6).
const (
	native      = "native"      // the child does it
	emulated    = "emulated"    // we do, with the same promise
	degraded    = "degraded"    // works with a named loss
	unsupported = "unsupported" // refused before the turn
)

// manifest says what a hosted agent can do, as far as it was seen.
func manifest(h *acp.Hosted, s acp.HostSession, spec *Spec, seen map[string]bool, front bool) map[string]string {
	pick := func(yes bool, then, otherwise string) string {
		if yes {
			return then
		}
		return otherwise
	}
	m := map[string]string{
		"streaming": native, "replay": emulated, "list": emulated, "delete": emulated, "idempotency": emulated,
		"cancel":          pick(seen["killed"], degraded, native),
		"approval":        pick(seen["answered"] && !seen["asked"], degraded, emulated),
		"input":           pick(front, native, unsupported),
		"fork":            degraded,
		"steer":           pick(h.Steer, native, unsupported),
		"follow_up":       emulated,
		"image":           pick(h.Image, native, unsupported),
		"audio":           pick(h.Audio, native, unsupported),
		"embeddedContext": pick(h.Embedded, native, emulated),
		"mode":            pick(s.Option("mode") != nil || len(s.Modes) > 0, native, degraded),
		"model":           pick(s.Option("model") != nil, native, unsupported),
		"effort":          pick(s.Option("thought_level") != nil, native, unsupported),
		"mcp_stdio":       native,
		"mcp_http":        pick(h.HTTP, native, unsupported),
		"plan":            pick(seen[acp.PlanUpdate], native, degraded),
		"usage":           pick(seen[acp.UsageUpdate], native, degraded),
		"thoughts":        pick(seen[acp.ThoughtChunk], native, degraded),
		"files":           pick(spec.FS && seen["files"], emulated, degraded),
		"shell":           pick(spec.Terminal && seen["shell"], emulated, degraded),
	}
	switch {
	case h.Resume:
		m["continuity"] = native
	case h.Load:
		m["continuity"] = emulated
	default:
		m["continuity"] = degraded
	}
	return m
}

// unseen is the manifest of an agent whose child never ran.
func unseen(spec *Spec) map[string]string {
	return manifest(&acp.Hosted{}, acp.HostSession{}, spec, map[string]bool{}, false)
}
