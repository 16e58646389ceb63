package settings

import "encoding/json"

// Schema gives the JSON Schema (draft 2020-12) of a settings file. Unknown members are allowed, as they are when the file is read.
func Schema() json.RawMessage {
	props := properties(top)
	providers := props["providers"].(map[string]any)
	providers["propertyNames"] = map[string]any{"pattern": name().String()}
	providers["additionalProperties"] = map[string]any{"type": "object", "properties": properties(perProvider)}
	out, err := json.MarshalIndent(map[string]any{
		"$schema":    "https://json-schema.org/draft/2020-12/schema",
		"title":      "rind settings",
		"type":       "object",
		"properties": props,
	}, "", "  ")
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return out
}

func properties(rows []Row) map[string]any {
	props := make(map[string]any, len(rows))
	for _, r := range rows {
		p := map[string]any{"description": r.Text}
		// A member that is null counts as absent.
		switch r.Type {
		case "list":
			p["type"] = []string{"array", "null"}
			p["items"] = map[string]any{"type": "string"}
		case "map":
			p["type"] = []string{"object", "null"}
			p["additionalProperties"] = map[string]any{"type": "string"}
		default:
			p["type"] = []string{r.Type, "null"}
		}
		if r.Type == "integer" {
			p["minimum"] = 1
		}
		if r.Enum != nil {
			values := []any{nil}
			for _, e := range r.Enum {
				values = append(values, e)
			}
			p["enum"] = values
		}
		props[r.Key] = p
	}
	return props
}
