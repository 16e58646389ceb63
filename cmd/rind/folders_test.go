package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/providertest"
)

// composed is a process on a desk.
func (d *desk) composed(cwd string) *process {
	d.t.Helper()
	rt, err := compose(&streams{nil, io.Discard, io.Discard}, &common{cwd: cwd}, composition{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(rt.close)
	return rt
}

func TestANewSessionBeginsWithWhatIsSetForItsFolder(t *testing.T) {
	d := newDesk(t, `{"provider":"p","reasoningEffort":"high","providers":{"p":{"type":"script","script":"x.json","model":"a"},"q":{"type":"script","script":"x.json","model":"b"}}}`)
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(work, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	rt := d.composed(below)
	f := &folderDefaults{rt}
	look := func(want session.Selection, model, effort string) {
		t.Helper()
		got, err := f.Folder(below)
		if err != nil || got.Resolved != want || got.ModelSource != model || got.EffortSource != effort {
			t.Errorf("%+v, %v; want %+v from %s, %s", got, err, want, model, effort)
		}
		s, err := rt.all.Draft(t.Context(), session.DraftOptions{Workspace: below})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var sel session.Selection
		if err := s.InspectNow(t.Context(), func(v *session.View) { sel = v.Sel }); err != nil || sel != want {
			t.Errorf("a new session begins with %+v, %v; want %+v", sel, err, want)
		}
	}
	set := func(path string, v dispatcher.FolderDefaults) {
		t.Helper()
		if err := f.Set(path, v); err != nil {
			t.Fatal(err)
		}
	}
	look(session.Selection{Provider: "p", Model: "a", Effort: "high", Mode: "ask"}, "settings", "settings")
	set(work, dispatcher.FolderDefaults{Provider: "q", Model: "b-2"})
	look(session.Selection{Provider: "q", Model: "b-2", Mode: "ask"}, "folder", "default") // the effort was meant for another provider
	set(below, dispatcher.FolderDefaults{ReasoningEffort: "low"})
	look(session.Selection{Provider: "q", Model: "b-2", Effort: "low", Mode: "ask"}, "folder", "folder")
	if got, err := f.Folder(below); err != nil || got.Own != (dispatcher.FolderDefaults{ReasoningEffort: "low"}) || got.Inherited != (dispatcher.FolderDefaults{WorkspaceRoot: work, Provider: "q", Model: "b-2"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := f.Unset(work, "model"); err != nil {
		t.Fatal(err)
	}
	look(session.Selection{Provider: "p", Model: "a", Effort: "low", Mode: "ask"}, "settings", "folder")
	if err := f.Set(below, dispatcher.FolderDefaults{Provider: "nobody", Model: "m"}); protocol.KindOf(err) != protocol.ConfigurationError {
		t.Errorf("a provider nobody described: %v", err)
	}
}

func TestAClientsLoginKeepsTheKeyAndTellsWhatNewSessionsUse(t *testing.T) {
	server := providertest.NewServer(t, twoModels, providertest.JSON(401, `{"error":{"message":"Incorrect API key provided: sk-CANARY-99999"}}`))
	d := newDesk(t, local(server))
	rt := d.composed(t.TempDir())
	var told strings.Builder
	in := func(provider, key string) (dispatcher.LoggedIn, error) {
		return rt.logins().Login(t.Context(), dispatcher.Login{
			Provider: provider, Workspace: rt.workspace, Progress: func(s string) { told.WriteString(s + "\n") },
			Ask: func(kind, message string, _ []string) (string, error) {
				told.WriteString(kind + ": " + message + "\n")
				return key, nil
			},
		})
	}
	got, err := in("mine", "sk-CANARY-88888")
	if err != nil || got.Models != 2 || got.Selection.Model != "m-1" || !strings.Contains(d.file(), "sk-CANARY-88888") {
		t.Errorf("%+v, %v, %s", got, err, d.file())
	}
	if _, err := in("mine", "sk-CANARY-99999"); protocol.KindOf(err) != protocol.ProviderError || strings.Contains(err.Error(), "CANARY") || strings.Contains(d.file(), "99999") {
		t.Errorf("a key that is refused: %v, %s", err, d.file())
	}
	for provider, kind := range map[string]protocol.ErrorKind{"demo": protocol.InvalidRequest, "nobody": protocol.ConfigurationError} {
		if _, err := in(provider, "sk-CANARY"); protocol.KindOf(err) != kind {
			t.Errorf("%s: %v", provider, err)
		}
	}
	ids := map[string]string{}
	for _, p := range rt.logins().Providers() {
		ids[p.ID] = p.Source
	}
	if ids["mine"] != "settings" || ids["anthropic"] != "none" || ids["openai"] != "none" {
		t.Errorf("providers: %v", ids)
	}
	if deleted, source, err := rt.logins().Logout(t.Context(), "mine"); !deleted || source != "none" || err != nil {
		t.Errorf("logout: %v, %s, %v", deleted, source, err)
	}
	rt.log.Info("sk-CANARY-88888 must not be here")
	rt.close()
	d.said.WriteString(told.String())
	d.without("CANARY")
	if !strings.Contains(told.String(), "secret: API key for mine (127.0.0.1:") {
		t.Errorf("told:\n%s", told.String())
	}
}
