package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/anthropic"
	"github.com/rind-dev/rind/session/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model makes a model for an endpoint whose connections end with the test.
func model(t testing.TB, e providertest.Endpoint) *anthropic.Model {
	t.Helper()
	m, err := anthropic.New(anthropic.Config{Name: "test", BaseURL: e.URL, Key: e.Key, Headers: e.Headers, Idle: e.Idle, Transport: e.Transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestMessagesKeepTheContractOfAModel(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Wire: providertest.Anthropic{},
		New:  func(t testing.TB, e providertest.Endpoint) session.Model { return model(t, e) },
	})
}
