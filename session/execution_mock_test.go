package session

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestAMockTakesAValueOfAnotherTypeForNone(t *testing.T) {
	usual := mockConfig{prefix: "Echo: ", delay: 2 * time.Millisecond}
	with := func(change func(*mockConfig)) mockConfig {
		c := usual
		change(&c)
		return c
	}
	for text, want := range map[string]mockConfig{
		``:   usual,
		`{}`: usual,
		`{"prefix":null,"delayMs":null,"requireApproval":null,"requestInput":null,"artifactName":null,"steps":null,"other":1}`: usual,
		`{"prefix":1,"delayMs":"5","requireApproval":"true","requestInput":1,"artifactName":{},"steps":{"delta":"x"}}`:         usual,
		`{"delayMs":-1}`:                               usual,
		`{"delayMs":1e999}`:                            usual,
		`{"prefix":"","delayMs":0}`:                    with(func(c *mockConfig) { c.prefix, c.delay = "", 0 }),
		`{"prefix":"a\n\u00e4","delayMs":1.5}`:         with(func(c *mockConfig) { c.prefix, c.delay = "a\nä", 1500*time.Microsecond }),
		`{"delayMs":1e300}`:                            with(func(c *mockConfig) { c.delay = 1e9 * time.Millisecond }),
		`{"requireApproval":true,"requestInput":true}`: with(func(c *mockConfig) { c.approval, c.input = true, true }),
		`{"requireApproval":true,"requireApproval":0}`: usual, // the last of a repeated member stands
		`{"prefix":"x","prefix":[]}`:                   with(func(c *mockConfig) { c.prefix = "Echo: " }),
		`{"artifactName":"a.txt"}`:                     with(func(c *mockConfig) { c.artifact = "a.txt" }),
		`{"steps":[{"delta":"x"},{"final":""}]}`: with(func(c *mockConfig) {
			c.steps = []json.RawMessage{json.RawMessage(`{"delta":"x"}`), json.RawMessage(`{"final":""}`)}
		}),
	} {
		if got := readMockConfig(json.RawMessage(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// Names in a step match by their exact case, null is not absent, and what the contract's shape of a step does not have is dropped.
func TestAStepIsReadAsTheContractWritesIt(t *testing.T) {
	for text, want := range map[string]bool{
		`{"delta":""}`: true, `{"fail":""}`: true, `{"final":"x"}`: true, `{"delta":"a","delta":"b"}`: true,
		`{"sleepMs":0}`: true, `{"sleepMs":1.5}`: true, `{"sleepMs":1e300}`: true,
		`{"event":{"method":"m","params":{}}}`: true, `{"event":{"method":"m"}}`: true, `{"event":{"method":"m","more":null}}`: true,
		`{"artifact":{}}`:            true, // what it lacks is told where it is emitted
		`{"approval":{"title":"t"}}`: true, `{"approval":{"title":"t","payload":{"n":1}}}`: true, `{"approval":{"title":""}}`: true,
		`{"input":{"title":"t"}}`:           true,
		`{"tool":{"name":"x","result":""}}`: true,
		`{"tool":{"name":"x","result":"r","arguments":{"a":1},"status":"failed"}}`: true,

		`null`: false, `[]`: false, `"delta"`: false, `{}`: false, `{"delta":"a","final":"b"}`: false, `{"Delta":"a"}`: false, `{"wait":1}`: false,
		`{"delta":null}`: false, `{"delta":1}`: false, `{"fail":null}`: false, `{"final":{}}`: false,
		`{"sleepMs":null}`: false, `{"sleepMs":"1"}`: false, `{"sleepMs":-1}`: false, `{"sleepMs":true}`: false,
		`{"event":null}`: false, `{"event":{}}`: false, `{"event":{"METHOD":"m"}}`: false, `{"event":{"method":null}}`: false,
		`{"event":{"method":"m","params":5}}`: false, `{"event":{"method":"m","params":null}}`: false, `{"event":{"method":"m","params":[]}}`: false,
		`{"artifact":5}`: false, `{"artifact":null}`: false,
		`{"approval":{}}`: false, `{"approval":{"TITLE":"x"}}`: false, `{"approval":{"title":1}}`: false, `{"approval":null}`: false, `{"approval":"t"}`: false,
		`{"input":{}}`: false, `{"input":{"Title":"x"}}`: false, `{"input":{"title":null}}`: false,
		`{"tool":{"NAME":"x","result":"r"}}`: false, `{"tool":{"name":"","result":"r"}}`: false, `{"tool":{"name":"x"}}`: false,
		`{"tool":{"name":"x","result":null}}`: false, `{"tool":{"name":"x","result":"r","arguments":5}}`: false,
		`{"tool":{"name":"x","result":"r","arguments":null}}`: false, `{"tool":{"name":"x","result":"r","status":1}}`: false,
		`{"tool":{"name":"x","result":"r","status":""}}`: false, `{"tool":null}`: false,
	} {
		if _, ok := readStep(json.RawMessage(text)); ok != want {
			t.Errorf("%s is a step: %v", text, ok)
		}
	}
}

func TestAFixtureReadsItsModeByItsExactName(t *testing.T) {
	for text, want := range map[string]struct {
		mode  string
		count int
	}{
		`{}`: {"", 5}, `{"MODE":"throw","Count":2}`: {"", 5}, `{"mode":"throw"}`: {"throw", 5}, `{"mode":"artifacts","count":2.0}`: {"artifacts", 2},
		`{"mode":1,"count":"2"}`: {"", 5}, `{"mode":null,"count":null}`: {"", 5},
	} {
		if mode, count := fixtureMode(json.RawMessage(text)); mode != want.mode || count != want.count {
			t.Errorf("%s: %q %d", text, mode, count)
		}
	}
}
