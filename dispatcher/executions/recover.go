package executions

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/session"
)

// Recover works off executions whose process is gone (docs/protocol/portable-2026-09-02.md section 10). Call it before anybody can ask.
func (c *Commands) Recover(ctx context.Context, within time.Duration) error {
	return c.cfg.Sessions.RecoverExecutions(ctx, c.recovery(within))
}

// Adopt does the same with the conversations this process comes to hold, each when it takes its lease, and does not look for them: for a
// process that is not there for executions alone.
func (c *Commands) Adopt(within time.Duration) { c.cfg.Sessions.AdoptExecutions(c.recovery(within)) }

func (c *Commands) recovery(within time.Duration) session.Recovery {
	return session.Recovery{
		Within: within,
		Request: func(provider, input string, config json.RawMessage, capabilities []string) (session.ExecutionRequest, bool) {
			p := c.provider(provider)
			if p == nil {
				return session.ExecutionRequest{}, false
			}
			if now := p.manifest(); len(now.Missing(capabilities)) > 0 {
				return session.ExecutionRequest{}, false
			}
			return c.request(p, input, config, capabilities), true
		},
	}
}

// request is what the sessions are asked for.
func (c *Commands) request(p *Provider, input string, config json.RawMessage, capabilities []string) session.ExecutionRequest {
	return session.ExecutionRequest{
		Provider: p.Manifest.ID, Input: input, Config: config, Capabilities: capabilities, Runner: p.Runner, Hosted: p.Hosted,
	}
}
