package web

import (
	"bytes"
	"html"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

const (
	enoughText    = 200     // bytes of text a main element needs to stand for its page
	maxWritten    = 4 << 20 // bytes; a page that is written longer is one that wants to be
	maxSpans      = 24
	maxContainers = 100
	shownDepth    = 10  // of quotes and lists whose marks are written
	longFlat      = 400 // bytes after which a heading or link nobody ended does not hold the page on one line any longer
	longEmphasis  = 2000
)

// markdown turns an HTML page into its title and Markdown: what its main element says, without navigation; or, where that is next to
// nothing, all it says. Addresses come out absolute. The text is for reading, so characters that Markdown would read as marks are left
// alone. It takes time and memory in proportion to the page.
func markdown(page string, where *url.URL) (title, content string) {
	s := look(page, where)
	if s.main[1] > s.main[0] {
		content = convert(scanner{text: page[:s.main[1]], pos: s.main[0]}, &s, true)
	}
	if len(content) < enoughText {
		if all := convert(scanner{text: page}, &s, true); len(all) > 2*len(content) {
			content = all
		}
	}
	if content == "" {
		content = convert(scanner{text: page}, &s, false)
	}
	return s.title, content
}

// convert writes what z reads; without noise, navigation and the like are left out.
func convert(z scanner, s *survey, withoutNoise bool) string {
	w := &writer{survey: s, skip: skipper{noise: withoutNoise}}
	for len(w.out) < maxWritten {
		t := z.next()
		if t.kind == endOfText {
			break
		}
		if w.skip.skips(t) {
			continue
		}
		switch t.kind {
		case textToken:
			w.text(t.text)
		case openTag:
			w.open(t)
		case closeTag:
			w.close(t.name)
		}
	}
	w.finish()
	return strings.TrimRight(string(w.out), " \n")
}

// writer writes Markdown as tags come in. Line breaks and spaces are due until the next word, so that none is written in vain; marks around
// words are put in when their element ends, so that none stays open.
type writer struct {
	frame
	survey *survey
	skip   skipper
	pre    *strings.Builder // text of the open pre element
	lang   string           // of it
	level  int              // of the open heading
	table  *table           // the open table of data
}

// frame is a text being written: the page, or a cell of a table.
type frame struct {
	out        []byte
	breaks     int    // line breaks due
	gap        bool   // a space is due
	mark       string // what the next line begins with, as "## "
	flat       int    // in how many elements of one line
	containers []container
	spans      []span
}

// container is a quote, a list, or an item of a list.
type container struct {
	name   string // blockquote, ul, ol, li
	count  int    // of an ol: number of the next item
	marker string // of an item
	begun  bool   // a line of it is written
}

// span is an open inline element.
type span struct {
	name string
	at   int // where its text begins; -1 before there is any
	link string
}

// due asks for n line breaks before the next word.
func (w *writer) due(n int) {
	if w.flat > 0 {
		w.gap = true
		return
	}
	w.breaks, w.gap = max(w.breaks, n), false
}

// put writes a word, or what stays on one line.
func (w *writer) put(word string) {
	if len(w.out) == 0 || w.breaks > 0 {
		w.newLine()
	} else if w.gap {
		w.out = append(w.out, ' ')
	}
	w.gap = false
	for i := len(w.spans) - 1; i >= 0 && w.spans[i].at < 0; i-- {
		w.spans[i].at = len(w.out)
	}
	w.out = append(w.out, word...)
}

func (w *writer) newLine() {
	for i := 0; i < w.breaks && len(w.out) > 0; i++ {
		if i > 0 {
			w.out = bytes.TrimRight(append(w.out, w.prefix()...), " ")
		}
		w.out = append(w.out, '\n')
	}
	w.breaks = 0
	for i := range w.containers[:min(len(w.containers), shownDepth)] {
		switch c := &w.containers[i]; {
		case c.name == "blockquote":
			w.out = append(w.out, "> "...)
			c.begun = true
		case c.name != "li":
		case c.begun:
			w.out = append(w.out, strings.Repeat(" ", len(c.marker))...)
		default:
			w.out = append(w.out, c.marker...)
			c.begun = true
		}
	}
	w.out = append(w.out, w.mark...)
	w.mark = ""
}

// prefix is what a further line of the open containers begins with.
func (w *writer) prefix() string {
	var b strings.Builder
	for _, c := range w.containers[:min(len(w.containers), shownDepth)] {
		switch {
		case !c.begun:
		case c.name == "blockquote":
			b.WriteString("> ")
		case c.name == "li":
			b.WriteString(strings.Repeat(" ", len(c.marker)))
		}
	}
	return b.String()
}

func (w *writer) text(raw string) {
	text := html.UnescapeString(raw)
	if w.pre != nil {
		w.pre.WriteString(text)
		return
	}
	for text != "" {
		i := strings.IndexFunc(text, blank)
		if i < 0 {
			i = len(text)
		}
		if i > 0 {
			w.put(text[:i])
			text = text[i:]
			continue
		}
		w.gap = w.gap || w.breaks == 0 && len(w.out) > 0
		text = strings.TrimLeftFunc(text, blank)
	}
}

func blank(r rune) bool { return r < utf8.RuneSelf && space(byte(r)) || r == '\u00a0' }

// finish ends whatever the page left open.
func (w *writer) finish() {
	w.endPre()
	w.endHeading()
	w.endTable()
}

func (w *writer) open(t token) {
	if w.pre != nil {
		w.openInPre(t)
		return
	}
	if level := headingLevel(t.name); level > 0 {
		w.endHeading()
		w.due(2)
		if w.flat == 0 {
			w.level, w.mark = level, strings.Repeat("#", level)+" "
			w.flat++
		}
		return
	}
	if breaks := blockBreaks(t.name); breaks > 0 {
		w.endLong(t.name)
		w.due(breaks)
	}
	switch t.name {
	case "br":
		if w.flat > 0 {
			w.gap = true
		} else if len(w.out) > 0 {
			w.breaks, w.gap = min(w.breaks+1, 2), false
		}
	case "hr":
		if w.flat == 0 {
			w.put("---")
			w.due(2)
		}
	case "pre", "listing":
		if w.flat == 0 {
			w.pre, w.lang = &strings.Builder{}, language(t)
		}
	case "img":
		w.image(t)
	case "ul", "ol", "menu", "li", "blockquote":
		w.openContainer(t)
	case "dd":
		if w.flat == 0 {
			w.mark = ": "
		}
	case "table", "tr", "td", "th", "caption":
		w.openTable(t)
	default:
		w.openSpan(t)
	}
}

func (w *writer) close(name string) {
	if w.pre != nil {
		if name == "pre" || name == "listing" {
			w.endPre()
		} else if blockBreaks(name) > 0 {
			w.preLine()
		}
		return
	}
	switch {
	case headingLevel(name) > 0:
		w.endHeading()
		w.due(2)
		return
	case blockBreaks(name) > 0:
		w.due(blockBreaks(name))
	}
	switch name {
	case "ul", "ol", "menu", "li", "blockquote":
		w.closeContainer(name)
	case "table", "tr", "td", "th":
		w.closeTable(name)
	default:
		w.closeSpan(name)
	}
}

func headingLevel(name string) int {
	if len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6' {
		return int(name[1] - '0')
	}
	return 0
}

// blockBreaks is how many line breaks stand before and after an element; 0 for what stands within a line.
func blockBreaks(name string) int {
	switch name {
	case "p", "blockquote", "pre", "listing", "table", "figure", "hr", "section", "article", "main", "aside", "header", "footer", "nav", "dl", "details", "dt", "fieldset", "dialog":
		return 2
	case "div", "li", "ul", "ol", "menu", "dd", "tr", "form", "center", "address", "figcaption", "summary", "legend", "body", "html", "hgroup", "caption", "option", "optgroup", "button", "search", "canvas":
		return 1
	}
	return 0
}

// endLong ends a heading or link that a block element comes after and that nobody ended.
func (w *writer) endLong(name string) {
	if w.level > 0 && (name != "div" && name != "header" && name != "hgroup" || len(w.out)-bytes.LastIndexByte(w.out, '\n') > longFlat) {
		w.endHeading()
	}
	for _, s := range w.spans {
		if s.link != "" && s.at >= 0 && len(w.out)-s.at > longFlat {
			w.closeSpan("a")
			w.due(1)
			return
		}
	}
}

func (w *writer) endHeading() {
	if w.level > 0 {
		w.level, w.mark = 0, ""
		w.flat--
	}
}

func (w *writer) image(t token) {
	alt := protocol.OneLine(t.attr("alt"), 300)
	if alt == "" {
		return
	}
	if src := absolute(w.survey.base, t.attr("src")); src != nil && !w.within("a") {
		alt = "![" + alt + "](" + address(src) + ")"
	}
	w.put(alt)
}

// address is u as it stands in the round brackets of a link.
func address(u *url.URL) string {
	s := u.String()
	if strings.ContainsAny(s, "()<> ") {
		return "<" + strings.NewReplacer("<", "%3C", ">", "%3E").Replace(s) + ">"
	}
	return s
}
