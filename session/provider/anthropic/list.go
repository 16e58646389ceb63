package anthropic

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// listPages bounds a list of models.
const listPages = 20

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
	ctx, cancel := modelhttp.ListTime(ctx)
	defer cancel()
	var out []session.ModelInfo
	seen := map[string]bool{}
	query := url.Values{"limit": {"1000"}}
	for range listPages {
		page, err := m.at.Page(ctx, "/v1/models?"+query.Encode())
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
		query.Set("after_id", page.LastID)
	}
	return out, nil
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
