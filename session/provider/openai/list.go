package openai

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// listed is a model as endpoints describe it: OpenAI gives the id alone, OpenRouter, vLLM and llama.cpp say more.
type listed struct {
	ID            string `json:"id"`
	OwnedBy       string `json:"owned_by"`
	Name          string `json:"name"`
	ContextLength int    `json:"context_length"`
	MaxModelLen   int    `json:"max_model_len"`
	Meta          struct {
		Context int `json:"n_ctx_train"`
	} `json:"meta"`
	Architecture struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"`
	Pricing *struct { // US dollars per token, as texts
		Prompt     string `json:"prompt"`
		Completion string `json:"completion"`
	} `json:"pricing"`
	Parameters []string `json:"supported_parameters"`
}

// price is what a model costs, nil where the endpoint does not say, or says that it depends (a negative number).
func (d *listed) price() *session.Price {
	if d.Pricing == nil {
		return nil
	}
	in, err := strconv.ParseFloat(d.Pricing.Prompt, 64)
	out, err2 := strconv.ParseFloat(d.Pricing.Completion, 64)
	if err != nil || err2 != nil || !(in >= 0) || !(out >= 0) {
		return nil
	}
	return &session.Price{Input: in * 1e6, Output: out * 1e6}
}

// List asks the endpoint for its models, in its order: GET /models, at most 8 MiB within 20 s; Ollama and llama.cpp also for what their list
// leaves out. What no endpoint says is filled in from what is known of OpenAI's models, and all of it holds for Info from then on. An error is
// a *session.ModelError or the cause of ctx.
func (m *Model) List(ctx context.Context) ([]session.ModelInfo, error) {
	ctx, cancel := modelhttp.ListTime(ctx)
	defer cancel()
	page, err := m.at.Page(ctx, "/models")
	if err != nil {
		return nil, err
	}
	models := make([]listed, 0, len(page.Data))
	for _, raw := range page.Data { // one odd model does not hide the others
		var d listed
		if json.Unmarshal(raw, &d) == nil && d.ID != "" {
			models = append(models, d)
		}
	}
	out := make([]session.ModelInfo, 0, len(models))
	for _, d := range models {
		info := session.ModelInfo{
			Provider: m.at.Name, ID: d.ID, Name: d.Name, API: m.api,
			Window: max(d.ContextLength, d.MaxModelLen),
		}
		if info.Window == 0 {
			info.Window = d.Meta.Context
		}
		if info.Name == "" {
			info.Name = d.ID
		}
		if d.Architecture.Input != nil {
			images := slices.Contains(d.Architecture.Input, "image")
			info.Images = &images
		}
		if slices.Contains(d.Parameters, "reasoning") {
			info.Efforts = slices.Clone(reasons)
		}
		info.Price = d.price()
		out = append(out, info)
	}
	m.beside(ctx, models, out)
	for i := range out {
		out[i] = Known(out[i])
		m.heard.Store(out[i].ID, out[i])
	}
	return out, nil
}
