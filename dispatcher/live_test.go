package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
)

// What a live turn shows of a long text is its newest 30,000 characters, said to be that, counted as characters however they are stored
// (docs/protocol/rind-v2.md section 4.4); in both modes of replay, and when the session is switched to.
func TestALiveTurnShowsTheNewestThirtyThousandCharactersOfItsText(t *testing.T) {
	const most = 30_000
	for _, unit := range []string{"x", "é", "😀"} {
		for _, n := range []int{most - 1, most, most + 1, 2*most + 7} {
			onBoth(t, func(t *testing.T, env rindv2.Envelope) {
				text := "A" + strings.Repeat(unit, n-2) + "Z"
				play := fmt.Sprintf(`{"turns": [{"steps": [{"text": %q, "chunk": 5000}, {"hang": true}]}]}`, text)
				p := launch(t, peers.NewWorld(), "p", play, "")
				defer p.end()
				c := p.connect(env)
				id := c.hello()
				c.send("session/prompt", `{"input":"x"}`)
				time.Sleep(time.Second) // of the bubble: what was gathered is out
				told := ""
				for _, l := range c.settle() {
					told += l.delta()
				}
				if told != text {
					t.Fatalf("%d of %d bytes were streamed", len(told), len(text))
				}
				want := text
				if n > most {
					r := []rune(text)
					want = "[Earlier output truncated]\n\n" + string(r[len(r)-most:])
				}
				for method, params := range map[string]string{
					"session/replay": `{}`, "session/switch": fmt.Sprintf(`{"session_id":%q}`, id), "session/replay ": `{"after_cursor":0}`,
				} {
					var got struct {
						Live struct {
							Text string `json:"assistant_text"`
						} `json:"live_turn"`
					}
					if err := json.Unmarshal(c.call(strings.TrimSpace(method), params).result, &got); err != nil {
						t.Fatal(err)
					}
					if got.Live.Text != want {
						t.Errorf("%s %s: %d characters of %d: %.60q…", method, params, len([]rune(got.Live.Text)), n, got.Live.Text)
					}
				}
			})
		}
	}
}

// delta is the text an event streams.
func (l *line) delta() string {
	var e struct{ Type, Text string }
	if json.Unmarshal(l.event, &e) != nil || e.Type != "assistant_delta" {
		return ""
	}
	return e.Text
}

// A list is of the connection's own workspace, unless another is named, or some are left out of all.
func TestAListIsOfTheWorkspacesThatAreAskedFor(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		w := peers.NewWorld()
		of := map[string]string{} // workspace by session
		var c *client
		for i, ws := range []string{"/w", "/w/inner", "/other", "/W"} {
			p := launch(t, w, fmt.Sprint("p", i), `{"turns": [{"steps": [{"text": "ok"}]}]}`, "")
			p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: ws, Version: "0.0.0", Resolve: func(p string) (string, error) { return path.Clean(p), nil }})
			defer p.end()
			d := p.connect(env)
			of[d.hello()] = ws
			d.call("session/prompt", `{"input":"x"}`)
			if ws == "/w" {
				c = d
			}
		}
		for _, q := range []struct {
			params string
			want   []string
		}{
			{`{}`, []string{"/w"}},
			{`{"exclude_workspace_roots":null}`, []string{"/w"}},
			{`{"exclude_workspace_roots":[]}`, []string{"/W", "/other", "/w", "/w/inner"}},
			{`{"exclude_workspace_roots":["/w"]}`, []string{"/W", "/other", "/w/inner"}}, // what lies in it is another
			{`{"exclude_workspace_roots":["/w/","/other/../other"]}`, []string{"/W", "/w/inner"}},
			{`{"exclude_workspace_roots":["/w","/W","/other","/w/inner"]}`, nil},
			{`{"exclude_workspace_roots":["/nobody's","","%","_"]}`, []string{"/W", "/other", "/w", "/w/inner"}},
			{`{"workspace_root":"/other"}`, []string{"/other"}},
			{`{"workspace_root":"/other","exclude_workspace_roots":["/w"]}`, []string{"/other"}},
			{`{"workspace_root":"/other","exclude_workspace_roots":["/other"]}`, nil},
			{`{"exclude_workspace_roots":["/w"],"limit":1}`, []string{"/W", "/other", "/w/inner"}}, // over its pages
		} {
			var got []string
			for token := ""; ; {
				var page struct {
					Sessions []struct{ ID string }
					Next     *string `json:"next_page_token"`
				}
				params := q.params
				if token != "" {
					params = strings.TrimSuffix(params, "}") + fmt.Sprintf(`,"page_token":%q}`, token)
				}
				if err := json.Unmarshal(c.call("session/list", params).result, &page); err != nil {
					t.Fatal(err)
				}
				for _, s := range page.Sessions {
					got = append(got, of[s.ID])
				}
				if page.Next == nil {
					break
				}
				token = *page.Next
			}
			slices.Sort(got)
			if !slices.Equal(got, q.want) {
				t.Errorf("%s: %q, want %q", q.params, got, q.want)
			}
		}
	})
}

// unreachable is a provider that cannot be asked for its models.
type unreachable struct {
	session.Models
	known []session.ModelInfo
}

func (m unreachable) List(context.Context, bool) ([]session.ModelInfo, string, error) {
	return m.known, "play cannot be reached: check the network", nil
}

// A provider that cannot be reached is a warning beside the models that are known; only a client of the older generation, whose list has no room
// for it, gets an error where nothing is known.
func TestAProviderThatCannotBeReachedIsAWarningAndAnErrorOnlyForOlderClientsWithNothingToShow(t *testing.T) {
	for _, known := range [][]session.ModelInfo{nil, {{Provider: "play", ID: "m-9"}}} {
		onBoth(t, func(t *testing.T, env rindv2.Envelope) {
			p := &process{tools: &tools{}}
			play := script.Must(`[{"text": "x"}]`)
			p.Process = peers.NewWorld().Launch(t, "p", play, peers.Setting{
				Models: unreachable{peers.Scripted{Script: play}, known}, Loop: func(*peers.Process) session.Loop { return session.Loop{} },
			})
			p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/w", Version: "0.0.0"})
			defer p.end()
			c := p.connect(env)
			c.hello()
			var got struct {
				Models  []struct{ ID string }
				Warning *string
			}
			if err := json.Unmarshal(c.call("model/list", `{}`).result, &got); err != nil {
				t.Fatal(err)
			}
			if got.Warning == nil || *got.Warning != "play cannot be reached: check the network" || len(got.Models) != len(known) {
				t.Errorf("%+v", got)
			}
			old := p.connect(env)
			old.call("initialize", `{}`)
			for _, params := range []string{`{}`, `{"refresh":true}`} {
				if known == nil {
					old.refused("model/list", params, "ProviderError", "play cannot be reached: check the network")
					continue
				}
				var ids struct{ Models []string }
				if err := json.Unmarshal(old.call("model/list", params).result, &ids); err != nil || !slices.Equal(ids.Models, []string{"m-1", "m-9"}) {
					t.Errorf("%v, %v", ids.Models, err)
				}
			}
		})
	}
}
