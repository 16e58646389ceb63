package archtest

const module = "github.com/rind-dev/rind"

// A room is one package, or (path ends in "/*") every package directly inside a folder that has no row of its own.
// Test files are judged apart: they may import any room, so that a seam can be tested with what is on its other side.
type room struct {
	path string
	// ours lists the packages of this module it may import, "x/*" for those directly inside x. A package under a "/*" row
	// never imports its siblings, whatever is listed.
	ours []string
	// third lists modules, or packages and what lies below them, that it may import beside the standard library.
	third []string
	// processes allows os/exec, serves allows serving HTTP.
	processes, serves bool
	// testOnly marks a room that only test files, and other such rooms, may import.
	testOnly bool
}

// Below session everything stands on the words alone; beside it are the rooms that touch the machine.
var (
	ground = []string{"protocol", "session", "session/proc", "session/roots"}
	codecs = []string{"protocol", "protocol/frame", "protocol/rpc", "protocol/rindv2", "protocol/acp", "protocol/portable"}
	system = []string{"golang.org/x/sys"}
)

// rooms is the only place where the layers are written down. A package without a row fails the test.
var rooms = []room{
	{path: "protocol"},
	{path: "protocol/frame", ours: []string{"protocol"}},
	{path: "protocol/rpc", ours: []string{"protocol", "protocol/frame"}, third: []string{"github.com/sourcegraph/jsonrpc2"}},
	{path: "protocol/rindv2", ours: []string{"protocol"}},
	{path: "protocol/transcript", ours: []string{"protocol"}},
	{path: "protocol/acp", ours: []string{"protocol"}},
	{path: "protocol/portable", ours: []string{"protocol"}},

	{path: "session", ours: []string{"protocol"}, third: schema}, // arguments are checked before a tool sees them
	{path: "session/proc", ours: []string{"protocol"}, third: system, processes: true},
	{path: "session/roots", ours: []string{"protocol"}, third: system},
	{path: "session/settings", ours: []string{"protocol"}},
	{path: "session/keyring", ours: []string{"session/proc"}},
	{path: "session/record", ours: []string{"protocol"}},
	{path: "session/consent", ours: ground, third: []string{"mvdan.cc/sh"}}, // reads commands before they are allowed
	{path: "session/guide", ours: []string{"protocol", "session", "session/roots"}},
	{path: "session/images", ours: ground},
	{path: "session/modelhttp", ours: ground}, // a layer below the providers that ask over HTTP
	{path: "session/undo", ours: ground, third: []string{"github.com/aymanbagabas/go-udiff"}},

	{path: "session/store/sqlite", ours: ground, third: append([]string{"modernc.org/sqlite", "zombiezen.com/go/sqlite"}, system...)},
	{path: "session/store/storetest", ours: ground, third: doubles, testOnly: true},
	{path: "session/store/*", ours: ground},

	{
		path: "session/provider/openai", ours: append([]string{"session/modelhttp"}, ground...),
		third: []string{"charm.land/fantasy", "github.com/openai/openai-go", "github.com/google/jsonschema-go"},
	},
	{path: "session/provider/anthropic", ours: append([]string{"session/modelhttp"}, ground...)},
	{
		path: "session/provider/acpagent", ours: append([]string{"protocol/acp", "protocol/rpc", "protocol/frame"}, ground...),
		third: []string{"github.com/aymanbagabas/go-udiff"}, // what changed between the texts an agent tells
	},
	{path: "session/provider/providertest", ours: ground, third: doubles, testOnly: true},
	{path: "session/provider/*", ours: ground},

	{path: "session/tool/files", ours: ground, third: append(schema, "github.com/aymanbagabas/go-udiff")},
	{
		path: "session/tool/search", ours: ground,
		third: append(schema, "github.com/bmatcuk/doublestar"),
	},
	{path: "session/tool/skill", ours: ground, third: append(schema, "github.com/aymanbagabas/go-udiff")},
	{path: "session/tool/shell", ours: ground, third: schema},
	{
		path: "session/tool/web", ours: ground,
		third: append(schema, "golang.org/x/text/encoding"), // the encodings of older pages
	},
	{path: "session/tool/mcp", ours: ground},
	{path: "session/tool/tooltest", ours: ground, third: append(doubles, schema...), testOnly: true},
	{path: "session/tool/*", ours: ground, third: schema},

	{path: "dispatcher/executions", ours: []string{"protocol", "protocol/portable", "session"}}, // below the two that carry it
	{path: "dispatcher/outlet", ours: []string{"protocol", "session"}},                          // below the dialects that write to one connection
	{path: "dispatcher", ours: append([]string{"session", "dispatcher/executions", "dispatcher/outlet"}, codecs...)},
	{path: "dispatcher/acp", ours: []string{"protocol", "protocol/acp", "protocol/rpc", "protocol/frame", "session", "dispatcher/outlet"}},
	{path: "dispatcher/httpapi", ours: append([]string{"session", "dispatcher", "dispatcher/executions"}, codecs...), serves: true},

	{
		path: "cmd/rind",
		ours: append([]string{
			"protocol/*", "session/*", "session/store/*", "session/provider/*", "session/tool/*", "dispatcher", "dispatcher/acp", "dispatcher/executions", "dispatcher/httpapi",
		}, ground...),
		third: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "golang.org/x/sys", "golang.org/x/tools/txtar"},
	},

	{path: "docs/clients/go"}, // to be read and copied from: nothing of ours
	{path: "fixtures", third: doubles, testOnly: true},
	{
		path: "internal/testkit", ours: append([]string{"protocol/*", "session/*", "dispatcher"}, ground...),
		third: append([]string{"github.com/sourcegraph/jsonrpc2"}, doubles...), processes: true, serves: true, testOnly: true,
	},
	{ // what the tests of connections and of whole turns have in common
		path: "internal/peers", ours: []string{"protocol", "session", "session/provider/*", "session/store/*", "internal/testkit"}, third: doubles, testOnly: true,
	},
	{path: "internal/archtest", processes: true, testOnly: true},
	{path: "internal/bench", ours: append([]string{"session/store/sqlite"}, ground...), third: []string{"modernc.org/sqlite", "zombiezen.com/go/sqlite"}, processes: true, testOnly: true},
}

var (
	schema  = []string{"github.com/google/jsonschema-go"}
	doubles = []string{
		"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "go.uber.org/goleak", "golang.org/x/tools/txtar", "pgregory.net/rapid",
	}
)

// guests are modules that only the rooms whose row names them, and their tests, may import. Test files may import further modules
// freely, but a guest in the wrong room's tests would tie that room to what it must not know.
var guests = []string{
	"modernc.org/sqlite", "zombiezen.com/go/sqlite", "charm.land/fantasy", "github.com/openai/openai-go", "github.com/anthropics/anthropic-sdk-go",
	"github.com/spf13/cobra", "github.com/modelcontextprotocol/go-sdk",
}

// composed are the rooms that only cmd/rind/compose.go (and test files) may name: a new store, provider, tool or dialect is one
// line there and nowhere else.
var composed = []string{
	"protocol/rindv2", "protocol/acp", "protocol/portable", "session/store/*", "session/provider/*", "session/tool/*",
}
