package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Fixture is the provider that misbehaves on demand (docs/protocol/portable-2026-09-02.md section 11). It exists for conformance tests only.
type Fixture struct{}

// fixtureMode reads the config. A value of another type counts as absent.
func fixtureMode(raw json.RawMessage) (mode string, count int) {
	f, _ := fieldsOf(raw)
	mode, _ = f.text("mode")
	if n, ok := protocol.Integer(f["count"]); ok {
		return mode, int(n)
	}
	return mode, 5
}

// Run implements Runner.
func (Fixture) Run(ctx context.Context, x *Execution) (string, error) {
	mode, count := fixtureMode(x.Config)
	const done = "fixture done"
	emit := func(kind string, v any) error { return x.Emit(kind, protocol.MustMarshal(v)) }
	artifact := func(id, name string) map[string]any {
		return map[string]any{"id": id, "name": name, "mediaType": "text/plain"}
	}
	switch mode {
	case "throw":
		return "", errors.New("fixture threw")
	case "reserved-event":
		return done, emit("run.completed", map[string]any{"finalOutput": "forged"})
	case "invalid-delta":
		return done, emit(EmitDelta, map[string]any{"text": 42})
	case "invalid-artifact":
		return done, emit(EmitArtifact, map[string]any{"name": "x"})
	case "duplicate-artifact":
		if err := emit(EmitArtifact, artifact("dup", "first")); err != nil {
			return "", err
		}
		return done, emit(EmitArtifact, artifact("dup", "second"))
	case "open-action":
		_, err := x.Ask(ActionAsk{Title: "Left open"})
		return done, err
	case "artifacts":
		for i := range count {
			a := artifact(fmt.Sprintf("a%d", 9-i), fmt.Sprintf("n%d", i))
			a["uri"], a["metadata"] = fmt.Sprintf("artifact://x/%d", i), map[string]int{"i": i}
			if err := emit(EmitArtifact, a); err != nil {
				return "", err
			}
		}
	case "provider-event":
		return done, x.Emit(EmitEvent, json.RawMessage(`{"provider":"fixture","method":"tick","params":{"deep":[1,{"two":null}]}}`))
	case "late-emit":
		<-ctx.Done()
		_ = emit(EmitDelta, map[string]any{"text": "late"})
		return "", errors.New("fixture was aborted")
	case "ignore-abort":
		<-ctx.Done()
		time.Sleep(250 * time.Millisecond) // it does not look at ctx: that is what it is for
		_ = emit(EmitDelta, map[string]any{"text": "late"})
		return "late success", nil
	case "cleanup-error", "slow-cleanup", "hang-cleanup":
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return done, nil
}

// Cancel implements CleanupRunner.
func (Fixture) Cancel(ctx context.Context, x *Execution, _ *string) error {
	switch mode, _ := fixtureMode(x.Config); mode {
	case "cleanup-error":
		return errors.New("fixture cleanup failed")
	case "slow-cleanup":
		return Pause(ctx, 300*time.Millisecond)
	case "hang-cleanup": // it does not look at ctx either
		time.Sleep(time.Minute)
	}
	return nil
}
