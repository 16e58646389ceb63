package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/rind-dev/rind/session"
)

const longestName = 64 // what providers take

// named gives tools the names the model knows them by. Where two would share one, both get a hash.
func named(tools []*tool) []session.Tool {
	count := map[string]int{}
	for _, t := range tools {
		count[plainName(t)]++
	}
	out := make([]session.Tool, 0, len(tools))
	for _, t := range tools {
		name := plainName(t)
		if count[name] > 1 {
			name = hashed(t)
		}
		out = append(out, &namedTool{tool: t, name: name})
	}
	return out
}

// plainName is mcp__SERVER__TOOL. Where that is not exactly what the server and its configuration say, or could be read in two ways, it ends in
// a hash of both: consent is remembered by name, and must not pass to another tool.
func plainName(t *tool) string {
	name := joined(t)
	if allowed(t.server.name) && allowed(t.original) && len(name) <= longestName && strings.Count(name, "__") == 2 {
		return name
	}
	return hashed(t)
}

func joined(t *tool) string { return "mcp__" + sanitised(t.server.name) + "__" + sanitised(t.original) }

func hashed(t *tool) string {
	sum := sha256.Sum256([]byte(t.server.name + "\x00" + t.original))
	tail := "_" + hex.EncodeToString(sum[:4])
	name := joined(t)
	return name[:min(len(name), longestName-len(tail))] + tail
}

func letter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func allowed(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !letter(r) }) && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_")
}

func sanitised(s string) string {
	return strings.Map(func(r rune) rune {
		if letter(r) {
			return r
		}
		return '_'
	}, s)
}
