package web

import (
	"html"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// within tells whether an inline element is open.
func (w *writer) within(name string) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.name == name })
}

func canonicalSpan(name string) string {
	switch name {
	case "a":
		return "a"
	case "b", "strong":
		return "strong"
	case "i", "em", "cite", "dfn", "var":
		return "em"
	case "s", "del", "strike":
		return "del"
	case "code", "kbd", "samp", "tt":
		return "code"
	}
	return ""
}

func (w *writer) openSpan(t token) {
	s := span{name: canonicalSpan(t.name), at: -1}
	if s.name == "a" {
		w.closeSpan("a") // links do not nest
		if u := absolute(w.survey.base, t.attr("href")); u != nil {
			s.link = address(u)
		}
	}
	switch {
	case s.name == "", s.name == "a" && s.link == "", len(w.spans) >= maxSpans, w.within(s.name), w.within("code"):
		return
	case s.name == "a":
		w.flat++
	}
	w.spans = append(w.spans, s)
}

func (w *writer) closeSpan(name string) {
	name = canonicalSpan(name)
	i := slices.IndexFunc(w.spans, func(s span) bool { return s.name == name })
	if name == "" || i < 0 {
		return
	}
	s := w.spans[i]
	w.spans = slices.Delete(w.spans, i, i+1)
	if s.name == "a" {
		w.flat--
	}
	if s.at < 0 {
		return
	}
	text := string(w.out[s.at:])
	if strings.Contains(text, "\n") { // marks hold within a line only
		if s.link != "" {
			w.out = append(w.out, " ("+s.link+")"...)
		}
		return
	}
	switch {
	case s.link != "":
		if text != s.link {
			w.wrap(s.at, "[", "]("+s.link+")")
		}
	case s.name == "code":
		fence := strings.Repeat("`", longestRun(text, '`')+1)
		if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
			w.wrap(s.at, fence+" ", " "+fence)
		} else {
			w.wrap(s.at, fence, fence)
		}
	case len(text) > longEmphasis:
	case s.name == "strong":
		w.wrap(s.at, "**", "**")
	case s.name == "em":
		w.wrap(s.at, "*", "*")
	case s.name == "del":
		w.wrap(s.at, "~~", "~~")
	}
}

// wrap puts marks around what is written from at on.
func (w *writer) wrap(at int, before, after string) {
	w.out = append(slices.Insert(w.out, at, []byte(before)...), after...)
	for i := range w.spans {
		if w.spans[i].at > at {
			w.spans[i].at += len(before)
		}
	}
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// openInPre takes what matters inside preformatted text.
func (w *writer) openInPre(t token) {
	switch {
	case t.name == "br":
		w.pre.WriteByte('\n')
	case t.name == "code" && w.lang == "":
		w.lang = language(t)
	case blockBreaks(t.name) > 0:
		w.preLine()
	}
}

// preLine begins a line of preformatted text, unless one has just begun.
func (w *writer) preLine() {
	if s := w.pre.String(); s != "" && !strings.HasSuffix(s, "\n") {
		w.pre.WriteByte('\n')
	}
}

func (w *writer) endPre() {
	if w.pre == nil {
		return
	}
	text := strings.Trim(w.pre.String(), "\r\n")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\u00a0", " ")
	w.pre = nil
	if strings.TrimSpace(text) == "" {
		return
	}
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	w.due(2)
	w.put(fence + w.lang)
	prefix := "\n" + w.prefix()
	for part := range strings.SplitSeq(text, "\n") {
		if len(w.out) > maxWritten {
			break
		}
		w.out = append(append(w.out, prefix...), part...)
	}
	w.out = append(append(w.out, prefix...), fence...)
	w.due(2)
}

// language is the programming language a class names.
func language(t token) string {
	for _, class := range strings.Fields(t.attr("class")) {
		for _, before := range []string{"language-", "lang-", "highlight-source-"} {
			if name, ok := strings.CutPrefix(class, before); ok && len(name) <= 20 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-#") == "" {
				return name
			}
		}
	}
	return ""
}

// textOf is markup as one line of text: for the few words a search engine marks up.
func textOf(markup string, most int) string {
	var b strings.Builder
	for z := (scanner{text: markup}); ; {
		t := z.next()
		switch {
		case t.kind == endOfText:
			return protocol.OneLine(b.String(), most)
		case t.kind == textToken:
			b.WriteString(html.UnescapeString(t.text))
		case blockBreaks(t.name) > 0 || t.name == "br":
			b.WriteByte(' ')
		}
	}
}
