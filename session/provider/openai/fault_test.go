package openai_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/providertest"
)

func TestProvidersNameTheirFaultsInTheirOwnWords(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		fault  session.Fault
		says   string
	}{
		"OpenAI, context":       {400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, session.FaultContext, "maximum context length"},
		"OpenRouter, context":   {400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens.","code":400,"metadata":{"provider_name":null}}}`, session.FaultContext, "40000"},
		"llama.cpp, context":    {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, session.FaultContext, "available context size"},
		"llama.cpp before":      {500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`, session.FaultContext, ""},
		"vLLM, context":         {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","param":null,"code":400}`, session.FaultContext, "4096"},
		"vLLM now":              {400, `{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that max_model_len is no smaller. Please reduce the length of the input messages.","type":"BadRequestError","code":400}}`, session.FaultContext, ""},
		"Ollama, context":       {400, `{"error":{"message":"the input length exceeds the context length","type":"invalid_request_error","param":null,"code":null}}`, session.FaultContext, ""},
		"Ollama, plain":         {400, `{"error":"input length exceeds maximum context length"}`, session.FaultContext, ""},
		"too large for HTTP":    {413, `<html>413</html>`, session.FaultContext, "413"},
		"more than a minute's":  {429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.","type":"tokens","code":"rate_limit_exceeded"}}`, session.FaultContext, ""},
		"a minute's tokens":     {429, `{"error":{"message":"Rate limit reached: too many tokens per minute","type":"tokens","code":"rate_limit_exceeded"}}`, session.FaultRate, ""},
		"OpenAI, quota":         {429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, session.FaultQuota, "plan and billing"},
		"OpenRouter, credits":   {402, `{"error":{"message":"Insufficient credits","code":402}}`, session.FaultQuota, "Insufficient credits"},
		"OpenAI, key":           {401, `{"error":{"message":"Incorrect API key provided: sk-abcd***wxyz.","type":"invalid_request_error","code":"invalid_api_key"}}`, session.FaultAuth, "Incorrect API key"},
		"key, by 400":           {400, `{"error":{"message":"bad key","code":"invalid_api_key"}}`, session.FaultAuth, ""},
		"OpenAI, model":         {404, `{"error":{"message":"The model gpt-9 does not exist or you do not have access to it.","code":"model_not_found"}}`, session.FaultModel, "gpt-9"},
		"no access to a model":  {403, `{"error":{"message":"Project does not have access to model gpt-9","code":"model_not_found"}}`, session.FaultModel, ""},
		"OpenRouter, model":     {400, `{"error":{"message":"gpt-9 is not a valid model ID","code":400}}`, session.FaultModel, ""},
		"Ollama, model":         {404, `{"error":"model 'x' not found, try pulling it first"}`, session.FaultModel, "try pulling"},
		"FastAPI":               {422, `{"detail":[{"loc":["body"],"msg":"Field required","type":"missing"}]}`, session.FaultRejected, "Field required"},
		"Hugging Face":          {503, `{"error":"unavailable","message":"the model is loading"}`, session.FaultServer, "the model is loading"},
		"behind a router":       {400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"maximum context length is 10\"}}"}}}`, session.FaultContext, "Provider returned error: maximum context length is 10"},
		"plain text":            {500, "upstream connect error", session.FaultServer, "500 Internal Server Error: upstream connect error"},
		"a page":                {502, "<html><h1>Bad Gateway</h1></html>", session.FaultServer, "502 Bad Gateway"},
		"gateway timeout":       {504, "", session.FaultTimeout, "504"},
		"request timeout":       {408, "", session.FaultTimeout, "408"},
		"a message of no words": {400, `{"error":{"message":"","type":"invalid_request_error"}}`, session.FaultRejected, "400 Bad Request"},
	} {
		e := providertest.ErrorOf(t, chat(t, providertest.JSON(test.status, test.body)))
		if e.Fault != test.fault || e.Status != test.status || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %s, status %d, %q, want %s with %q", name, e.Fault, e.Status, e.Message, test.fault, test.says)
		}
	}
}

func TestAQuotaThatComesBackByItselfIsARate(t *testing.T) {
	e := providertest.ErrorOf(t, chat(t, providertest.JSON(429, `{"error":{"message":"Quota exceeded for requests per minute"}}`).With("Retry-After-Ms", "1500")))
	if e.Fault != session.FaultRate || e.RetryAfter != 1500*time.Millisecond {
		t.Errorf("%s after %v", e.Fault, e.RetryAfter)
	}
}

func TestTheListOfModelsSaysWhatTheEndpointKnows(t *testing.T) {
	yes, no := true, false
	for name, test := range map[string]struct {
		body string
		want []session.ModelInfo
	}{
		"OpenAI":     {`{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"},{"id":""},7]}`, []session.ModelInfo{{ID: "b", Name: "b"}, {ID: "a", Name: "a"}}},
		"OpenRouter": {`{"data":[{"id":"x/y","name":"Y","context_length":32768,"architecture":{"input_modalities":["text","image"]}},{"id":"x/z","architecture":{"input_modalities":["text"]}}]}`, []session.ModelInfo{{ID: "x/y", Name: "Y", Window: 32768, Images: &yes}, {ID: "x/z", Name: "x/z", Images: &no}}},
		"vLLM":       {`{"data":[{"id":"v","max_model_len":4096}]}`, []session.ModelInfo{{ID: "v", Name: "v", Window: 4096}}},
		"llama.cpp":  {`{"models":[{}],"data":[{"id":"l","meta":{"n_ctx_train":8192}}]}`, []session.ModelInfo{{ID: "l", Name: "l", Window: 8192}}},
		"bare":       {` [{"id":"t"}]`, []session.ModelInfo{{ID: "t", Name: "t"}}},
		"none":       {`{"data":[]}`, []session.ModelInfo{}},
	} {
		server := providertest.NewServer(t, providertest.JSON(200, test.body))
		for i := range test.want {
			test.want[i].Provider, test.want[i].API = "test", openai.Chat
		}
		got, err := model(t, openai.Chat, providertest.Endpoint{URL: server.URL(), Key: "sk-1234"}).List(t.Context())
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if r := server.Requests()[0]; r.Method != "GET" || r.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-1234" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
