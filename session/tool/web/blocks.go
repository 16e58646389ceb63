package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (w *writer) openContainer(t token) {
	if w.flat > 0 || len(w.containers) >= maxContainers {
		return
	}
	c := container{name: t.name}
	switch t.name {
	case "menu":
		c.name = "ul"
	case "ol":
		c.count = 1
		if n, err := strconv.Atoi(strings.TrimSpace(t.attr("start"))); err == nil && n >= 0 && n < 1e9 {
			c.count = n
		}
	case "li":
		list := w.last("ul", "ol")
		if item := w.last("li"); item > list {
			w.containers = w.containers[:item]
		} else {
			w.containers = w.containers[:max(list+1, min(len(w.containers), w.last("blockquote")+1))]
		}
		c.marker = "- "
		if list >= 0 && w.containers[list].name == "ol" {
			c.marker = fmt.Sprintf("%d. ", w.containers[list].count)
			w.containers[list].count++
		}
	}
	w.containers = append(w.containers, c)
}

// last is the innermost open container of one of these names, -1 for none.
func (w *writer) last(names ...string) int {
	for i := len(w.containers) - 1; i >= 0; i-- {
		if slices.Contains(names, w.containers[i].name) {
			return i
		}
	}
	return -1
}

func (w *writer) closeContainer(name string) {
	if w.flat > 0 {
		return
	}
	i := w.last(name)
	switch name {
	case "menu", "ul", "ol":
		i = w.last("ul", "ol")
	case "li":
		if w.last("ul", "ol") > i { // its list is not closed: not this item's end
			return
		}
	}
	if i >= 0 {
		w.containers = w.containers[:i]
	}
	if w.last("ul", "ol", "li") < 0 && name != "li" {
		w.due(2)
	}
}

// table is a table of data; its cells are written apart and put together at its end.
type table struct {
	rows [][]string
	page *frame // the page, while a cell is open
}

func (w *writer) openTable(t token) {
	if w.table == nil {
		switch {
		case t.name == "table" && w.flat == 0 && w.survey.dataTables[t.at]:
			w.table = &table{}
		case t.name == "td" || t.name == "th":
			w.gap = w.gap || w.breaks == 0
		}
		return
	}
	switch t.name {
	case "tr":
		w.endCell()
		w.table.rows = append(w.table.rows, nil)
	case "td", "th":
		w.endCell()
		if len(w.table.rows) == 0 {
			w.table.rows = append(w.table.rows, nil)
		}
		page := w.frame
		w.table.page = &page
		w.frame = frame{flat: 1}
	}
}

func (w *writer) closeTable(name string) {
	switch {
	case w.table == nil:
	case name == "table":
		w.endTable()
	default:
		w.endCell()
	}
}

func (w *writer) endCell() {
	if w.table == nil || w.table.page == nil {
		return
	}
	for len(w.spans) > 0 {
		w.closeSpan(w.spans[len(w.spans)-1].name)
	}
	cell := strings.ReplaceAll(string(w.out), "|", `\|`)
	w.frame, w.table.page = *w.table.page, nil
	row := &w.table.rows[len(w.table.rows)-1]
	*row = append(*row, cell)
}

func (w *writer) endTable() {
	if w.table == nil {
		return
	}
	w.endCell()
	rows := slices.DeleteFunc(w.table.rows, func(row []string) bool { return strings.Join(row, "") == "" })
	w.table = nil
	w.due(2)
	for i, row := range rows {
		if len(w.out) > maxWritten {
			return
		}
		w.due(1)
		if len(rows) == 1 {
			w.put(strings.Join(row, " | "))
			break
		}
		w.put("| " + strings.Join(row, " | ") + " |")
		if i == 0 {
			w.due(1)
			w.put(strings.Repeat("| --- ", len(row)) + "|")
		}
	}
	w.due(2)
}

// skipper tells what of a page nobody reads: what a browser does not show, and, where noise is left out, what repeats on each page of a
// site. It follows the tags of what it skips until their element ends, or one around it does.
type skipper struct {
	noise bool
	open  []string // elements open in what is skipped, the skipped one first
	outer map[string]int
}

const maxSkipDepth = 200

func (s *skipper) skips(t token) bool {
	if len(s.open) == 0 {
		if t.kind == openTag && !void(t.name) && s.begins(t) {
			s.open = append(s.open, t.name)
			return true
		}
		s.note(t)
		return t.kind == openTag && void(t.name) && t.hasAttr("hidden")
	}
	switch t.kind {
	case openTag:
		if len(s.open) == 1 && t.name == s.open[0] && impliesEnd(t.name) {
			s.open = s.open[:0]
			return s.skips(t)
		}
		if !void(t.name) && !t.selfClose && len(s.open) < maxSkipDepth {
			s.open = append(s.open, t.name)
		}
	case closeTag:
		i := len(s.open) - 1
		for i >= 0 && s.open[i] != t.name {
			i--
		}
		if i >= 0 {
			s.open = s.open[:i]
			return true
		}
		if s.outer[t.name] > 0 { // an element around it ends
			s.open = s.open[:0]
			s.note(t)
			return false
		}
	}
	return true
}

// note counts the elements that are open around what is skipped.
func (s *skipper) note(t token) {
	if s.outer == nil {
		s.outer = map[string]int{}
	}
	switch {
	case void(t.name) || impliesEnd(t.name):
	case t.kind == openTag:
		s.outer[t.name]++
	case t.kind == closeTag && s.outer[t.name] > 0:
		s.outer[t.name]--
	}
}

func (s *skipper) begins(t token) bool {
	switch t.name {
	case "html", "body", "main", "article":
		return false
	case "script", "style", "title", "template", "textarea", "iframe", "noembed", "noframes", "canvas", "audio", "video", "object", "datalist", "rp":
		return true
	case "svg":
		return !t.selfClose
	case "nav", "footer", "dialog", "button", "select":
		return s.noise
	}
	if strings.EqualFold(t.attr("aria-hidden"), "true") || t.hasAttr("hidden") && t.attr("hidden") != "until-found" {
		return true
	}
	if style := t.attr("style"); style != "" {
		style = strings.ToLower(strings.ReplaceAll(style, " ", ""))
		if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
			return true
		}
	}
	switch t.attr("role") {
	case "navigation", "menu", "menubar", "search", "dialog":
		return s.noise
	}
	return false
}

// void tells elements that have no content and no end tag.
func void(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "basefont", "frame", "keygen":
		return true
	}
	return false
}

// impliesEnd tells elements that the next of their kind ends.
func impliesEnd(name string) bool {
	switch name {
	case "p", "li", "dt", "dd", "tr", "td", "th", "option", "thead", "tbody", "tfoot", "rp", "rt":
		return true
	}
	return false
}
