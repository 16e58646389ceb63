package main

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func schemaCommand(std *streams) *cobra.Command {
	var ts bool
	names := strings.Join(slices.Sorted(maps.Keys(schemas)), ", ")
	cmd := &cobra.Command{
		Use: "schema PROTOCOL", Short: "Write a protocol as JSON Schema, or with --ts as TypeScript declarations (" + names + ")", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, known := schemas[args[0]]
			if !known {
				return usageError{errors.New("no schema for " + args[0] + "; there is one for: " + names)}
			}
			text, err := s.json()
			if ts {
				text, err = s.typeScript(), nil
			}
			if err != nil {
				return err
			}
			_, err = std.out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&ts, "ts", false, "TypeScript declarations")
	return cmd
}
