package guide

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// asked is `/skill:name` at the beginning of a line.
	asked = regexp.MustCompile(`(?m)^[ \t]*/skill:([^\s]+)`)
	// dollar is `$name`.
	dollar = regexp.MustCompile(`\$([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)`)
)

// Mentioned finds the skills a prompt names, each once and in the order of the text: `/skill:name` at the beginning of a line, in any case,
// and `$name` in lower case, as written, standing for itself, where known says that there is such a skill; $HOME and $5 are just text. unknown is the first
// name after /skill: that is none; "" for none.
func Mentioned(text string, known func(name string) bool) (names []string, unknown string) {
	type mention struct {
		at   int
		name string
	}
	var all []mention
	for _, m := range asked.FindAllStringSubmatchIndex(text, -1) {
		name := strings.ToLower(text[m[2]:m[3]])
		if !known(name) {
			if unknown == "" {
				unknown = text[m[2]:m[3]]
			}
			continue
		}
		all = append(all, mention{m[2], name})
	}
	for _, m := range dollar.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[2]:m[3]]
		if !wordAt(text, m[0]-1, `$\`) && !wordAt(text, m[3], "") && known(name) {
			all = append(all, mention{m[2], name})
		}
	}
	slices.SortStableFunc(all, func(a, b mention) int { return a.at - b.at })
	for _, m := range all {
		if !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names, unknown
}

// wordAt tells whether text goes on at i: with a letter, a digit, _ or one of more.
func wordAt(text string, i int, more string) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	c := text[i]
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || strings.IndexByte(more, c) >= 0
}
