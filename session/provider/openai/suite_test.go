package openai_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model makes a model for an endpoint whose connections end with the test.
func model(t testing.TB, api string, e providertest.Endpoint) *openai.Model {
	t.Helper()
	m, err := openai.New(openai.Config{Name: "test", BaseURL: e.URL + "/v1/", Key: e.Key, Headers: e.Headers, Idle: e.Idle, Transport: e.Transport}, api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestChatCompletionsKeepTheContractOfAModel(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Wire: providertest.OpenAIChat{},
		New:  func(t testing.TB, e providertest.Endpoint) session.Model { return model(t, openai.Chat, e) },
	})
}

func TestResponsesKeepTheContractOfAModel(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Wire: providertest.OpenAIResponses{},
		New:  func(t testing.TB, e providertest.Endpoint) session.Model { return model(t, openai.Responses, e) },
	})
}

func TestAnUnknownAPIIsRefused(t *testing.T) {
	if _, err := openai.New(openai.Config{Name: "mine", BaseURL: "http://host"}, "openai-telepathy"); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("got %v", err)
	}
}
