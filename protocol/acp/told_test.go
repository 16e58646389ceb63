package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
)

func TestEveryKindOfEntryIsToldAsTheCatalogueSays(t *testing.T) {
	for i := range protocol.Catalogue {
		k := protocol.Kind(i)
		if !k.Known() {
			continue
		}
		row := &told[k]
		if want := k.Info().ACP; row.update != want {
			t.Errorf("%s is told as %q, the catalogue says %q", k, row.update, want)
		}
		if row.tell == nil && row.update != "" {
			t.Errorf("%s is to be told as %s and is not", k, row.update)
		}
	}
}

// log makes entries as a session stores them.
type log struct {
	t       *testing.T
	entries []protocol.Entry
}

func (l *log) add(bodies ...protocol.Body) *log {
	l.t.Helper()
	for _, b := range bodies {
		e, err := protocol.Encode(protocol.Head{Time: time.Unix(int64(len(l.entries)), 0).UTC(), EventID: strings.Repeat("e", 32), Session: "s1", Turn: "t1"}, b)
		if err != nil {
			l.t.Fatal(err)
		}
		e.Seq = protocol.Seq(len(l.entries) + 1)
		l.entries = append(l.entries, e)
	}
	return l
}

func delta(id string, at int, text string) protocol.Body {
	b := &protocol.AssistantDelta{Text: text}
	b.More.MessageID, b.More.Offset = id, at
	return b
}

func message(id, text string) protocol.Body {
	return &protocol.AssistantMessageCompleted{Content: text, ContentChars: protocol.CharLen(text), MessageID: id}
}

// texts adds up what was told of each message.
func texts(t *testing.T, told []Told) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := range told {
		if c := told[i].Chunk; c != nil {
			out[c.Kind+" "+c.MessageID] += c.Text
		}
	}
	return out
}

func TestWhatIsToldOfAMessageAddsUpHoweverItComes(t *testing.T) {
	pieces := []protocol.Body{delta("m1", 0, "aé"), delta("m1", 2, "\u4e16😀"), delta("m1", 4, "end")}
	whole := message("m1", "aé\u4e16😀end")
	for name, bodies := range map[string][]protocol.Body{
		"all pieces":              append(append([]protocol.Body{}, pieces...), whole),
		"the fact alone":          {whole},
		"the first piece gone":    {pieces[1], pieces[2], whole},
		"a piece in between gone": {pieces[0], pieces[2], whole},
		"a piece twice":           {pieces[0], pieces[0], pieces[1], whole},
	} {
		for _, merge := range []bool{false, true} {
			l := (&log{t: t}).add(bodies...)
			tell := NewTeller("s1", "/w", ClientCapabilities{}, nil)
			if got := texts(t, tell.Tell(nil, l.entries, merge))["agent_message_chunk m1"]; got != "aé\u4e16😀end" {
				t.Errorf("%s, merge %v: %q", name, merge, got)
			}
		}
	}
}

func TestATextThatDoesNotBeginAsToldIsToldWholeUnderAnotherID(t *testing.T) {
	l := (&log{t: t}).add(delta("m1", 0, "wrong"), message("m1", "right and more"))
	got := texts(t, NewTeller("s1", "/w", ClientCapabilities{}, nil).Tell(nil, l.entries, false))
	if got["agent_message_chunk m1"] != "wrong" || got["agent_message_chunk m1-whole"] != "right and more" {
		t.Errorf("told %v", got)
	}
}

func TestAFollowerThatJoinsInTheMiddleIsToldTheRest(t *testing.T) {
	l := (&log{t: t}).add(delta("m1", 5, " you"), message("m1", "hello you"))
	tell := NewTeller("s1", "/w", ClientCapabilities{}, nil)
	tell.Resume("t1", "m1", "hello")
	if got := texts(t, tell.Tell(nil, l.entries, false))["agent_message_chunk m1"]; got != " you" {
		t.Errorf("told %q", got)
	}
}

func TestACursorIsCarriedByAFactsLastUpdateOrTheNextOne(t *testing.T) {
	l := (&log{t: t}).add(&protocol.TurnStarted{}, delta("m1", 0, "a"), delta("m1", 1, "b"), message("m1", "abc"), message("m2", ""), &protocol.TurnCompleted{})
	tell := NewTeller("s1", "/w", ClientCapabilities{}, nil)
	var got []protocol.Seq
	for _, told := range tell.Tell(nil, l.entries, false) {
		got = append(got, told.Cursor)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 0 || got[2] != 4 || tell.Owed() != 6 {
		t.Errorf("cursors %v, owed %d", got, tell.Owed())
	}
}

func requested(id, name, args string) protocol.Body {
	return &protocol.ToolRequested{ToolCallID: id, ToolName: name, Arguments: json.RawMessage(args)}
}

func TestAnEditShowsItsDiffBeforeAndAfterAndAPlanIsNoCall(t *testing.T) {
	before, after := "old\n", "new\n"
	change := &protocol.FileChange{ToolCallID: "c1", FilePath: "/w/a.txt"}
	change.More.OldText, change.More.NewText = &before, &after
	l := (&log{t: t}).add(
		requested("c1", "edit_file", `{"path":"a.txt","old_str":"old","new_str":"new"}`), &protocol.ToolCallStarted{ToolCallID: "c1", ToolName: "edit_file"}, change,
		&protocol.ToolResult{ToolCallID: "c1", ToolName: "edit_file", Status: "completed", Result: `{"ok":true,"tool":"edit_file","data":"done"}`},
		requested("c2", "update_plan", `{}`), &protocol.PlanUpdated{Plan: []protocol.PlanStep{{Step: "one", Status: "completed"}, {Step: "two", Status: "cancelled"}}},
		&protocol.ToolCallStarted{ToolCallID: "c2", ToolName: "update_plan"}, &protocol.ToolResult{ToolCallID: "c2", ToolName: "update_plan", Status: "completed", Result: `{}`},
	)
	var got []string
	for _, told := range NewTeller("s1", "/w", ClientCapabilities{}, nil).Tell(nil, l.entries, false) {
		got = append(got, string(told.Raw()))
	}
	want := []string{
		`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit a.txt","name":"edit_file","kind":"edit","status":"pending","content":[{"type":"diff","path":"/w/a.txt","oldText":"old","newText":"new"}],"locations":[{"path":"/w/a.txt"}],"rawInput":{"path":"a.txt","old_str":"old","new_str":"new"}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"diff","path":"/w/a.txt","oldText":"old\n","newText":"new\n"}],"locations":[{"path":"/w/a.txt"}],"rawOutput":{"ok":true,"tool":"edit_file","data":"done"}}`,
		`{"sessionUpdate":"plan","entries":[{"content":"one","priority":"medium","status":"completed"}]}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAReplayTellsWholeMessagesAndEndsWithWhatIsOpen(t *testing.T) {
	ask := &protocol.ApprovalRequested{ActionID: "a1", ToolCallID: "c2", ToolName: "bash", Title: "run"}
	said := &protocol.UserMessage{}
	said.More.ID, said.More.Text, said.More.Origin = "u1", "hi", protocol.OriginUser
	l := (&log{t: t}).add(
		said, delta("m1", 0, "a"), delta("m1", 1, "b"), message("m1", "ab"), requested("c1", "bash", `{"command":"true"}`),
		&protocol.ToolResult{ToolCallID: "c1", ToolName: "bash", Status: "completed", Result: `{"ok":true,"data":{"stdout":"out"}}`},
		requested("c2", "bash", `{"command":"ls"}`), ask,
	)
	for _, alive := range []bool{true, false} {
		tell := NewTeller("s1", "/w", ClientCapabilities{}, func(protocol.TurnID) bool { return true })
		tell.Replay(false)
		told := tell.Tell(nil, l.entries, false)
		told, asks := tell.EndReplay(told, Open{Turn: "t1", Message: "m2", Text: "so far", Alive: alive})
		got := texts(t, told)
		if got["user_message_chunk u1"] != "hi" || got["agent_message_chunk m1"] != "ab" || got["agent_message_chunk m2"] != "so far" {
			t.Errorf("alive %v: told %v", alive, got)
		}
		last := string(told[len(told)-1].Raw())
		if failed := strings.Contains(last, `"toolCallId":"c2","status":"failed"`); failed == alive {
			t.Errorf("alive %v: ends with %s", alive, last)
		}
		if (len(asks) == 1) != alive {
			t.Errorf("alive %v: %d asks", alive, len(asks))
		}
	}
}

func TestMessagesThatAreOpenAtTheEndOfAReplayAreToldInTheOrderOfTheirTurns(t *testing.T) {
	l := &log{t: t}
	var want []string
	for i := range 8 {
		l.add(delta(fmt.Sprint("m", i), 0, "a"))
		l.entries[i].Turn = protocol.TurnID(fmt.Sprint("t", i))
		want = append(want, fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","messageId":"m%d","content":{"type":"text","text":"a"}}`, i))
	}
	tell := NewTeller("s1", "/w", ClientCapabilities{}, nil)
	tell.Replay(false)
	told, _ := tell.EndReplay(tell.Tell(nil, l.entries, false), Open{})
	var got []string
	for i := range told {
		got = append(got, string(told[i].Raw()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("told\n%s", strings.Join(got, "\n"))
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	text := strings.Repeat("é", maxPiece)
	l := (&log{t: t}).add(message("m1", text))
	told := NewTeller("s1", "/w", ClientCapabilities{}, nil).Tell(nil, l.entries, false)
	if len(told) < 2 || texts(t, told)["agent_message_chunk m1"] != text {
		t.Errorf("%d chunks that do not add up", len(told))
	}
	for i := range told {
		if n := len(told[i].Raw()); n > 4<<20 {
			t.Errorf("a line of %d bytes", n)
		}
	}
}

func TestTheCostToldIsThatOfTheSessionHoweverItIsTold(t *testing.T) {
	sampling := func(cost *float64, kind string) protocol.Body {
		b := &protocol.TokenStatsUpdated{Stats: protocol.Stats{SamplingKind: kind, InputTokens: 10, ContextWindowTokens: 100}}
		b.More.Cost = cost
		return b
	}
	price := func(p float64) *float64 { return &p }
	l := (&log{t: t}).add(sampling(price(1), "assistant"), sampling(price(2), protocol.SamplingCompact), sampling(nil, "assistant"), sampling(price(4), "assistant"))
	last := func(told []Told) string {
		if len(told) == 0 {
			return ""
		}
		return string(told[len(told)-1].Update)
	}
	const all = `{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":7,"currency":"USD"}}`
	for _, merge := range []bool{false, true} {
		live := NewTeller("s1", "/w", ClientCapabilities{}, nil)
		if got := last(live.Tell(nil, l.entries, merge)); got != all {
			t.Errorf("merge %v: %s", merge, got)
		}
		joined := NewTeller("s1", "/w", ClientCapabilities{}, nil)
		joined.Spent(3)
		if got := last(joined.Tell(nil, l.entries[2:], merge)); got != all {
			t.Errorf("merge %v, joined later: %s", merge, got)
		}
		replay := NewTeller("s1", "/w", ClientCapabilities{}, nil)
		replay.Replay(true)
		told := replay.Tell(nil, l.entries[2:], merge)
		if told, _ = replay.EndReplay(told, Open{Cost: 7}); len(told) != 1 || last(told) != all {
			t.Errorf("merge %v, replayed: %s", merge, last(told))
		}
	}
	unknown := NewTeller("s1", "/w", ClientCapabilities{}, nil)
	if got := last(unknown.Tell(nil, l.entries[2:3], false)); strings.Contains(got, "cost") {
		t.Errorf("without a price: %s", got)
	}
}

func TestTheCommandsOfAHostedAgentComeBehindOurs(t *testing.T) {
	b := &protocol.CommandsChanged{}
	b.More.Data = json.RawMessage(`[{"name":"status","description":"theirs"},7,{"name":"review","description":"Review it","input":{"hint":"what"}},{"name":""}]`)
	l := (&log{t: t}).add(b)
	tell := NewTeller("s1", "/w", ClientCapabilities{}, nil)
	tell.Commands = []Command{{Name: "status", Description: "ours"}}
	told := tell.Tell(nil, l.entries, false)
	const want = `{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"status","description":"ours"},{"name":"review","description":"Review it","input":{"hint":"what"}}]}`
	if len(told) != 1 || string(told[0].Update) != want {
		t.Errorf("%+v", told)
	}
	tell.Replay(false)
	if told := tell.Tell(nil, l.entries, false); len(told) > 0 {
		t.Errorf("a replay tells %s", told[0].Update)
	}
}

// Progress shows the end of what a tool wrote so far: whole characters, and no more than its bound.
func TestLongProgressIsCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", maxProgress), "x" + strings.Repeat("é", maxProgress), strings.Repeat("日", maxProgress) + "x"} {
		b := &protocol.ToolProgress{ToolCallID: "c1", ToolName: "bash"}
		b.More.Content = text
		l := (&log{t: t}).add(b)
		all := NewTeller("s1", "/w", ClientCapabilities{}, nil).Tell(nil, l.entries, false)
		raw := string(all[len(all)-1].Raw())
		var u struct {
			Content []struct{ Content struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(raw), &u); err != nil {
			t.Fatal(err)
		}
		shown := u.Content[0].Content.Text
		if len(shown) > maxProgress || len(shown) < maxProgress-4 || !strings.HasSuffix(text, shown) {
			t.Errorf("%d bytes, from %.20q", len(shown), shown)
		}
	}
}

// However much there is to tell, a line out is at most 4 MiB (docs/protocol/acp.md section 3): the smallest reader takes 10.
func TestNoLineIsLongerThanAReaderTakesWhateverItTells(t *testing.T) {
	huge, half := strings.Repeat("\x00é", 540<<10), strings.Repeat("\x00", 60<<10)
	said := &protocol.UserMessage{}
	said.More.ID, said.More.Text, said.More.Origin = "u1", huge, protocol.OriginUser
	said.More.Parts = []protocol.Part{
		{Kind: "resource", URI: "file:///a", Text: huge},
		{Kind: "resource", URI: huge, Data: []byte(huge)},
		{Kind: "image", URI: huge, MIME: "image/png", Data: []byte(huge)},
		{Kind: "resource_link", URI: huge, Name: huge},
		{Kind: "resource", URI: "file:///b", Text: "short"},
	}
	plan := &protocol.PlanUpdated{}
	offered := []Command{}
	for range 20 {
		plan.Plan = append(plan.Plan, protocol.PlanStep{Step: half, Status: "pending"})
		offered = append(offered, Command{Name: fmt.Sprint("c", len(offered)), Description: half})
	}
	commands := &protocol.CommandsChanged{}
	commands.More.Data = protocol.MustMarshal(offered)
	retry := &protocol.TurnStepRetry{}
	retry.More.Message = huge
	bodies := []protocol.Body{
		said, message("m1", huge), plan, commands, retry, &protocol.Notice{Severity: "info", Title: huge[:1000]},
		requested("c1", "edit_file", `{"path":"a","old_str":"`+strings.Repeat("x", 1<<20)+`","new_str":""}`),
	}
	for i := range 12 {
		f := &protocol.FileChange{ToolCallID: "c1", FilePath: fmt.Sprint("/w/", i)}
		f.More.OldText, f.More.NewText = &half, &half
		bodies = append(bodies, f)
	}
	bodies = append(bodies, &protocol.ToolResult{ToolCallID: "c1", ToolName: "edit_file", Status: "failed", Result: huge}, &protocol.TurnFailed{Error: huge})
	l := (&log{t: t}).add(bodies...)
	for _, replay := range []bool{false, true} {
		tell := NewTeller("s1", "/w", ClientCapabilities{Notices: true}, nil)
		if replay {
			tell.Replay(false)
		}
		all := tell.Tell(nil, l.entries, false)
		text, kinds := "", map[string]int{}
		for i := range all {
			line := AppendUpdate(nil, "s1", all[i].Raw(), all[i].Cursor)
			if len(line) > 4<<20 {
				t.Errorf("replay %v: a line of %d bytes: %.200s", replay, len(line), line)
			}
			if c := all[i].Chunk; c != nil && c.Kind == AgentChunk {
				text += c.Text
			}
			var u struct {
				SessionUpdate string
				Content       json.RawMessage
			}
			if err := json.Unmarshal(all[i].Raw(), &u); err != nil {
				t.Fatal(err)
			}
			kinds[u.SessionUpdate]++
			if u.SessionUpdate == ToolCallUpdate {
				if n := strings.Count(string(u.Content), `"type":"diff"`); n < 3 || !strings.Contains(string(u.Content), "[…]") {
					t.Errorf("replay %v: %d changes are shown", replay, n)
				}
			}
		}
		if text != huge || kinds[UserChunk] < 5 || kinds[PlanUpdate] != 1 || kinds[ToolCallUpdate] != 1 {
			t.Errorf("replay %v: told %v", replay, kinds)
		}
	}
}
