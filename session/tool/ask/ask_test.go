package ask_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/ask"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

// person answers what is asked, and keeps it.
type person struct {
	answer   string
	err      error
	question string
	options  []protocol.Choice
	asked    int
}

func (*person) Say(string) {}

func (p *person) Ask(_ context.Context, question string, options []protocol.Choice) (string, error) {
	p.asked++
	p.question, p.options = question, options
	return p.answer, p.err
}

// hurried is the person of the suite, who answers at once: its own waits for the turn's end, as a person may.
type hurried struct{ session.Tool }

func (h hurried) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	return h.Tool.Run(ctx, call, &person{answer: "yes"})
}

func TestItKeepsThePromisesOfTools(t *testing.T) {
	tooltest.Run(t, hurried{ask.UserQuestion()}, tooltest.NewWorkspace(t))
}

func run(t testing.TB, args string, p *person) (session.ToolResult, error) {
	t.Helper()
	return ask.UserQuestion().Run(t.Context(), session.ToolCall{Name: "ask_user_question", Arguments: []byte(args)}, p)
}

func TestAQuestionIsPutAsItWasMeantAndItsAnswerTrimmed(t *testing.T) {
	two := []protocol.Choice{{Label: "SQLite (Recommended)", Description: "one file"}, {Label: "Postgres"}}
	for _, c := range []struct {
		args    string
		options []protocol.Choice
	}{
		{`{"question":" Which store? "}`, nil},
		{`{"question":"Which store?","options":null}`, nil},
		{`{"question":"Which store?","options":[]}`, nil},
		{`{"question":"Which store?","options":[{"label":" SQLite (Recommended) ","description":"one file"},{"label":"Postgres"}]}`, two},
	} {
		p := &person{answer: " \tneither\n"}
		res, err := run(t, c.args, p)
		if err != nil || res.ErrorType != "" {
			t.Fatalf("%s: %+v, %v", c.args, res, err)
		}
		if data, _ := json.Marshal(res.Data); string(data) != `{"answer":"neither"}` {
			t.Errorf("%s: data %s", c.args, data)
		}
		if diff := cmp.Diff(c.options, p.options); diff != "" || p.question != "Which store?" {
			t.Errorf("%s: asked %q, -want +got\n%s", c.args, p.question, diff)
		}
	}
}

func TestAnEmptyAnswerIsAFailureOfTheCall(t *testing.T) {
	for _, answer := range []string{"", " \n\t"} {
		res, err := run(t, `{"question":"Which?"}`, &person{answer: answer})
		want := session.ToolResult{Status: protocol.ToolFailed, ErrorType: protocol.ErrQuestionEmpty, Error: "User provided an empty answer."}
		if diff := cmp.Diff(want, res); diff != "" || err != nil {
			t.Errorf("%q: %v, -want +got\n%s", answer, err, diff)
		}
	}
}

func TestWhatIsNoQuestionIsNeverPut(t *testing.T) {
	many := strings.Repeat(`{"label":"x"},`, 12)
	for args, says := range map[string]string{
		`{}`:                                  "blank",
		`{"question":" \n"}`:                  "blank",
		`{"question":["Which?"]}`:             "question",
		`{"question":"?","options":"a or b"}`: "options",
		`{"question":"` + strings.Repeat("é", 4001) + `"}`:                                                                         "4001 characters",
		`{"question":"?","options":[{"label":"a"},{"label":"b"}]}`:                                                                 `first option must end with " (Recommended)"`,
		`{"question":"?","options":[{"label":"a"},{"label":"b (Recommended)"}]}`:                                                   "first option must end with",
		`{"question":"?","options":[{"label":"a(Recommended)"}]}`:                                                                  "first option must end with",
		`{"question":"?","options":[{"label":"a (recommended)"}]}`:                                                                 "first option must end with",
		`{"question":"?","options":[{"label":"a (Recommended)"},{"label":"b (Recommended)"}]}`:                                     "not option 2",
		`{"question":"?","options":[{"label":" (Recommended)"}]}`:                                                                  "first option must end with",
		`{"question":"?","options":[{"label":"a (Recommended)"},{"label":" "}]}`:                                                   "option 2 has no label",
		`{"question":"?","options":[{"label":"a (Recommended)"},{"label":"b\nc"}]}`:                                                "more than one line",
		`{"question":"?","options":[{"label":"a (Recommended)"},{"label":"A"}]}`:                                                   "options 1 and 2 have the same label",
		`{"question":"?","options":[{"label":"` + strings.Repeat("é", 190) + ` (Recommended)"}]}`:                                  "too long",
		`{"question":"?","options":[` + many + `{"label":"x"}]}`:                                                                   "13 options",
		`{"question":"?","options":[{"label":"a (Recommended)"},{"label":"b","description":"` + strings.Repeat("x", 1001) + `"}]}`: "too long",
	} {
		p := &person{answer: "yes"}
		res, err := run(t, args, p)
		if err != nil || res.Status != protocol.ToolRejected || res.ErrorType != protocol.ErrInvalidArguments || !strings.Contains(res.Error, says) {
			t.Errorf("%.200s: %+v, %v, want %q", args, res, err, says)
		}
		if p.asked > 0 {
			t.Errorf("%.200s: the person was asked", args)
		}
	}
}

func TestTheEndOfTheTurnEndsTheCall(t *testing.T) {
	cause := errors.New("the turn was cancelled")
	if _, err := run(t, `{"question":"Which?"}`, &person{err: cause}); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	p := &person{answer: "yes"}
	_, err := ask.UserQuestion().Run(ctx, session.ToolCall{Name: "ask_user_question", Arguments: []byte(`{"question":"Which?"}`)}, p)
	if !errors.Is(err, cause) || p.asked > 0 {
		t.Errorf("error %v, asked %d times", err, p.asked)
	}
}
