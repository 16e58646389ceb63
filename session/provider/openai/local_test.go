package openai

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
)

// routes is a server that answers by method, path and body; what it has no answer for is 404.
type routes map[string]string

func (r routes) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		b, _ := io.ReadAll(req.Body)
		body = " " + strings.TrimSpace(string(b))
	}
	text, ok := r[req.Method+" "+req.URL.Path+body]
	status := http.StatusOK
	if !ok {
		text, status = `{"error":"not found"}`, http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
}

func yes(b bool) *bool { return &b }

func TestAListSaysOfModelsWhatTheirServerKnows(t *testing.T) {
	model := func(id string, window int, rest session.ModelInfo) session.ModelInfo {
		rest.Provider, rest.ID, rest.Name, rest.API, rest.Window = "p", id, id, Chat, window
		return rest
	}
	for _, c := range []struct {
		name   string
		server routes
		want   []session.ModelInfo
	}{
		{"Ollama", routes{
			"GET /v1/models": `{"object":"list","data":[{"id":"set:1b","owned_by":"library"},{"id":"loaded:1b","owned_by":"library"},{"id":"bare:1b","owned_by":"library"},
				{"id":"small:1b","owned_by":"library"},{"id":"gone:1b","owned_by":"library"}]}`,
			"GET /api/ps":                          `{"models":[{"name":"loaded:1b","context_length":16384}]}`,
			`POST /api/show {"model":"set:1b"}`:    `{"parameters":"stop  \"x\"\nnum_ctx    32768","model_info":{"llama.context_length":131072},"capabilities":["completion","vision"]}`,
			`POST /api/show {"model":"loaded:1b"}`: `{"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},"capabilities":["completion","tools"]}`,
			`POST /api/show {"model":"bare:1b"}`:   `{"model_info":{"llama.context_length":131072}}`,
			`POST /api/show {"model":"small:1b"}`:  `{"parameters":"num_ctx 32768","model_info":{"llama.context_length":2048,"llama.rope.scale":1.5}}`,
		}, []session.ModelInfo{
			model("set:1b", 32768, session.ModelInfo{Images: yes(true)}), model("loaded:1b", 16384, session.ModelInfo{Images: yes(false)}),
			model("bare:1b", 0, session.ModelInfo{}), model("small:1b", 2048, session.ModelInfo{}), model("gone:1b", 0, session.ModelInfo{}),
		}},
		{"llama.cpp", routes{
			"GET /v1/models": `{"data":[{"id":"local.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`,
			"GET /props":     `{"default_generation_settings":{"n_ctx":4096},"modalities":{"vision":false}}`,
		}, []session.ModelInfo{model("local.gguf", 4096, session.ModelInfo{Images: yes(false)})}},
		{"llama.cpp without properties", routes{
			"GET /v1/models": `{"data":[{"id":"local.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`,
		}, []session.ModelInfo{model("local.gguf", 131072, session.ModelInfo{})}},
		{"vLLM", routes{
			"GET /v1/models": `{"data":[{"id":"org/m","owned_by":"vllm","max_model_len":8192}]}`,
		}, []session.ModelInfo{model("org/m", 8192, session.ModelInfo{})}},
		{"OpenRouter", routes{
			"GET /v1/models": `{"data":[{"id":"a/m","context_length":64000,"architecture":{"input_modalities":["text","image"]},"pricing":{"prompt":"0.0000025","completion":"0.00001"},
				"supported_parameters":["tools","reasoning"]},{"id":"auto","pricing":{"prompt":"-1","completion":"-1"}},{"id":"free","pricing":{"prompt":"0","completion":"0"}},{"id":"odd","pricing":{"prompt":"NaN","completion":"x"}}]}`,
		}, []session.ModelInfo{
			model("a/m", 64000, session.ModelInfo{Images: yes(true), Price: &session.Price{Input: 2.5, Output: 10}, Efforts: []string{"low", "medium", "high"}}),
			model("auto", 0, session.ModelInfo{}), model("free", 0, session.ModelInfo{Price: &session.Price{}}), model("odd", 0, session.ModelInfo{}),
		}},
		{"OpenAI", routes{
			"GET /v1/models": `{"data":[{"id":"gpt-4o-mini-2024-07-18","owned_by":"system"},{"id":"o3","owned_by":"system"},{"id":"gpt-4orange"},{"id":"openai/gpt-4.1","context_length":1000}]}`,
		}, []session.ModelInfo{
			model("gpt-4o-mini-2024-07-18", 128000, session.ModelInfo{Images: yes(true)}), model("o3", 200000, session.ModelInfo{Images: yes(true), Efforts: []string{"low", "medium", "high"}}),
			model("gpt-4orange", 0, session.ModelInfo{}), model("openai/gpt-4.1", 1000, session.ModelInfo{Images: yes(true)}),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := New(Config{Name: "p", BaseURL: "http://127.0.0.1:1/v1", Key: "k", Transport: c.server}, Chat)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.List(t.Context())
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
			for _, info := range c.want { // and it is remembered
				if d := cmp.Diff(info, m.Info(info.ID)); d != "" {
					t.Error(d)
				}
			}
		})
	}
}
