package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/session"
)

// Recover works off executions whose process is gone (section 10). Call it before the listener opens.
func Recover(ctx context.Context, cfg Config, within time.Duration) error {
	s := New(cfg)
	return cfg.Sessions.RecoverExecutions(ctx, session.Recovery{
		Within: within,
		Request: func(provider, input string, config json.RawMessage, capabilities []string) (session.ExecutionRequest, bool) {
			p := s.provider(provider)
			if p == nil || len(p.Manifest.Missing(capabilities)) > 0 {
				return session.ExecutionRequest{}, false
			}
			return s.request(p, input, config, capabilities), true
		},
	})
}

// request is what the sessions are asked for.
func (s *Server) request(p *Provider, input string, config json.RawMessage, capabilities []string) session.ExecutionRequest {
	req := session.ExecutionRequest{Provider: p.Manifest.ID, Input: input, Config: config, Capabilities: capabilities, Runner: p.Runner}
	if p.Runner == nil {
		tools := s.cfg.Tools
		req.Setup = func() (*session.ExecutionLimits, error) { return agentConfig(config, tools) }
	}
	return req
}
