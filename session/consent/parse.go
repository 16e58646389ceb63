package consent

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var bash = syntax.Variant(syntax.LangBash)

// parse reads text as a shell command. With an error come the statements before it, which a shell that reads line by line runs.
func parse(text string) ([]*syntax.Stmt, error) {
	if len(text) > mostBytes {
		return nil, errTooMuch
	}
	depth, most := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
			most = max(most, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	if most > mostNesting {
		return nil, errTooMuch // the parser nests as deeply as the text does
	}
	f, err := guard(func() (*syntax.File, error) { return syntax.NewParser(bash).Parse(strings.NewReader(text), "") })
	if err == nil {
		return f.Stmts, nil
	}
	var list []*syntax.Stmt
	_, _ = guard(func() (*syntax.File, error) {
		for x, err := range syntax.NewParser(bash).StmtsSeq(strings.NewReader(text)) {
			if err != nil {
				break
			}
			list = append(list, x)
		}
		return nil, nil
	})
	return list, err
}

// uncommented is text in which no comment ends with a backslash: a shell ends a comment with its line all the same, while the parser takes
// the next line for a part of this one. ok is false when there is no end to them.
func uncommented(text string) (_ string, ok bool) {
	for range 8 { // what was taken for a part of a line may show more of them
		if len(text) > mostBytes || !strings.Contains(text, "\\\n") || !strings.Contains(text, "#") {
			return text, true
		}
		f, err := guard(func() (*syntax.File, error) {
			return syntax.NewParser(bash, syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
		})
		if err != nil {
			return text, true // not understood anyhow
		}
		var b strings.Builder
		done := 0
		syntax.Walk(f, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.Comment); ok && strings.HasSuffix(c.Text, "\\\n") {
				at := int(c.Hash.Offset()) + len(c.Text) // of the newline
				if at > done && at < len(text) && text[at] == '\n' {
					b.WriteString(text[done:at] + " ")
					done = at
				}
			}
			return true
		})
		if done == 0 {
			return text, true
		}
		text = b.String() + text[done:]
	}
	return text, false
}

// guard turns a defect of the parser into a command that is not understood. Some texts with an error in them bring it to panic.
func guard(f func() (*syntax.File, error)) (file *syntax.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	return f()
}
