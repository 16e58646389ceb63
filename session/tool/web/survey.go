package web

import (
	"html"
	"net/url"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// survey is what has to be known of a page before it is written.
type survey struct {
	title      string
	base       *url.URL     // what relative addresses count from
	main       [2]int       // content of its one main element; empty for none
	dataTables map[int]bool // where the tables of data begin; others only lay the page out
}

// tableShape is what a table looks like so far.
type tableShape struct {
	at, rows, columns, row int
	header, nested, blocks bool
}

func (t tableShape) data() bool {
	return !t.nested && (t.header || t.rows > 1 && t.columns > 1 && !t.blocks)
}

// look surveys a page that was found at where.
func look(text string, where *url.URL) survey {
	s := survey{base: where, dataTables: map[int]bool{}}
	z := scanner{text: text}
	var tables []tableShape
	var titled, based bool
	mains, depth := 0, 0
	for {
		t := z.next()
		switch {
		case t.kind == endOfText:
			for _, open := range tables {
				s.dataTables[open.at] = open.data()
			}
			if mains != 1 || s.main[1] < s.main[0] {
				s.main = [2]int{}
			}
			return s
		case t.name == "title" && t.kind == openTag && !titled:
			if next := z.next(); next.kind == textToken {
				s.title, titled = protocol.OneLine(html.UnescapeString(next.text), 300), true
			}
		case t.name == "base" && t.kind == openTag && !based:
			if u := absolute(where, t.attr("href")); u != nil {
				s.base, based = u, true
			}
		case t.name == "main" && t.kind == openTag:
			if depth++; depth == 1 {
				mains++
				s.main[0] = z.pos
			}
		case t.name == "main" && t.kind == closeTag && depth > 0:
			if depth--; depth == 0 {
				s.main[1] = t.at
			}
		case t.name == "table" && t.kind == openTag:
			if len(tables) > 0 {
				tables[len(tables)-1].nested = true
			}
			tables = append(tables, tableShape{at: t.at})
		case len(tables) == 0:
		case t.name == "table" && t.kind == closeTag:
			last := tables[len(tables)-1]
			s.dataTables[last.at] = last.data()
			tables = tables[:len(tables)-1]
		case t.kind == openTag:
			tables[len(tables)-1].note(t.name)
		}
	}
}

func (t *tableShape) note(name string) {
	switch name {
	case "tr":
		t.rows++
		t.row = 0
	case "th", "thead":
		t.header = true
		t.row++
	case "td":
		t.row++
	case "p", "div", "ul", "ol", "pre", "blockquote", "hr", "form", "h1", "h2", "h3", "h4", "h5", "h6":
		t.blocks = true
	}
	t.columns = max(t.columns, t.row)
}

// maxLink is the longest address a link is written with.
const maxLink = 2048

// absolute is the address ref stands for in a page with this base; nil for one that is none, leads into the page itself, or runs a script.
func absolute(base *url.URL, ref string) *url.URL {
	ref = strings.Trim(ref, " \t\r\n\f")
	if ref == "" || ref[0] == '#' || len(ref) > maxLink {
		return nil
	}
	u, err := base.Parse(ref)
	if err != nil {
		return nil
	}
	switch u.Scheme {
	case "http", "https", "ftp", "mailto", "tel":
	default:
		return nil
	}
	u.User = nil
	if len(u.String()) > maxLink {
		return nil
	}
	return u
}
