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
			c.steps = []map[string]json.RawMessage{{"delta": json.RawMessage(`"x"`)}, {"final": json.RawMessage(`""`)}}
		}),
	} {
		if got := readMockConfig(json.RawMessage(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
