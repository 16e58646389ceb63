package openai

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
)

// Bounds of the questions beside a list.
const (
	askMost  = 64 // models asked about one by one
	askTime  = 5 * time.Second
	askBytes = 4 << 20 // Ollama sends a model's whole template and licence
)

// Owners by which servers are known in their lists.
const (
	ownerOllama   = "library"
	ownerLlamaCpp = "llamacpp"
)

// beside asks a server of local models, known by the owner it lists, what its list leaves out. What does not answer changes nothing.
func (m *Model) beside(ctx context.Context, models []listed, out []session.ModelInfo) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	switch {
	case slices.ContainsFunc(models, func(d listed) bool { return d.OwnedBy == ownerOllama }):
		m.ollama(ctx, out)
	case slices.ContainsFunc(models, func(d listed) bool { return d.OwnedBy == ownerLlamaCpp }):
		m.llamaCpp(ctx, out)
	}
}

// ollama reads the window a model runs with: num_ctx where its file sets it, or what it was loaded with. What it was trained with is more than
// Ollama gives it unasked, and Ollama cuts the beginning off without a word: it only bounds.
func (m *Model) ollama(ctx context.Context, out []session.ModelInfo) {
	var loaded struct {
		Models []struct {
			Name    string `json:"name"`
			Context int    `json:"context_length"`
		} `json:"models"`
	}
	_ = m.side(ctx, "/api/ps", nil, &loaded)
	for i := range out[:min(len(out), askMost)] {
		info := &out[i]
		var shown struct {
			Parameters   string                     `json:"parameters"`
			Info         map[string]json.RawMessage `json:"model_info"`
			Capabilities []string                   `json:"capabilities"`
		}
		if m.side(ctx, "/api/show", map[string]string{"model": info.ID}, &shown) != nil {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		window := parameter(shown.Parameters, "num_ctx")
		for _, l := range loaded.Models {
			if l.Name == info.ID && l.Context > 0 {
				window = l.Context
			}
		}
		if window > 0 {
			info.Window = window
		}
		for key, value := range shown.Info {
			n, err := strconv.Atoi(string(value))
			if strings.HasSuffix(key, ".context_length") && err == nil && n > 0 && info.Window > n {
				info.Window = n
			}
		}
		if shown.Capabilities != nil {
			images := slices.Contains(shown.Capabilities, "vision")
			info.Images = &images
		}
	}
}

// parameter finds a number in the lines of a model file: "num_ctx    8192".
func parameter(lines, name string) int {
	sc := bufio.NewScanner(strings.NewReader(lines))
	for sc.Scan() {
		if f := strings.Fields(sc.Text()); len(f) == 2 && f[0] == name {
			n, _ := strconv.Atoi(f[1])
			return max(n, 0)
		}
	}
	return 0
}

// llamaCpp reads the window the server was started with; the list names the one the model was trained with.
func (m *Model) llamaCpp(ctx context.Context, out []session.ModelInfo) {
	var props struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities *struct {
			Vision bool `json:"vision"`
		} `json:"modalities"`
	}
	if m.side(ctx, "/props", nil, &props) != nil {
		return
	}
	for i := range out {
		if props.Settings.Context > 0 {
			out[i].Window = props.Settings.Context
		}
		if props.Modalities != nil {
			vision := props.Modalities.Vision
			out[i].Images = &vision
		}
	}
}

// side asks the server for something that lies beside /v1.
func (m *Model) side(ctx context.Context, path string, body, into any) error {
	resp, err := m.at.Do(ctx, strings.TrimSuffix(m.at.BaseURL, "/v1")+path, "application/json", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, askBytes)).Decode(into)
}
