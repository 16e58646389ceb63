package web

import (
	"html"
	"strings"
)

type tokenKind int

const (
	endOfText tokenKind = iota
	textToken           // raw text between tags, its references not yet resolved
	openTag             // <name …>
	closeTag            // </name …>
)

// token is one piece of a page.
type token struct {
	kind      tokenKind
	name      string // of a tag, lower case
	text      string // of text; of a tag what stands between its name and the >
	at        int    // where it begins
	selfClose bool   // written <name/>
}

// scanner cuts a page into tags and text, in one pass: it looks at each byte a fixed number of times, whatever the page does, and holds
// nothing but its place. Like a browser it never fails: what is no tag is text. Comments, doctypes and instructions are left out.
type scanner struct {
	text string
	pos  int
	raw  string // element whose content is text up to its end tag
}

// rawElements have content that is no markup.
func rawElement(name string) bool {
	switch name {
	case "script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp", "plaintext":
		return true
	}
	return false
}

func (z *scanner) next() token {
	for z.pos < len(z.text) {
		if z.raw != "" {
			if t := z.rawText(); t.text != "" {
				return t
			}
			continue
		}
		rest := z.text[z.pos:]
		if rest[0] != '<' || !z.atMarkup(z.pos) {
			return z.plainText()
		}
		switch c := rest[1]; {
		case strings.HasPrefix(rest, "<!--"):
			z.comment()
		case strings.HasPrefix(rest, "<![CDATA["):
			z.pos += len("<![CDATA[")
			text, _, _ := strings.Cut(z.text[z.pos:], "]]>")
			z.pos = min(z.pos+len(text)+len("]]>"), len(z.text))
			if text != "" {
				return token{kind: textToken, text: html.EscapeString(text)}
			}
		case c == '!' || c == '?':
			z.upTo('>')
		case c == '/':
			if len(rest) > 2 && letter(rest[2]) {
				return z.tag(closeTag, 2)
			}
			z.upTo('>')
		default:
			return z.tag(openTag, 1)
		}
	}
	return token{kind: endOfText}
}

// atMarkup tells whether the < at i begins something other than text.
func (z *scanner) atMarkup(i int) bool {
	if i+1 >= len(z.text) {
		return false
	}
	c := z.text[i+1]
	return letter(c) || c == '/' || c == '!' || c == '?'
}

func (z *scanner) plainText() token {
	start := z.pos
	for i := start + 1; ; i++ {
		j := strings.IndexByte(z.text[min(i, len(z.text)):], '<')
		if j < 0 {
			z.pos = len(z.text)
			break
		}
		if i += j; z.atMarkup(i) {
			z.pos = i
			break
		}
	}
	return token{kind: textToken, text: z.text[start:z.pos]}
}

// rawText is everything up to the end tag of the raw element, or to the end.
func (z *scanner) rawText() token {
	name, start := z.raw, z.pos
	z.raw = ""
	for i := start; ; {
		j := strings.Index(z.text[i:], "</")
		if j < 0 || name == "plaintext" {
			z.pos = len(z.text)
			break
		}
		i += j
		after := i + 2 + len(name)
		if after <= len(z.text) && strings.EqualFold(z.text[i+2:after], name) && (after == len(z.text) || !nameByte(z.text[after])) {
			z.pos = i
			break
		}
		i += 2
	}
	text := z.text[start:z.pos]
	if name == "script" || name == "style" || name == "xmp" || name == "plaintext" {
		text = html.EscapeString(text) // whoever reads it resolves references
	}
	return token{kind: textToken, text: text}
}

func (z *scanner) comment() {
	rest := z.text[z.pos+4:]
	switch end := strings.Index(rest, "-->"); {
	case strings.HasPrefix(rest, ">"), strings.HasPrefix(rest, "->"):
		z.upTo('>')
	case end < 0:
		z.pos = len(z.text)
	default:
		z.pos += 4 + end + 3
	}
}

func (z *scanner) upTo(end byte) {
	if i := strings.IndexByte(z.text[z.pos:], end); i >= 0 {
		z.pos += i + 1
		return
	}
	z.pos = len(z.text)
}

// tag reads the tag whose name begins skip bytes further on.
func (z *scanner) tag(kind tokenKind, skip int) token {
	start := z.pos + skip
	i := start
	for i < len(z.text) && nameByte(z.text[i]) {
		i++
	}
	t := token{kind: kind, name: strings.ToLower(z.text[start:i]), at: z.pos}
	from := i
	var quote byte
	valueNext := false // a quote is one only where a value begins
	for ; i < len(z.text); i++ {
		c := z.text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '>':
			t.text = z.text[from:i]
			t.selfClose = strings.HasSuffix(t.text, "/")
			z.pos = i + 1
			if kind == openTag && rawElement(t.name) {
				z.raw = t.name
			}
			return t
		case valueNext && (c == '"' || c == '\''):
			quote = c
		}
		valueNext = c == '=' || valueNext && space(c)
	}
	z.pos = len(z.text) // a tag that never ends is none
	return token{kind: endOfText}
}

// attr is the value of an attribute of a tag, references resolved; "" when it has none. hasAttr tells those two apart.
func (t token) attr(name string) string {
	value, _ := t.find(name)
	return value
}

func (t token) hasAttr(name string) bool {
	_, ok := t.find(name)
	return ok
}

func (t token) find(name string) (string, bool) {
	for s := t.text; ; {
		s = strings.TrimLeft(s, " \t\r\n\f/")
		if s == "" {
			return "", false
		}
		i := 1 // a = that begins a name belongs to it
		for i < len(s) && s[i] != '=' && s[i] != '/' && !space(s[i]) {
			i++
		}
		key := s[:i]
		s = strings.TrimLeft(s[i:], " \t\r\n\f")
		value := ""
		if strings.HasPrefix(s, "=") {
			s = strings.TrimLeft(s[1:], " \t\r\n\f")
			if s != "" && (s[0] == '"' || s[0] == '\'') {
				value, s, _ = strings.Cut(s[1:], s[:1])
			} else {
				end := strings.IndexAny(s, " \t\r\n\f")
				if end < 0 {
					end = len(s)
				}
				value, s = s[:end], s[end:]
			}
		}
		if strings.EqualFold(key, name) {
			return html.UnescapeString(value), true
		}
	}
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' }

// nameByte tells whether c may stand in the name of a tag.
func nameByte(c byte) bool { return c != '>' && c != '/' && !space(c) }
