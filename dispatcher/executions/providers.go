package executions

import (
	"maps"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Agent is the provider that is the sessions' own agent. extensions are further capabilities, as they are on this host.
func Agent(version string, extensions map[string]string) Provider {
	c := map[string]string{
		"action.approval": portable.Native, "action.input": portable.Native, "artifact.list": portable.Native, "execution.cancel": portable.Native,
		"conversation.continuity": portable.Native, "event.replay": portable.Native, "event.streaming": portable.Native,
	}
	maps.Copy(c, extensions)
	return Provider{Manifest: portable.NewManifest("agent", "rind agent", version, "embedded", "serial", c)}
}

// Mock is the deterministic provider.
func Mock(version string) Provider {
	return Provider{Runner: session.Mock{}, Manifest: portable.NewManifest("mock", "Deterministic mock", version, "embedded", "parallel", map[string]string{
		"action.approval": portable.Native, "action.input": portable.Native, "artifact.list": portable.Emulated, "execution.cancel": portable.Native,
		"conversation.continuity": portable.Emulated, "event.replay": portable.Native, "event.streaming": portable.Native,
	})}
}

// Script is the provider that plays the steps of its config.
func Script(version string) Provider {
	return Provider{Runner: session.Mock{Steps: true}, Manifest: portable.NewManifest("script", "Scripted steps", version, "embedded", "parallel", map[string]string{
		"action.approval": portable.Native, "action.input": portable.Native, "artifact.list": portable.Native, "execution.cancel": portable.Native,
		"conversation.continuity": portable.Absent, "event.replay": portable.Native, "event.streaming": portable.Native,
	})}
}

// Fixture is the provider that misbehaves on demand, for conformance tests.
func Fixture(version string) Provider {
	return Provider{Runner: session.Fixture{}, Manifest: portable.NewManifest("fixture", "Conformance fixture", version, "embedded", "parallel", map[string]string{
		"execution.cancel": portable.Native, "artifact.list": portable.Native, "x.degraded": portable.Degraded, "x.off": portable.Absent,
	})}
}

// Hosted is the provider that is the hosted agent a session is set to by name, with the model of that name. now returns what the agent is known
// to do (docs/protocol/acp.md section 5.6): capability -> level. It must not block.
func Hosted(version, name, model string, now func() map[string]string) Provider {
	look := func() portable.Manifest {
		known := now()
		m := portable.NewManifest(session.HostedPrefix+name, name, version, "subprocess", "serial", map[string]string{
			"action.approval": known["approval"], "action.input": known["input"], "artifact.list": portable.Emulated, "execution.cancel": known["cancel"],
			"conversation.continuity": known["continuity"], "event.replay": portable.Emulated, "event.streaming": portable.Native,
			"extension.mcp": portable.Native, "extension.sandbox": portable.Absent, "extension.skills": portable.Absent, "extension.subagents": portable.Absent,
		})
		m.Metadata["rind"].(map[string]any)["hosted"] = known
		return m
	}
	return Provider{Manifest: look(), Hosted: &session.Selection{Provider: name, Model: model}, Now: look}
}
