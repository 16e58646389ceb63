package consent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/session"
)

// fresh is how long rules are used without looking whether another process added some.
const fresh = time.Second

// remembered is what is known of a workspace's rules.
type remembered struct {
	at    time.Time
	rules ruleset
}

// ruleset finds rules. A pattern is compared as it is: what a rule covers is decided where a call's patterns are made, in one place, and
// a pattern never has to be read back.
type ruleset map[ruleKey]bool // true: allow

type ruleKey struct{ tool, pattern string }

// of tells whether there is a rule, and whether it allows. Deny wins where several match.
func (s ruleset) of(tool string, patterns ...string) (known, allowed bool) {
	for _, p := range patterns {
		if a, ok := s[ruleKey{tool, p}]; ok {
			if !a {
				return true, false
			}
			known, allowed = true, true
		}
	}
	return known, allowed
}

func (s ruleset) allows(tool string, patterns ...string) bool {
	_, allowed := s.of(tool, patterns...)
	return allowed
}

func (s ruleset) denies(tool, pattern string) bool {
	a, ok := s[ruleKey{tool, pattern}]
	return ok && !a
}

// remembered returns the rules of a workspace, at most a second old.
func (p *Policy) remembered(ctx context.Context, workspace string) (ruleset, error) {
	if p.cfg.Rules == nil {
		return nil, nil
	}
	now := p.cfg.Now()
	p.mu.Lock()
	k, ok := p.known[workspace]
	turn := p.turn
	p.mu.Unlock()
	if age := now.Sub(k.at); ok && age >= 0 && age < fresh {
		return k.rules, nil
	}
	list, err := p.cfg.Rules.Rules(ctx, workspace)
	if err != nil {
		return nil, err
	}
	rules := make(ruleset, len(list))
	for _, r := range list {
		rules[ruleKey{r.Tool, r.Pattern}] = r.Allow
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if turn == p.turn {
		if len(p.known) >= 64 { // workspaces of one process; a bound, not a cache to be tuned
			clear(p.known)
		}
		p.known[workspace] = remembered{at: now, rules: rules}
	}
	return rules, nil
}

func (p *Policy) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn++
	clear(p.known)
}

// rule is Verdict.Rule. Of a command with several parts that ask, allowing for good remembers each in Parts, while rejecting
// remembers the command as a whole: nobody said which part was meant.
type rule struct {
	Tool    string `json:"tool"`
	Pattern string `json:"pattern"`
	Parts   []rule `json:"parts,omitempty"`
}

// longestPattern bounds a rule. What is longer cannot be remembered: "always" is once then.
const longestPattern = 16 << 10

func encodeRule(tool, pattern string, parts ...string) json.RawMessage {
	if len(pattern) > longestPattern {
		return nil
	}
	r := rule{Tool: tool, Pattern: pattern}
	for _, p := range parts {
		r.Parts = append(r.Parts, rule{Tool: tool, Pattern: p})
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil // strings always can be
	}
	return b
}

// Remember implements session.Policy.
func (p *Policy) Remember(ctx context.Context, workspace string, raw json.RawMessage, allowed bool) error {
	var r rule
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("remember consent: %w", err)
	}
	if p.cfg.Rules == nil {
		return errors.New("remember consent: there is no store for rules")
	}
	rules := []rule{r}
	if allowed && len(r.Parts) > 0 {
		rules = r.Parts
	}
	if slices.ContainsFunc(rules, func(r rule) bool { return r.Tool == "" || r.Pattern == "" }) {
		return fmt.Errorf("remember consent: %s names no tool and pattern", oneLine(string(raw), 200))
	}
	defer p.changed()
	for _, r := range rules {
		if _, err := p.cfg.Rules.AddRule(ctx, session.Rule{Workspace: workspace, Tool: r.Tool, Pattern: r.Pattern, Allow: allowed}); err != nil {
			return fmt.Errorf("remember consent: %w", err)
		}
	}
	return nil
}

// Rules implements session.Policy.
func (p *Policy) Rules(ctx context.Context, workspace string) ([]session.Rule, error) {
	if p.cfg.Rules == nil {
		return nil, nil
	}
	return p.cfg.Rules.Rules(ctx, workspace)
}

// Revoke implements session.Policy.
func (p *Policy) Revoke(ctx context.Context, workspace string, id int64) (bool, error) {
	if p.cfg.Rules == nil {
		return false, nil
	}
	defer p.changed()
	return p.cfg.Rules.RemoveRule(ctx, workspace, id)
}
