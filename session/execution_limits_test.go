package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTheConfigOfAnAgentsExecutionIsCheckedKeyByKey(t *testing.T) {
	for _, bad := range []string{
		`{"x":1}`, `{"model":3}`, `{"model":null}`, `{"approvals":"no"}`, `{"timeout":0}`, `{"timeout":604801}`, `{"maxSteps":0}`, `{"maxSteps":1.5}`, `{"maxSteps":1001}`,
		`{"maxSteps":"3"}`, `{"maxSteps":1.0000000000000000001}`,
		`{"maxTokens":0}`, `{"maxTokens":1e30}`, `{"tools":[1]}`, `{"tools":"act"}`, `{"tools":null}`,
	} {
		if _, err := ReadLimits(json.RawMessage(bad)); err == nil || !strings.Contains(err.Error(), "Invalid agent config: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	l, err := ReadLimits(json.RawMessage(`{"model":"m","reasoningEffort":"low","approvals":"never","timeout":1.5,"maxSteps":3,"maxTokens":9,"tools":[]}`))
	if err != nil || fmt.Sprintln(l.Model, l.Effort, l.Mode, l.Unattended, l.Timeout, l.Steps, l.Tokens, len(l.Tools), l.Tools == nil) != "m low ask true 1.5s 3 9 0 false\n" {
		t.Errorf("limits %+v, %v", l, err)
	}
}

func TestANumberOfAnAgentsConfigIsWhatItSaysHoweverItIsWritten(t *testing.T) {
	for text, want := range map[string]string{
		`{"maxSteps":1.0}`: "1 0 0s", `{"maxSteps":1e3}`: "1000 0 0s", `{"maxSteps":0.1e1}`: "1 0 0s", `{"maxTokens":2.5e1}`: "0 25 0s",
		`{"timeout":1e-10}`:  "0 0 1ns", // not none
		`{"timeout":604800}`: "0 0 168h0m0s",
	} {
		l, err := ReadLimits(json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprint(l.Steps, l.Tokens, l.Timeout); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
