package tooltest

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

// draw makes arguments that the schema allows, and now and then a null where something may be left out.
func (s *suite) draw(t *rapid.T) map[string]any {
	args := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.props)) {
		needed := slices.Contains(s.need, name)
		switch {
		case !needed && rapid.IntRange(0, 9).Draw(t, name+" given") < 5:
			continue
		case !needed && rapid.IntRange(0, 19).Draw(t, name+" null") == 0:
			args[name] = nil
		case s.w.Only[name] != nil:
			args[name] = rapid.SampledFrom(s.w.Only[name]).Draw(t, name)
		default:
			args[name] = s.value(t, name, s.props[name])
		}
	}
	return args
}

func (s *suite) value(t *rapid.T, name string, p *jsonschema.Schema) any {
	if len(p.Enum) > 0 {
		return rapid.SampledFrom(p.Enum).Draw(t, name)
	}
	kind := p.Type
	if kind == "" && len(p.Types) > 0 {
		kind = rapid.SampledFrom(p.Types).Draw(t, name+" type")
	}
	switch kind {
	case "string":
		return s.text(t, name)
	case "integer", "number":
		low, high := -1<<53, 1<<53
		if p.Minimum != nil {
			low = int(*p.Minimum)
		}
		if p.Maximum != nil {
			high = int(*p.Maximum)
		}
		return rapid.OneOf(rapid.IntRange(low, high), rapid.IntRange(low, min(high, low+5))).Draw(t, name)
	case "boolean":
		return rapid.Bool().Draw(t, name)
	case "array":
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, name+" length") {
			if p.Items != nil {
				list = append(list, s.value(t, name, p.Items))
			}
		}
		return list
	case "object":
		o := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(p.Properties)) {
			if slices.Contains(p.Required, k) || rapid.Bool().Draw(t, k+" given") {
				o[k] = s.value(t, k, p.Properties[k])
			}
		}
		return o
	}
	return nil
}

// text is a path of the workspace, a way out, a pattern, an option of some program, or anything.
func (s *suite) text(t *rapid.T, name string) string {
	known := append(s.w.waysOut(),
		".", "a.txt", "empty", "sub", "sub/b.go", "inlink/b.go", "crlf.txt", "binary", "latin1", "long", "picture.png", "nope", "sub/new.txt",
		"alpha", "beta\ngamma", "one\ntwo", "x", "(", "[a-", "a{1,1001}", ".*", "^$", "(a*)*", "**/*", "*.txt", "**/*.{go,txt}", "{a,{b,{c", "[",
		"../*", "../../**", "--help", "-e", "--", "-f/etc/passwd", "--pre=x", "\\", "\u00e9", "\uFEFF", "\r\n", "\u202e", "%s%n")
	return rapid.OneOf(rapid.SampledFrom(known), rapid.String()).Draw(t, name)
}
