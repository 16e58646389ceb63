package settings

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Row describes one setting. The checks, `rind config`, the JSON schema and docs/settings.md all come from these rows.
type Row struct {
	Key     string   // "model"; of one provider "providers.NAME.model"
	Type    string   // "string", "integer", "boolean", "list" (of strings), "map" (of strings), "object"
	Enum    []string // the only values, nil for any
	Default string   // what holds when it is not set, in words where it depends on something; "" for nothing
	Secret  bool     // never shown whole
	Text    string   // what it does, one or two sentences
	check   func(value any) string
}

// provided is what both the top level (for the provider that has no name of its own) and an entry of `providers` may say.
var provided = []Row{
	{
		Key: "baseUrl", Type: "string", Default: "the provider's own address; https://api.openai.com/v1", check: isWebAddress,
		Text: "Address of the model endpoint. For Ollama http://localhost:11434/v1, for llama.cpp http://localhost:8080/v1.",
	},
	{
		Key: "apiKey", Type: "string", Secret: true, check: isKey,
		Text: `The key itself, or "$NAME" for the environment variable NAME. "" sends no key, as local servers need none.`,
	},
	{Key: "keyring", Type: "boolean", Default: "false", Text: "The key is in the system's keyring. Written by rind login."},
	{Key: "model", Type: "string", Default: "the provider's own; gpt-4o-mini", check: isModel, Text: "The model asked, as the provider names it."},
	{
		Key: "reasoningEffort", Type: "string", check: isWord,
		Text: "How long the model may think, in the provider's words (low, medium, high). Not set: the model's own default.",
	},
	{Key: "headers", Type: "map", Secret: true, Text: "Further headers of each request to the provider, by name."},
	{
		Key: "caFile", Type: "string", check: isPath,
		Text: "File of PEM certificates trusted beside the system's, for endpoints behind a company's own authority.",
	},
	{
		Key: "contextWindow", Type: "integer", Default: "what is known of the model, else 200000", check: isPositive,
		Text: "Size of the model's window in tokens. Of a model on this machine that nothing is known of: 8192 (docs/models.md).",
	},
	{Key: "images", Type: "boolean", Text: "Whether the model understands images. Not set: what is known of the model."},
}

// top are the members of the file.
var top = append([]Row{
	{
		Key: "provider", Type: "string", Default: DefaultProvider, check: isName,
		Text: "Name of the provider in use: one of `providers`, one that is built in (openai, anthropic, openrouter, demo), or any name " +
			"for the one that baseUrl and apiKey of this level describe.",
	},
	{
		Key: "api", Type: "string", Enum: []string{OpenAIChat, OpenAIResponses, Anthropic}, Default: OpenAIChat,
		Text: "What the endpoint at baseUrl speaks. A provider that is built in speaks what the table below says.",
	},
}, append(provided,
	Row{
		Key: "approvalMode", Type: "string", Enum: []string{"ask", "edit", "read", "full"}, Default: "ask",
		Text: "What a new session may do unasked: read only and ask for the rest (ask), also write inside the workspace (edit), only " +
			"read (read), everything (full).",
	},
	Row{Key: "providers", Type: "object", Text: "Several providers by name. Each has its own members, listed below."},
	Row{
		Key: "trustedWorkspaces", Type: "map", check: isTrust,
		Text: "Workspaces whose own settings are read, each with the hash of what it may enable. Written by rind trust.",
	},
	Row{
		Key: "folderDefaults", Type: "object", check: isFolders,
		Text: "What new sessions in a folder, and in those below it, begin with: an object of provider, model and reasoningEffort by the " +
			"folder's absolute path. Not read from a workspace.",
	},
	Row{Key: "mcpServers", Type: "object", Secret: true, Text: "Servers of the Model Context Protocol whose tools the model may use, by name (docs/mcp.md)."},
	Row{
		Key: "sandbox", Type: "string", Enum: []string{"auto", "off"}, Default: "auto",
		Text: "Whether commands run in a sandbox where the system has one (docs/containment.md).",
	},
	Row{
		Key: "searchUrl", Type: "string", check: isWebAddress,
		Text: "Address of a JSON search endpoint, {query} standing for the query. Not set: search_web is not offered (docs/web.md).",
	},
	Row{Key: "searchKey", Type: "string", Secret: true, check: isKey, Text: `Key for it, or "$NAME" for the environment variable NAME.`},
	Row{Key: "searchHeader", Type: "string", check: isWord, Text: "Header the key is sent in, as it is. Not set: Authorization: Bearer KEY."},
	Row{
		Key: "fetchPrivate", Type: "boolean", Default: "false",
		Text: "Whether fetch_web_page may reach private and loopback addresses.",
	},
	Row{
		Key: "clientFiles", Type: "string", Enum: []string{"auto", "never"}, Default: "auto",
		Text: "Whether files are read and written through an ACP editor that offers it, so that its unsaved text counts.",
	},
	Row{
		Key: "clientTerminal", Type: "string", Enum: []string{"never", "auto"}, Default: "never",
		Text: "Whether foreground commands run in an ACP editor's terminal where it offers one.",
	},
)...)

// perProvider are the members of one entry of `providers`.
var perProvider = append([]Row{{
	Key: "type", Type: "string", Enum: []string{OpenAIChat, OpenAIResponses, Anthropic, ACP, Script, Demo}, Default: OpenAIChat,
	Text: "What the provider speaks: a model endpoint (openai-chat, openai-responses, anthropic), another agent as a program (acp), or " +
		"answers that need no network (script, demo).",
}}, append(provided,
	Row{Key: "command", Type: "string", check: isPresent, Text: "acp: the program to start, found on PATH or absolute. No shell is involved."},
	Row{Key: "args", Type: "list", Text: "acp: its arguments."},
	Row{Key: "env", Type: "map", Secret: true, Text: "acp: variables set for it."},
	Row{Key: "passEnv", Type: "list", Text: "acp: names of our own environment variables that it gets too. It gets no key unless named here."},
	Row{Key: "authMethod", Type: "string", Text: "acp: id of the way to authenticate that is used before the first session."},
	Row{Key: "clientFs", Type: "boolean", Default: "true", Text: "acp: whether it may read and write files through us."},
	Row{Key: "clientTerminal", Type: "boolean", Default: "true", Text: "acp: whether it may run commands through us."},
	Row{Key: "script", Type: "string", check: isPath, Text: "script: path of the file of answers."},
)...)

// Rows lists every setting: the top level first, then the members of one provider under "providers.NAME.".
func Rows() []Row {
	rows := append([]Row(nil), top...)
	for _, r := range perProvider {
		r.Key = "providers.NAME." + r.Key
		rows = append(rows, r)
	}
	return rows
}

func rowOf(rows []Row, key string) (Row, bool) {
	for _, r := range rows {
		if r.Key == key {
			return r, true
		}
	}
	return Row{}, false
}

var (
	name     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })
	variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$`) })
	hash     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })
)

// The checks give the end of a sentence that begins with the setting's name, "" where the value is good. None repeats the value.

func isName(v any) string {
	if !name().MatchString(v.(string)) {
		return "must be 1 to 64 letters, digits, _ or -, and begin with a letter or digit"
	}
	return ""
}

func isKey(v any) string {
	s := v.(string)
	switch {
	case strings.HasPrefix(s, "$") && !variable().MatchString(s):
		return "begins with $ but does not name an environment variable"
	case strings.ContainsAny(s, "\r\n\x00"):
		return "must not contain line breaks"
	}
	return ""
}

func isModel(v any) string {
	if s := v.(string); s == "" || len([]rune(s)) > 128 || strings.ContainsAny(s, " \t\r\n") {
		return "must be 1 to 128 characters without spaces"
	}
	return ""
}

func isWord(v any) string {
	if s := v.(string); s == "" || strings.ContainsAny(s, " \t\r\n") {
		return "must be one word"
	}
	return ""
}

func isPresent(v any) string {
	if strings.TrimSpace(v.(string)) == "" {
		return "must not be blank"
	}
	return ""
}

func isPath(v any) string {
	if strings.ContainsRune(v.(string), 0) {
		return "must not contain a NUL"
	}
	return isPresent(v)
}

func isWebAddress(v any) string {
	u, err := url.Parse(v.(string))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "must be an address that begins with http:// or https://"
	}
	return ""
}

func isPositive(v any) string {
	if n, err := v.(json.Number).Int64(); err != nil || n < 1 {
		return "must be a whole number above 0"
	}
	return ""
}

func isTrust(v any) string {
	for dir, h := range v.(map[string]any) {
		if s, _ := h.(string); !filepath.IsAbs(dir) || !hash().MatchString(s) {
			return "must map absolute paths to hashes of 64 hexadecimal digits; leave it to rind trust"
		}
	}
	return ""
}
