package acpagent

import (
	"slices"
	"strings"
)

// This file is what no word about a child may show.

// secrets are the values that no word about a child may show.
func secrets(servers []Server) (values []string) {
	for _, s := range servers {
		for _, v := range s.Env {
			values = append(values, v)
		}
		for _, vs := range s.Headers {
			for _, v := range vs {
				values = append(values, v)
				if _, bare, ok := strings.Cut(v, " "); ok { // "Bearer KEY"
					values = append(values, bare)
				}
			}
		}
	}
	return values
}

// masker hides the values of an environment that are secrets: of variables that hold keys, and of those that env and pass name; and further ones.
func masker(environment []string, spec *Spec, further []string, more func(string) string) func(string) string {
	var pairs []string
	for _, value := range further {
		if len(value) >= 6 {
			pairs = append(pairs, value, "[hidden]")
		}
	}
	for _, kv := range environment {
		name, value, _ := strings.Cut(kv, "=")
		_, own := spec.Env[name]
		passed := slices.ContainsFunc(spec.PassEnv, func(p string) bool { return sameName(p, name) })
		if len(value) >= 6 && (holdsKey(name) || own || passed) {
			pairs = append(pairs, value, "[hidden]")
		}
	}
	r := strings.NewReplacer(pairs...)
	return func(s string) string { return more(r.Replace(s)) }
}
