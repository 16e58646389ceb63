package dispatcher_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// keys is an Auth that keeps nothing: every key but sk-bad is a good one.
type keys struct{}

func (keys) Login(_ context.Context, l dispatcher.Login) (dispatcher.LoggedIn, error) {
	if l.Provider != "play" {
		return dispatcher.LoggedIn{}, protocol.Errorf(protocol.ConfigurationError, "Provider %s is not described.", l.Provider)
	}
	key, err := l.Ask("secret", "API key for play", nil)
	if err != nil {
		return dispatcher.LoggedIn{}, err
	}
	l.Progress("Trying the key with play.")
	if key == "sk-bad" {
		return dispatcher.LoggedIn{}, protocol.Errorf(protocol.ProviderError, "Provider play does not take the key.")
	}
	return dispatcher.LoggedIn{Models: 2, Selection: session.Selection{Provider: "play", Model: "m-1"}}, nil
}

func (keys) Providers() []dispatcher.Provider {
	return []dispatcher.Provider{
		{ID: "other", Name: "Other", Methods: []string{"api_key"}, Source: "none"},
		{ID: "play", Name: "play", Methods: []string{"api_key"}, Configured: true, Source: "none"},
	}
}

func (keys) Logout(_ context.Context, provider string) (bool, string, error) {
	return provider == "play", "none", nil
}

// folders keeps defaults of folders in memory; nothing inherits.
type folders struct {
	mu  sync.Mutex
	own map[string]dispatcher.FolderDefaults
}

func (f *folders) Folder(path string) (dispatcher.Folder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := dispatcher.Folder{Own: f.own[path], Resolved: session.Selection{Provider: "play", Model: "m-1", Mode: "ask"}, ModelSource: "settings", EffortSource: "default"}
	if r.Own.Model != "" {
		r.Resolved.Provider, r.Resolved.Model, r.ModelSource = r.Own.Provider, r.Own.Model, "folder"
	}
	if r.Own.ReasoningEffort != "" {
		r.Resolved.Effort, r.EffortSource = r.Own.ReasoningEffort, "folder"
	}
	return r, nil
}

func (f *folders) Set(path string, d dispatcher.FolderDefaults) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.own[path]
	if d.Model != "" {
		now.Provider, now.Model = d.Provider, d.Model
	}
	if d.ReasoningEffort != "" {
		now.ReasoningEffort = d.ReasoningEffort
	}
	if f.own == nil {
		f.own = map[string]dispatcher.FolderDefaults{}
	}
	f.own[path] = now
	return nil
}

func (f *folders) Unset(path, group string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.own[path]
	if group == "model" {
		now.Provider, now.Model = "", ""
	} else {
		now.ReasoningEffort = ""
	}
	f.own[path] = now
	return nil
}

// login begins a login and returns the ids of the request and of the question it raises.
func (c *client) login() (id, question string) {
	c.T.Helper()
	seen := len(c.Got())
	id = c.send("rind/auth/login", `{"provider_id":"play"}`)
	l := c.await("question of "+id, func(l *line) bool {
		return l.question != "" && place(c.Got(), func(o *line) bool { return o == l }) >= seen
	})
	return id, l.question
}

// authed is a process that logs in.
func authed(t peers.T, auth dispatcher.Auth) *process {
	p := launch(t, peers.NewWorld(), "i", `[{"text":"x"}]`, "")
	p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/w", Version: "0.0.0", Auth: auth})
	return p
}

func TestALoginIsAskedOfTheClientAndItsKeyIsInNoLine(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := authed(t, keys{})
		defer p.end()
		c := p.connect(env)
		c.hello()
		id, question := c.login()
		if !strings.HasPrefix(question, `"auth-`) || len(question) != len(`"auth-"`)+32 {
			t.Errorf("the question's id is %s", question)
		}
		c.call("ping", "") // meanwhile
		c.ask(question, rindv2.MethodAuthPrompt, `{"value":"sk-CANARY-1"}`)
		if l := c.response(id); l.err != nil || !strings.Contains(l.raw, `"models_count":2,"selection":{"provider_id":"play","model_id":"m-1"}`) {
			t.Errorf("answer %s", l.raw)
		}
		again, question := c.login()
		c.ask(question, rindv2.MethodAuthPrompt, `{"value":"sk-bad"}`)
		if l := c.response(again); l.err == nil || l.err.Type != "ProviderError" {
			t.Errorf("answer %s", l.raw)
		}
		c.ask(question, rindv2.MethodAuthPrompt, `{"value":"sk-CANARY-2"}`) // a second answer, and one to nothing, are dropped
		c.ask(`"auth-x"`, rindv2.MethodAuthPrompt, `{"value":"sk-CANARY-3"}`)
		lines := c.settle()
		gapFree(t, lines)
		if text := c.dump(); strings.Contains(text, "CANARY") || strings.Contains(text, "sk-") {
			t.Errorf("a key was written:\n%s", text)
		}
		for _, l := range events(lines) {
			if l.method != "session/update" && (l.method != "rind/auth/update" || strings.Contains(l.raw, "session_id") || !l.has("login_progress")) {
				t.Errorf("progress is told as %s", l.raw)
			}
		}
	})
}

func TestALoginThatIsNotAnsweredEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := authed(t, keys{})
		defer p.end()
		c := p.connect(env)
		c.hello()
		for _, none := range []string{`{}`, `{"value":""}`, `{"value":"  "}`, `{"value":7}`, `{"value":"` + strings.Repeat("x", 9000) + `"}`} {
			id, question := c.login()
			c.ask(question, rindv2.MethodAuthPrompt, none)
			if l := c.response(id); l.err == nil || l.err.Type != "InvalidRequest" || len(l.raw) > 400 {
				t.Errorf("%.40s is answered %s", none, l.raw)
			}
		}
		began := time.Now()
		id, _ := c.login()
		time.Sleep(10*time.Minute + time.Second)
		if l := c.response(id); l.err == nil || l.err.Type != "InvalidRequest" || time.Since(began) > 11*time.Minute {
			t.Errorf("unanswered: %s", l.raw)
		}
		if env == rindv2.JSONRPC {
			id, question := c.login()
			c.Send(`{"jsonrpc":"2.0","id":` + question + `,"error":{"code":1,"message":"sk-CANARY typed"}}` + "\n")
			if l := c.response(id); l.err == nil || strings.Contains(l.raw, "CANARY") {
				t.Errorf("refused by the client: %s", l.raw)
			}
			id, _ = c.login()
			c.Send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":` + id + `}}` + "\n")
			if l := c.response(id); l.err == nil || l.err.Code != -32800 {
				t.Errorf("cancelled: %s", l.raw)
			}
		}
	})
}

func TestAnOpenLoginIsAnsweredBeforeTheShutdownAndHoldsNothingUp(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := authed(t, keys{})
		defer p.end()
		c := p.connect(env)
		c.hello()
		began := time.Now()
		login, _ := c.login()
		down := c.send("shutdown", "")
		<-c.Ended
		lines := c.Got()
		at := place(lines, func(l *line) bool { return l.id == login })
		if at < 0 || lines[at].err == nil || lines[at].err.Type != "ServerStopping" || lines[len(lines)-1].id != down {
			t.Errorf("lines:\n%s", c.dump())
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the end took %v", took)
		}
	})
}

func TestALoginThatHangsDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		p := authed(t, stuck{free: free})
		c := p.connect(rindv2.Rind)
		c.hello()
		c.send("rind/auth/login", `{"provider_id":"play"}`)
		c.settle()
		began := time.Now()
		_ = c.hangUp()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		close(free)
		p.end()
	})
}

// stuck is an Auth that heeds no context.
type stuck struct {
	keys
	free chan struct{}
}

func (s stuck) Login(context.Context, dispatcher.Login) (dispatcher.LoggedIn, error) {
	<-s.free
	return dispatcher.LoggedIn{}, errors.New("freed")
}

func TestWithoutKeysOrFoldersTheirMethodsAreNotPossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i", `[{"text":"x"}]`, "")
		defer p.end()
		c := p.connect(rindv2.Rind)
		c.hello()
		for method, params := range map[string]string{
			"rind/auth/login": `{"provider_id":"play"}`, "rind/auth/logout": `{"provider_id":"play"}`, "rind/folder_defaults/get": `{}`,
			"rind/folder_defaults/set": `{"reasoning_effort":"low"}`, "rind/folder_defaults/unset": `{"group":"model"}`,
			"rind/folder_defaults/resolve": `{"workspace_roots":[]}`, "rind/folder_defaults/apply": `{}`,
		} {
			if l := c.response(c.send(method, params)); l.err == nil || l.err.Type != "UnsupportedOperation" {
				t.Errorf("%s: %s", method, l.raw)
			}
		}
	})
}

func TestAFolderThatIsGoneCanStillBeSeenAndCleared(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		gone := filepath.Join(t.TempDir(), "gone")
		f := &folders{}
		p := launch(t, peers.NewWorld(), "i", `[{"text":"x"}]`, "")
		defer p.end()
		p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/w", Version: "0.0.0", Folders: f, Resolve: func(string) (string, error) {
			return "", errors.New("no such folder")
		}})
		_ = f.Set(gone, dispatcher.FolderDefaults{Provider: "play", Model: "m-2"})
		c := p.connect(env)
		c.hello()
		named := `"workspace_root":` + string(protocol.MustMarshal(gone))
		if l := c.call("rind/folder_defaults/get", "{"+named+"}"); !strings.Contains(l.raw, `"model":"m-2"`) {
			t.Errorf("get: %s", l.raw)
		}
		if l := c.call("rind/folder_defaults/unset", `{"group":"model",`+named+"}"); !strings.Contains(l.raw, `"folder":null`) {
			t.Errorf("unset: %s", l.raw)
		}
		c.refused("rind/folder_defaults/set", `{"reasoning_effort":"low",`+named+"}", "InvalidRequest", "Workspace directory does not exist: "+gone)
		c.refused("rind/folder_defaults/get", `{"workspace_root":"rel"}`, "InvalidRequest", "Workspace directory does not exist: rel")
	})
}

func TestAWorkspacesNewSessionsBeginWithItsDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i", `[{"text":"x"}]`, "")
		defer p.end()
		all := session.NewSessions(session.Config{Store: p.Store, Agent: nil, Models: local{peers.Scripted{Script: p.Play, Listed: models}}, IDs: &w.IDs})
		defer func() { _ = all.Shutdown(context.Background()) }()
		for workspace, want := range map[string]session.Selection{"/w": {Provider: "play", Model: "m-1", Mode: "ask"}, "/own": {Provider: "play", Model: "m-2", Effort: "low", Mode: "ask"}} {
			s, err := all.Draft(context.Background(), session.DraftOptions{Workspace: workspace})
			if err != nil {
				t.Fatal(err)
			}
			var got session.Selection
			if err := s.InspectNow(context.Background(), func(v *session.View) { got = v.Sel }); err != nil || got != want {
				t.Errorf("%s: %+v, %v; want %+v", workspace, got, err, want)
			}
			s.Close()
		}
	})
}

// local has defaults of its own in /own.
type local struct{ peers.Scripted }

func (m local) DefaultIn(workspace string) session.Selection {
	sel := m.Default()
	if workspace == "/own" {
		sel.Model, sel.Effort = "m-2", "low"
	}
	return sel
}

func TestTheDefaultModelIsThatOfTheFolder(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "i", `[{"text":"x"}]`, "")
		p.All = session.NewSessions(session.Config{Store: p.Store, Models: local{peers.Scripted{Script: p.Play, Listed: models}}})
		p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/own"})
		defer p.end()
		c := p.connect(env)
		c.hello()
		if l := c.call("model/list", ""); l.text("default_model") != "m-2" {
			t.Errorf("model/list: %s", l.raw)
		}
		if l := c.call("model/list", `{"workspace_root":"/elsewhere"}`); l.text("default_model") != "m-1" || l.text("current_model") != "m-2" {
			t.Errorf("model/list elsewhere: %s", l.raw)
		}
		if l := c.call("model/set", `{"model":"m-3"}`); l.text("default_model") != "m-2" || l.text("new_default") != "m-2" || l.text("session_model") != "m-3" {
			t.Errorf("model/set: %s", l.raw)
		}
		if l := c.call("rind/command/execute", `{"input":"/model set m-1"}`); !strings.Contains(l.text("text"), "- default model: m-2 (unchanged)") {
			t.Errorf("/model set: %s", l.raw)
		}
	})
}
