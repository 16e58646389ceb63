package openai

import (
	"strings"

	"github.com/rind-dev/rind/session"
)

// facts is what is known of a model without asking the endpoint (docs/models.md).
type facts struct {
	window  int // tokens
	efforts []string
	images  bool
}

var (
	reasons  = []string{"low", "medium", "high"}
	minimal  = []string{"minimal", "low", "medium", "high"}
	sparing  = []string{"none", "low", "medium", "high"}
	thorough = []string{"none", "low", "medium", "high", "xhigh"}
)

// table holds OpenAI's own models, the longest prefix first: their endpoint says of them no more than the name. Prices are not held here: they
// change, and are shown only where the endpoint tells them.
var table = []struct {
	prefix string
	facts
}{
	{"gpt-5.2", facts{400_000, thorough, true}},
	{"gpt-5.1", facts{400_000, sparing, true}},
	{"gpt-5-chat", facts{128_000, nil, true}},
	{"gpt-5", facts{400_000, minimal, true}},
	{"gpt-4.1", facts{1_047_576, nil, true}},
	{"gpt-4o", facts{128_000, nil, true}},
	{"gpt-4-turbo", facts{128_000, nil, true}},
	{"gpt-3.5-turbo", facts{16_385, nil, false}},
	{"o4-mini", facts{200_000, reasons, true}},
	{"o3-mini", facts{200_000, reasons, false}},
	{"o3", facts{200_000, reasons, true}},
	{"o1", facts{200_000, reasons, true}},
}

// Info describes a model by what is known of it without asking the endpoint now: what its list said last, else the table.
func (m *Model) Info(model string) session.ModelInfo {
	if info, ok := m.heard.Load(model); ok {
		return info.(session.ModelInfo)
	}
	return Known(session.ModelInfo{Provider: m.at.Name, ID: model, Name: model, API: m.api})
}

// Known adds to info what is known of the model by its name; what the endpoint or the settings said stays. Routers write openai/ before
// the name; a name of another maker is not looked up.
func Known(info session.ModelInfo) session.ModelInfo {
	name := strings.TrimPrefix(info.ID, "openai/")
	for _, row := range table {
		rest, ok := strings.CutPrefix(name, row.prefix)
		if !ok || rest != "" && strings.IndexByte("-.:@", rest[0]) < 0 {
			continue
		}
		if info.Window == 0 {
			info.Window = row.window
		}
		if info.Efforts == nil {
			info.Efforts = append([]string(nil), row.efforts...)
		}
		if info.Images == nil {
			images := row.images
			info.Images = &images
		}
		break
	}
	return info
}
