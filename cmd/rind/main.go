// Command rind is an agent runtime: see README.md.
package main

import (
	_ "charm.land/fantasy"
	_ "charm.land/fantasy/providers/openai"
	_ "charm.land/fantasy/providers/openaicompat"
	_ "github.com/bmatcuk/doublestar/v4"
	_ "github.com/go-git/go-git/v5/plumbing/format/gitignore"
	_ "github.com/google/jsonschema-go/jsonschema"
	_ "github.com/sourcegraph/jsonrpc2"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "modernc.org/sqlite"
)

func main() {}
