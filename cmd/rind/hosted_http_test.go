//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol/portable"
)

// ask posts a body and returns status and text.
func (w *webSide) ask(path, body string) (int, string) {
	w.t.Helper()
	resp := w.do(http.MethodPost, path, body, "")
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// until waits for an event of an execution.
func (w *webSide) until(id, kind string) portable.Event {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		all := w.events(id)
		for _, e := range all {
			if e.Type == kind {
				return e
			}
		}
		if n := len(all); n > 0 && strings.HasPrefix(all[n-1].Type, "run.") && slices.Contains([]string{"run.completed", "run.failed", "run.cancelled"}, all[n-1].Type) {
			w.t.Fatalf("%s ended without %s: %s %s", id, kind, all[n-1].Type, all[n-1].Data)
		}
	}
	w.t.Fatalf("%s has no %s", id, kind)
	return portable.Event{}
}

func (w *webSide) start(conversation, provider, input string) string {
	w.t.Helper()
	var x portable.Execution
	w.json(http.MethodPost, "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":%q,"input":%q}`, conversation, provider, input), &x)
	return x.ID
}

func (w *webSide) manifest(provider string) portable.Manifest {
	w.t.Helper()
	var d portable.Description
	w.json(http.MethodGet, "/v1/runtime", "", &d)
	for _, m := range d.Providers {
		if m.ID == provider {
			return m
		}
	}
	w.t.Fatalf("there is no %s in %+v", provider, d.Providers)
	return portable.Manifest{}
}

// A hosted agent is a provider of the portable protocol as portable-2026-09-02.md section 11 says, whatever the conversation is set to.
func TestAHostedAgentAnswersExecutionsOverHTTP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.json")
	write(t, path, hostedScript)
	inner, _ := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"play","providers":{"play":{"type":"script","model":"scripted","script":%q}}}`, path))
	program, _ := program(t)
	root, ws := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"demo","providers":{
		"other":{"type":"acp","command":%q,"args":["acp","--data",%q],"env":{"RIND_TEST_CHILD":"1","INNER_API_KEY":"sesame-sesame"}},
		"none":{"type":"acp","command":"/nowhere/agent"}}}`, program, inner))
	server := launched(t, root, ws, nil, "serve", "--port", "0", "--auth", "none")
	w := &webSide{t: t, base: strings.TrimPrefix(server.Line(30*time.Second), "rind HTTP listening on ")}
	defer http.DefaultClient.CloseIdleConnections()

	before := w.manifest("acp.other")
	if before.Topologies[0] != "subprocess" || before.Capabilities["action.input"] != "unsupported" || before.Capabilities["conversation.continuity"] != "degraded" ||
		before.Capabilities["extension.mcp"] != "native" || fmt.Sprint(before.Metadata["rind"].(map[string]any)["lane"]) != "serial" {
		t.Errorf("%+v", before)
	}
	var conv portable.Conversation
	w.json(http.MethodPost, "/v1/conversations", "", &conv)
	status, text := w.ask("/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":"acp.other","input":"x","requiredCapabilities":["action.input"]}`, conv.ID))
	if status != 422 || !strings.Contains(text, "Provider acp.other does not support required capabilities") {
		t.Errorf("%d %s", status, text)
	}
	if childrenOf(server.PID()) > 0 {
		t.Error("what was refused started the agent")
	}

	// A configuration it cannot have, and a program that is not there.
	var x portable.Execution
	w.json(http.MethodPost, "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":"acp.other","input":"x","config":{"model":"m"}}`, conv.ID), &x)
	if e := w.until(x.ID, "run.failed"); string(e.Data) != `{"code":"PROVIDER_ERROR","message":"Hosted agent takes no execution config"}` || childrenOf(server.PID()) > 0 {
		t.Errorf("%s", e.Data)
	}
	if e := w.until(w.start(conv.ID, "acp.none", "x"), "run.failed"); !strings.Contains(string(e.Data), `"Hosted agent failed: There is no program /nowhere/agent; `) {
		t.Errorf("%s", e.Data)
	}

	// It asks with its own options; the answer picks one of them.
	id := w.start(conv.ID, "acp.other", "leave a mark")
	var a portable.Action
	_ = json.Unmarshal(w.until(id, "action.required").Data, &a)
	var payload struct {
		Options []struct{ OptionID, Kind string }
	}
	_ = json.Unmarshal(a.Payload, &payload)
	yes := ""
	for _, o := range payload.Options {
		if o.Kind == "allow_once" {
			yes = o.OptionID
		}
	}
	respond := "/v1/executions/" + id + "/actions/" + a.ID + ":respond"
	if status, text := w.ask(respond, `{"value":{"optionId":"made up"}}`); status != 400 || yes == "" {
		t.Errorf("%d %s; %s", status, text, a.Payload)
	}
	w.json(http.MethodPost, respond, fmt.Sprintf(`{"value":{"optionId":%q}}`, yes), &x)
	w.until(id, "run.completed")
	w.json(http.MethodGet, "/v1/executions/"+id, "", &x)
	if x.State != "succeeded" || x.ProviderID != "acp.other" || *x.FinalOutput != "I will leave a mark. \n\nThe mark is made." || marks(t, ws) != 1 {
		t.Errorf("%+v, %d marks", x, marks(t, ws))
	}
	deltas := ""
	for _, e := range w.events(id) {
		var d struct{ Text, Provider string }
		if _ = json.Unmarshal(e.Data, &d); e.Type == "output.text.delta" {
			deltas += d.Text
		} else if e.Type == "provider.event" && d.Provider != "acp.other" && d.Provider != "other" {
			t.Errorf("%s", e.Data)
		}
	}
	if deltas != *x.FinalOutput {
		t.Errorf("the deltas are %q", deltas)
	}
	after := w.manifest("acp.other")
	if after.Capabilities["action.input"] != "native" || after.Capabilities["conversation.continuity"] != "native" || after.Capabilities["action.approval"] != "emulated" ||
		after.Metadata["rind"].(map[string]any)["hosted"].(map[string]any)["mcp_http"] != "native" {
		t.Errorf("%+v", after)
	}

	// Cancelled; then its process is killed under it; then it goes on.
	id = w.start(conv.ID, "acp.other", "slow")
	w.until(id, "output.text.delta")
	w.json(http.MethodPost, "/v1/executions/"+id+":cancel", `{"reason":"not needed"}`, &x)
	if e := w.until(id, "run.cancelled"); x.State != "cancelled" || string(e.Data) != `{"reason":"not needed"}` {
		t.Errorf("%+v %s", x, e.Data)
	}
	id = w.start(conv.ID, "acp.other", "slow")
	w.until(id, "output.text.delta")
	if err := syscall.Kill(childOf(t, server.PID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := w.until(id, "run.failed"); !strings.Contains(string(e.Data), `"Hosted agent failed: The agent was ended by signal `) {
		t.Errorf("%s", e.Data)
	}
	w.until(w.start(conv.ID, "acp.other", "go on"), "run.completed")
	if err := server.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := server.Wait(acpPatience); code != exitOK {
		t.Errorf("exit %d: %s", code, server.Stderr())
	}
	_ = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && filepath.Base(path) != "settings.json" {
			if data, _ := os.ReadFile(path); strings.Contains(string(data), "sesame-sesame") {
				t.Errorf("the agent's secret is in %s", path)
			}
		}
		return nil
	})
}

// childrenOf counts the processes a process has started and not reaped.
func childrenOf(pid int) int {
	n := 0
	for _, task := range glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) {
		data, _ := os.ReadFile(task)
		n += len(strings.Fields(string(data)))
	}
	return n
}

// Limits that a hosted agent would not keep to are refused, also where it answers for `agent`; those that bind it hold.
func TestAnExecutionOfTheAgentThatAHostedOneAnswersTakesOnlyWhatBindsThat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.json")
	write(t, path, hostedScript)
	inner, _ := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"play","providers":{"play":{"type":"script","model":"scripted","script":%q}}}`, path))
	program, _ := program(t)
	root, ws := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"other","providers":{
		"other":{"type":"acp","command":%q,"args":["acp","--data",%q],"env":{"RIND_TEST_CHILD":"1","INNER_API_KEY":"sesame-sesame"}}}}`, program, inner))
	server := launched(t, root, ws, nil, "serve", "--port", "0", "--auth", "none")
	w := &webSide{t: t, base: strings.TrimPrefix(server.Line(30*time.Second), "rind HTTP listening on ")}
	defer http.DefaultClient.CloseIdleConnections()
	var conv portable.Conversation
	w.json(http.MethodPost, "/v1/conversations", "", &conv)
	start := func(config string) string {
		var x portable.Execution
		w.json(http.MethodPost, "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":"agent","input":"go on","config":%s}`, conv.ID, config), &x)
		return x.ID
	}
	for key, config := range map[string]string{
		"maxSteps": `{"maxSteps":3,"maxTokens":9,"approvals":"auto"}`, "maxTokens": `{"maxTokens":9,"tools":[]}`, "tools": `{"tools":["bash"],"timeout":600}`,
	} {
		want := `{"code":"PROVIDER_ERROR","message":"Invalid agent config: ` + key + `: acp.other answers here, which it does not bind"}`
		if e := w.until(start(config), "run.failed"); string(e.Data) != want {
			t.Errorf("%s: %s", config, e.Data)
		}
	}
	if childrenOf(server.PID()) > 0 {
		t.Error("what was refused started the agent")
	}
	w.until(start(`{"approvals":"never","timeout":600}`), "run.completed") // nothing else could answer
}

func TestAnAgentThatTheSettingsHostLaterIsAProviderWithoutARestart(t *testing.T) {
	root, ws := dataAndWorkspace(t, `{"provider":"demo"}`)
	server := launched(t, root, ws, nil, "serve", "--port", "0", "--auth", "none")
	w := &webSide{t: t, base: strings.TrimPrefix(server.Line(30*time.Second), "rind HTTP listening on ")}
	defer http.DefaultClient.CloseIdleConnections()
	var conv portable.Conversation
	w.json(http.MethodPost, "/v1/conversations", "", &conv)
	if status, _ := w.ask("/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":"acp.later","input":"x"}`, conv.ID)); status != http.StatusNotFound {
		t.Errorf("%d before it is set", status)
	}
	write(t, filepath.Join(root, "settings.json"), `{"provider":"demo","providers":{"later":{"type":"acp","command":"/nowhere/agent"}}}`)
	if m := w.manifest("acp.later"); m.Topologies[0] != "subprocess" {
		t.Errorf("%+v", m)
	}
	if e := w.until(w.start(conv.ID, "acp.later", "x"), "run.failed"); !strings.Contains(string(e.Data), "There is no program /nowhere/agent") {
		t.Errorf("%s", e.Data)
	}
}
