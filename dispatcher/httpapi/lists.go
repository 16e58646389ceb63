package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Bounds of the lists under our own prefix (section 2.1).
const (
	defaultLimit = 50
	longestLimit = 200
	mostLooked   = 2000 // executions looked at for one page of a filter; the cursor goes on from there
)

var errBadList = portable.Invalid("Invalid list query")

// listed is a query of a list. Each parameter may be given once; state more often.
type listed struct {
	values url.Values
	limit  int
	cursor string
}

func (x *exchange) listed(names ...string) (listed, error) {
	q := listed{limit: defaultLimit}
	var err error
	if q.values, err = url.ParseQuery(x.r.URL.RawQuery); err != nil {
		return q, errBadList
	}
	for _, name := range append(names, "limit", "cursor") {
		if len(q.values[name]) > 1 || len(q.values[name]) == 1 && q.values[name][0] == "" {
			return q, errBadList
		}
	}
	if text := q.values.Get("limit"); text != "" {
		n, ok := cursor(text)
		if !ok || n < 1 || n > longestLimit {
			return q, errBadList
		}
		q.limit = int(n)
	}
	q.cursor = q.values.Get("cursor")
	return q, nil
}

type conversationRow struct {
	Conversation portable.Conversation `json:"conversation"`
	Session      session.SessionID     `json:"sessionId"`
	Title        string                `json:"title"`
	Workspace    string                `json:"workspaceRoot"`
	Updated      string                `json:"updatedAt"`
}

// listConversations lists all sessions, last activity first.
func (x *exchange) listConversations() error {
	q, err := x.listed("workspace")
	if err != nil {
		return err
	}
	ask := session.Query{All: true, Limit: q.limit, Page: q.cursor}
	if name := q.values.Get("workspace"); name != "" {
		if !ValidWorkspaceName(name) {
			return errBadList
		}
		if ask.Workspace = x.s.cfg.Workspaces[name]; ask.Workspace == "" {
			return &portable.Error{Code: portable.NotFound, Message: "Workspace not found: " + name}
		}
	}
	metas, next, err := x.s.cfg.Sessions.Store().Sessions(x.r.Context(), ask)
	if protocol.KindOf(err) == protocol.InvalidRequest {
		return errBadList
	}
	if err != nil {
		return executions.Stored(err)
	}
	out := struct {
		Conversations []conversationRow `json:"conversations"`
		Next          string            `json:"nextCursor,omitempty"`
	}{[]conversationRow{}, next}
	for i := range metas {
		m := &metas[i]
		out.Conversations = append(out.Conversations, conversationRow{
			executions.Show(m), m.ID, m.Title, m.Workspace, portable.FormatTime(m.Activity),
		})
	}
	return x.answer(http.StatusOK, out)
}

var states = []string{
	portable.Queued, portable.Starting, portable.Running, portable.AwaitingApproval, portable.AwaitingInput, portable.Cancelling, portable.Succeeded,
	portable.Failed, portable.Cancelled,
}

// listExecutions lists executions, newest first: of all surfaces, as reading one by its id does.
func (x *exchange) listExecutions() error {
	q, err := x.listed("conversationId", "providerId")
	if err != nil {
		return err
	}
	ask := session.TurnQuery{}
	if q.cursor != "" {
		if ask.Before, err = strconv.ParseInt(q.cursor, 36, 64); err != nil || ask.Before < 1 {
			return errBadList
		}
	}
	for _, state := range q.values["state"] {
		if !slices.Contains(states, state) {
			return errBadList
		}
	}
	out := struct {
		Executions []portable.Execution `json:"executions"`
		Next       string               `json:"nextCursor,omitempty"`
	}{Executions: []portable.Execution{}}
	if c := q.values.Get("conversationId"); c != "" {
		meta, err := x.s.cfg.Sessions.Store().Conversation(x.r.Context(), c)
		if errors.Is(err, session.ErrNotFound) { // a filter nothing fits
			return x.answer(http.StatusOK, out)
		}
		if err != nil {
			return executions.Stored(err)
		}
		ask.Session = meta.ID
	}
	for looked := 0; looked < mostLooked; {
		ask.Limit = longestLimit
		page, err := x.s.cfg.Sessions.Store().Turns(x.r.Context(), ask)
		if err != nil {
			return executions.Stored(err)
		}
		for i, t := range page {
			looked++
			ask.Before = t.Place
			e, ok, err := x.row(t, q.values.Get("providerId"), q.values["state"])
			if err != nil {
				return err
			}
			if ok {
				out.Executions = append(out.Executions, e)
			}
			if len(out.Executions) == q.limit {
				if i < len(page)-1 || len(page) == ask.Limit {
					out.Next = strconv.FormatInt(t.Place, 36)
				}
				return x.answer(http.StatusOK, out)
			}
		}
		if len(page) < ask.Limit {
			return x.answer(http.StatusOK, out)
		}
	}
	out.Next = strconv.FormatInt(ask.Before, 36)
	return x.answer(http.StatusOK, out)
}

// row is an execution in a list; false for a turn that is none, does not fit the filters, or was deleted meanwhile.
func (x *exchange) row(t session.TurnPlace, provider string, states []string) (e portable.Execution, ok bool, err error) {
	ended := func(s string) bool { return s == portable.Succeeded || s == portable.Failed || s == portable.Cancelled }
	if len(states) > 0 && !slices.ContainsFunc(states, func(s string) bool { return ended(s) == t.Ended }) {
		return e, false, nil
	}
	run, err := x.s.cfg.Commands.Find(x.r.Context(), portable.ExecutionPrefix+string(t.Turn))
	if err == nil && (provider == "" || provider == run.Provider()) {
		if e, err = run.Read(x.r.Context()); err == nil {
			return e, len(states) == 0 || slices.Contains(states, e.State), nil
		}
	}
	if portable.FromError(err).Code == portable.NotFound {
		err = nil
	}
	return e, false, err
}
