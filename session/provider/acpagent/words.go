package acpagent

import (
	"errors"
	"runtime"
	"strings"
	"unicode"

	"github.com/rind-dev/rind/protocol/acp"
)

// This file is command lines: of agents, as people write them, and of commands, as they are judged.

// Split splits a command line into words: white space separates, single and double quotes keep it, a backslash keeps the character behind it
// (not within single quotes). Nothing is expanded.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			word.WriteRune(r)
		case r == '\\' && escapes(runes, i, quote):
			i++
			word.WriteRune(runes[i])
			open = true
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case unicode.IsSpace(r):
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	switch {
	case quote != 0:
		return nil, errors.New("a quote is not closed")
	case open:
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("it is empty")
	}
	return words, nil
}

// escapes reports whether the backslash at i keeps the character behind it: in a Windows path it is a backslash.
func escapes(runes []rune, i int, quote rune) bool {
	if i+1 >= len(runes) {
		return false
	}
	next := runes[i+1]
	if quote == '"' || runtime.GOOS == "windows" {
		return next == '"' || next == '\\' && runtime.GOOS != "windows"
	}
	return true
}

// commandLine is a command as a shell would read it, so that it can be judged: behind the variables that are set for it.
func commandLine(set []acp.Pair, command string, args []string) string {
	var words []string
	for _, v := range set {
		if identifier(v.Name) {
			words = append(words, v.Name+"="+quoted(v.Value))
		} else {
			words = append(words, quoted(v.Name+"="+v.Value))
		}
	}
	if len(args) == 0 { // a whole command line
		return strings.Join(append(words, command), " ")
	}
	for _, w := range append([]string{command}, args...) {
		words = append(words, quoted(w))
	}
	return strings.Join(words, " ")
}

// identifier reports whether a shell takes a name before = for that of a variable.
func identifier(name string) bool {
	return name != "" && !unicode.IsDigit(rune(name[0])) && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// quoted is a word as it is written for a shell.
func quoted(w string) string {
	if w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return w
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,+@%", r)
}
