package modelhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/rind-dev/rind/session"
)

// Bounds of a list of models.
const (
	listBytes = 8 << 20 // of a page
	listTime  = 20 * time.Second
)

// Page is a piece of an endpoint's list of models, each as the endpoint describes it.
type Page struct {
	Data    []json.RawMessage `json:"data"`
	HasMore bool              `json:"has_more"`
	LastID  string            `json:"last_id"`
}

// ListTime bounds the context of a list: all of its pages within 20 s.
func ListTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, listTime, errIdle)
}

// Page gets a page of the list of models, at most 8 MiB, from a path below BaseURL: {"data":[…]} or the bare list. An error is a
// *session.ModelError or the cause of ctx.
func (e *Endpoint) Page(ctx context.Context, path string) (*Page, error) {
	resp, err := e.Do(ctx, e.BaseURL+path, "application/json", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, listBytes+1))
	if err != nil {
		return nil, e.network(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, e.refused(resp, text)
	}
	page := &Page{}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		err = json.Unmarshal(text, &page.Data)
	} else {
		err = json.Unmarshal(text, page)
	}
	if err != nil || len(text) > listBytes {
		return nil, &session.ModelError{Fault: session.FaultBadReply, Status: resp.StatusCode, Message: "The endpoint's list of models cannot be read; check baseUrl.", Cause: e.redacted(err)}
	}
	return page, nil
}
