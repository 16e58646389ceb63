package providertest

import (
	"strings"
	"testing"
)

func TestStrictRefusesWhatTheStrictestProviderRefuses(t *testing.T) {
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	const two = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	const result, other = `{"role":"tool","tool_call_id":"a","content":"x"}`, `{"role":"tool","tool_call_id":"b","content":"y"}`
	const user = `{"role":"user","content":"hi"}`
	const use = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]}`
	bad := func(arguments string) string { return strings.Replace(call, `"{}"`, arguments, 1) }
	for name, test := range map[string]struct{ messages, wrong string }{
		"plain":                             {user, ""},
		"call and result":                   {user + "," + call + "," + result + "," + user, ""},
		"two calls, results in any order":   {user + "," + two + "," + other + "," + result, ""},
		"no result":                         {user + "," + call, "no result"},
		"no result before the next message": {user + "," + call + "," + user + "," + result, "no result"},
		"one of two results":                {user + "," + two + "," + result + "," + user, "no result"},
		"two results":                       {user + "," + call + "," + result + "," + result, "second result"},
		"result of nothing":                 {user + "," + result, "nobody"},
		"an id twice":                       {user + "," + call + "," + result + "," + call + "," + result, "twice"},
		"arguments are a list":              {user + "," + bad(`"[]"`) + "," + result, "no object"},
		"arguments are nothing":             {user + "," + bad(`""`) + "," + result, "no JSON"},
		"arguments are cut":                 {user + "," + bad(`"{\"a\":"`) + "," + result, "no JSON"},
		"half a pair in the arguments":      {user + "," + bad(`"{\"a\":\"\\ud99c\"}"`) + "," + result, "surrogate"},
		"a whole pair in the arguments":     {user + "," + bad(`"{\"a\":\"\\ud83c\\udf0d\"}"`) + "," + result, ""},
		"an escaped backslash before u":     {user + "," + bad(`"{\"a\":\"\\\\ud99c\"}"`) + "," + result, ""},
		"half a pair in the text":           {`{"role":"user","content":"\ud99c"}`, "surrogate"},
		"the second half alone":             {`{"role":"user","content":"\udc00x"}`, "surrogate"},
		"bad UTF-8":                         {"{\"role\":\"user\",\"content\":\"\xff\"}", "UTF-8"},
		"an empty user":                     {`{"role":"user","content":""}`, "empty"},
		"an empty assistant":                {user + `,{"role":"assistant","content":""}`, "says nothing"},
		"unknown role":                      {`{"role":"robot","content":"x"}`, "no such role"},
		"blocks":                            {user + "," + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"},{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"x"}]}`, ""},
		"blocks, one result missing":        {user + "," + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"}]},` + user, "no result"},
		"blocks, results in two messages":   {user + "," + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`, "no result"},
		"blocks, text before the result":    {user + "," + use + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b"}]}`, "behind other"},
		"blocks, input is text":             {user + "," + strings.Replace(use, `"input":{}`, `"input":"x"`, 1), "no object"},
	} {
		err := Strict([]byte(`{"model":"m","messages":[` + test.messages + `]}`))
		if test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, test.wrong)
		}
	}
	for body, wrong := range map[string]string{
		`{"messages":[]}`: "neither", `{"messages":[`: "no JSON", `{"input":[{"type":"message"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"message"}]}`: "no result",
	} {
		if err := Strict([]byte(body)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", body, err, wrong)
		}
	}
}
