package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/rind-dev/rind/session"
)

// Bounds of a list of models.
const (
	listBytes = 8 << 20 // of a page
	listPages = 20
	listTime  = 20 * time.Second
)

type modelPage struct {
	Data    []json.RawMessage `json:"data"`
	HasMore bool              `json:"has_more"`
	LastID  string            `json:"last_id"`
}

type yes struct {
	Supported bool `json:"supported"`
}

// listed is a model as the endpoint describes it. Endpoints that only speak the API's language give the id and little else.
type listed struct {
	ID           string `json:"id"`
	DisplayName  string `json:"display_name"`
	Window       int    `json:"max_input_tokens"`
	MaxTokens    int    `json:"max_tokens"`
	Capabilities *struct {
		Image    *yes           `json:"image_input"`
		Effort   map[string]any `json:"effort"` // level -> yes, beside supported
		Thinking *struct {
			Types struct {
				Adaptive yes `json:"adaptive"`
				Enabled  yes `json:"enabled"`
			} `json:"types"`
		} `json:"thinking"`
	} `json:"capabilities"`
}

// List asks the endpoint for its models, in its order: GET /v1/models, page by page, at most 20 of 8 MiB within 20 s. What it says of them
// holds for the requests that follow. An error is a *session.ModelError or the cause of ctx.
func (m *Model) List(ctx context.Context) ([]session.ModelInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, errIdle)
	defer cancel()
	var out []session.ModelInfo
	seen := map[string]bool{}
	after := ""
	for range listPages {
		page, err := m.page(ctx, after)
		if err != nil {
			return nil, err
		}
		fresh := 0
		for _, raw := range page.Data { // one odd model does not hide the others
			var d listed
			if json.Unmarshal(raw, &d) != nil || d.ID == "" || seen[d.ID] {
				continue
			}
			seen[d.ID] = true
			fresh++
			m.hear(&d)
			info := m.Info(d.ID)
			if d.DisplayName != "" {
				info.Name = d.DisplayName
			}
			out = append(out, info)
		}
		if !page.HasMore || page.LastID == "" || fresh == 0 {
			break
		}
		after = page.LastID
	}
	return out, nil
}

// page asks for the models behind one.
func (m *Model) page(ctx context.Context, after string) (*modelPage, error) {
	query := url.Values{"limit": {"1000"}}
	if after != "" {
		query.Set("after_id", after)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.cfg.BaseURL+"/v1/models?"+query.Encode(), nil)
	if err != nil {
		return nil, m.unusable(err)
	}
	req.Header.Set("Accept", "application/json")
	m.headers(req)
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, m.network(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, listBytes+1))
	if err != nil {
		return nil, m.network(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, m.refused(resp, text)
	}
	page := &modelPage{}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		err = json.Unmarshal(text, &page.Data)
	} else {
		err = json.Unmarshal(text, page)
	}
	if err != nil || len(text) > listBytes {
		return nil, &session.ModelError{Fault: session.FaultBadReply, Status: resp.StatusCode, Message: "The endpoint's list of models cannot be read; check baseUrl.", Cause: m.redacted(err)}
	}
	return page, nil
}

// hear takes down what the endpoint says of a model; what it leaves out stays as the table has it.
func (m *Model) hear(d *listed) {
	f := tabled(d.ID)
	if d.Window > 0 {
		f.window = d.Window
	}
	if d.MaxTokens > 0 {
		f.output = d.MaxTokens
	}
	if c := d.Capabilities; c != nil {
		if c.Image != nil {
			f.images = &c.Image.Supported
		}
		if c.Thinking != nil {
			f.thinking, f.efforts = thinksNot, nil
			if c.Thinking.Types.Enabled.Supported {
				f.thinking, f.efforts = thinksOn, budgetEfforts
			}
			if levels := levelsOf(c.Effort); c.Thinking.Types.Adaptive.Supported {
				f.thinking, f.efforts = thinksFree, levels
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told[d.ID] = f
}

// levelsOf lists the efforts a model knows, least first.
func levelsOf(effort map[string]any) []string {
	return slices.DeleteFunc(slices.Clone(effortLevels), func(level string) bool {
		says, _ := effort[level].(map[string]any)
		supported, _ := says["supported"].(bool)
		return !supported
	})
}
