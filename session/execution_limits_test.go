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
		`{"maxTokens":0}`, `{"tools":["nope"]}`, `{"tools":"act"}`, `{"tools":null}`,
	} {
		if _, err := ReadLimits(json.RawMessage(bad), []string{"act"}); err == nil || !strings.Contains(err.Error(), "Invalid agent config: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	l, err := ReadLimits(json.RawMessage(`{"model":"m","reasoningEffort":"low","approvals":"never","timeout":1.5,"maxSteps":3,"maxTokens":9,"tools":[]}`), nil)
	if err != nil || fmt.Sprintln(l.Model, l.Effort, l.Mode, l.Unattended, l.Timeout, l.Steps, l.Tokens, len(l.Tools), l.Tools == nil) != "m low ask true 1.5s 3 9 0 false\n" {
		t.Errorf("limits %+v, %v", l, err)
	}
}
