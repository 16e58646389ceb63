package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/protocol/rpc"
	"github.com/rind-dev/rind/session"
)

// Auth logs in to providers and out of them (docs/protocol/rind-v2.md section 4.10). Its errors are told, so they hold no key. Safe for
// concurrent use.
type Auth interface {
	// Providers lists those one can log in to, also such as nobody set up yet. It asks no keyring.
	Providers() []Provider
	// Login asks for a key, tries it and keeps it.
	Login(ctx context.Context, l Login) (LoggedIn, error)
	// Logout forgets the key of a provider. source is where one still comes from, as rind/auth/list has it.
	Logout(ctx context.Context, provider string) (deleted bool, source string, err error)
}

// Login is what a client wants to log in to, and how it is reached meanwhile.
type Login struct {
	Provider  string
	Workspace string // absolute; whose defaults the answer tells
	// Ask puts a question to the person at the client: kind "secret" for what must not be shown while it is typed. It waits for the answer, at
	// most 10 min; an empty one is an error.
	Ask func(kind, message string, options []string) (string, error)
	// Progress tells what is being done, in one line.
	Progress func(message string)
}

// LoggedIn is the outcome of a login.
type LoggedIn struct {
	Models    int               // in the provider's list
	Selection session.Selection // what a new session in the workspace begins with
}

// askedFor is how long a question may be unanswered.
const askedFor = 10 * time.Minute

// longestAnswer bounds what a person may answer, in bytes: no key is longer.
const longestAnswer = 8 << 10

// questions are what a connection asks its client. Each is asked on the goroutine of the method that has to know.
type questions struct {
	conn *rpc.Conn // set before the first request is read
	life context.Context
	end  context.CancelCauseFunc
	open sync.WaitGroup // methods that ask; added to under Conn.mu while it is not stopping
}

// sendCall writes a call of ours.
func (c *Conn) sendCall(call protocol.Call) {
	c.out.line(rindv2.AppendCall(nil, c.envelope(), call))
}

// withdrawCall takes one back, where the envelope has words for that.
func (c *Conn) withdrawCall(id string) {
	if b, ok := rindv2.AppendWithdrawal(nil, c.envelope(), id); ok {
		c.out.line(b)
	}
}

// endQuestions withdraws what is open and refuses what comes. The channel is closed once every method that asked has its answer.
func (c *Conn) endQuestions() <-chan struct{} {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	c.asks.end(rindv2.Stopping())
	done := make(chan struct{})
	go func() { // ends with the last of them: each ends soon after its context, or with the process
		c.asks.open.Wait()
		close(done)
	}()
	return done
}

// asking runs f on a goroutine of its own, with a context that ends with the connection, or when the request is cancelled.
func (k *call) asking(f func(ctx context.Context)) {
	ctx, stop := context.WithCancelCause(k.c.asks.life)
	k.c.mu.Lock()
	stopping := k.c.stopping
	if !stopping {
		k.c.asks.open.Add(1)
		k.stop = func() { stop(context.Canceled) } // looked at on the reading goroutine only, as it is set
	}
	k.c.mu.Unlock()
	if stopping {
		stop(nil)
		k.Fail(rindv2.Stopping())
		return
	}
	k.Background(func() {
		defer k.c.asks.open.Done()
		defer stop(nil)
		f(ctx)
	})
}

// ask puts one question and waits for the answer.
func (c *Conn) ask(ctx context.Context, kind, message string, options []string) (string, error) {
	if options == nil {
		options = []string{}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askedFor, rindv2.Bad("The login was given up: its question was not answered within 10 minutes."))
	defer cancel()
	answer, err := c.asks.conn.Call(ctx, protocol.Call{
		ID: "auth-" + protocol.RandomIDs{}.Hex32(), Method: rindv2.MethodAuthPrompt, Params: protocol.MustMarshal(struct {
			Kind    string   `json:"kind"`
			Message string   `json:"message"`
			Options []string `json:"options"`
		}{kind, message, options}),
	})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, rpc.ErrEnded):
		return "", rindv2.Stopping()
	case err != nil: // the client's own words stay out: they may repeat what was typed
		return "", rindv2.Bad("The login was cancelled by the client.")
	}
	var said struct {
		Value string `json:"value"`
	}
	_ = json.Unmarshal(answer, &said)
	said.Value = strings.TrimSpace(said.Value)
	switch {
	case said.Value == "":
		return "", rindv2.Bad("The login was cancelled: nothing was answered.")
	case len(said.Value) > longestAnswer:
		return "", rindv2.Bad("The answer is longer than %d bytes.", longestAnswer)
	}
	return said.Value, nil
}

func authList(k *call, _ *rindv2.Nothing) {
	list := k.c.d.cfg.Providers
	if auth := k.c.d.cfg.Auth; auth != nil {
		list = auth.Providers
	}
	k.OK(rindv2.Providers{Providers: list()})
}

func authLogin(k *call, p *rindv2.LoginParams) {
	auth := k.c.d.cfg.Auth
	ws, err := k.c.workspace(p.WorkspaceRoot)
	switch {
	case auth == nil:
		err = protocol.Errorf(protocol.UnsupportedOperation, "This runtime keeps no keys.")
	case p.Method != "api_key":
		err = rindv2.Bad("Unsupported login method: %s", protocol.Prefix(p.Method, 100))
	}
	if err != nil {
		k.Fail(err)
		return
	}
	k.asking(func(ctx context.Context) {
		in, err := auth.Login(ctx, Login{
			Provider: p.ProviderID, Workspace: ws,
			Ask: func(kind, message string, options []string) (string, error) {
				return k.c.ask(ctx, kind, message, options)
			},
			Progress: func(message string) { k.c.loginProgress(p.ProviderID, message) },
		})
		if err != nil {
			k.Fail(err)
			return
		}
		k.OK(rindv2.LoggedIn{
			OK: true, ProviderID: p.ProviderID, ModelsCount: in.Models,
			Selection: protocol.MustMarshal(rindv2.ModelRef{ProviderID: in.Selection.Provider, ModelID: in.Selection.Model}),
		})
	})
}

// loginProgress tells the client that asked where its login is. It is no event of a session.
func (c *Conn) loginProgress(provider, message string) {
	c.out.event(protocol.Envelope{Method: rindv2.MethodAuthUpdate, Event: protocol.MustMarshal(rindv2.LoginProgress{
		Type: "login_progress", TS: protocol.FormatTime(c.d.cfg.Now().UTC()), EventID: protocol.RandomIDs{}.Hex32(), ProviderID: provider, Message: message,
	})})
}

func authLogout(k *call, p *rindv2.LogoutParams) {
	auth := k.c.d.cfg.Auth
	if auth == nil {
		k.Fail(protocol.Errorf(protocol.UnsupportedOperation, "This runtime keeps no keys."))
		return
	}
	k.asking(func(ctx context.Context) {
		deleted, source, err := auth.Logout(ctx, p.ProviderID)
		k.Settle(rindv2.LoggedOut{OK: true, ProviderID: p.ProviderID, Deleted: deleted, Source: source}, err)
	})
}
