package web

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/rind-dev/rind/protocol"
)

// prescanned is how much of a page is looked at for the charset it names.
const prescanned = 4096

// decodeText is a body as valid UTF-8 without control characters. What decides is, in this order: a byte order mark, the header, what an
// HTML page or XML document says of itself, whether it is UTF-8. What cannot be read becomes U+FFFD.
func decodeText(b body) string {
	data := b.data
	label := b.charset
	switch {
	case len(data) >= 3 && string(data[:3]) == "\xef\xbb\xbf":
		return clean(wholeRunes(string(data[3:]), b.cut))
	case len(data) >= 2 && string(data[:2]) == "\xff\xfe":
		return clean(fromUTF16(data[2:], binary.LittleEndian))
	case len(data) >= 2 && string(data[:2]) == "\xfe\xff":
		return clean(fromUTF16(data[2:], binary.BigEndian))
	}
	if head := string(data[:min(len(data), prescanned)]); !known(label) {
		switch {
		case b.markedUp:
			label = metaCharset(head)
		case strings.HasSuffix(b.kind, "xml"):
			label = xmlCharset(head)
		}
		if strings.HasPrefix(canonical(label), "utf-16") { // it could not have been read
			label = "utf-8"
		}
	}
	name := canonical(label)
	if name == "" {
		name = guess(data, b.cut)
	}
	switch name {
	case "utf-8":
		return clean(wholeRunes(string(data), b.cut))
	case "utf-16", "utf-16le":
		return clean(fromUTF16(data, binary.LittleEndian))
	case "utf-16be":
		return clean(fromUTF16(data, binary.BigEndian))
	}
	if high, ok := singleByte(name); ok {
		return clean(fromSingleByte(data, high))
	}
	text, err := multiByte(name).NewDecoder().Bytes(data)
	if err != nil {
		text = data
	}
	return clean(string(text))
}

func known(label string) bool { return canonical(label) != "" }

// canonical is the name of the encoding a label stands for, "" for an unknown one (the labels of encoding.spec.whatwg.org that are met).
func canonical(label string) string {
	label = strings.ToLower(strings.Trim(label, " \t\r\n\f\"'"))
	switch label {
	case "utf-8", "utf8", "unicode-1-1-utf-8", "us-utf8":
		return "utf-8"
	case "utf-16", "utf-16le", "unicode", "ucs-2", "csunicode", "iso-10646-ucs-2":
		return "utf-16le"
	case "utf-16be", "unicodefffe":
		return "utf-16be"
	case "ascii", "us-ascii", "latin1", "latin-1", "l1", "iso-8859-1", "iso8859-1", "iso88591", "iso_8859-1", "cp1252", "x-cp1252", "ansi_x3.4-1968", "cp819":
		return "windows-1252"
	case "shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "ms932", "windows-31j", "cp932":
		return "shift_jis"
	case "euc-jp", "eucjp", "x-euc-jp":
		return "euc-jp"
	case "iso-2022-jp", "csiso2022jp":
		return "iso-2022-jp"
	case "gb2312", "gbk", "gb_2312-80", "x-gbk", "chinese", "csgb2312", "cp936", "gb18030":
		return "gb18030"
	case "big5", "big5-hkscs", "cn-big5", "x-x-big5", "csbig5", "cp950":
		return "big5"
	case "euc-kr", "euckr", "ks_c_5601-1987", "ksc5601", "ksc_5601", "windows-949", "cp949", "korean", "cseuckr":
		return "euc-kr"
	case "koi8-r", "koi8r", "koi8", "koi", "cskoi8r":
		return "koi8-r"
	case "koi8-u", "koi8-ru":
		return "koi8-u"
	case "cp866", "ibm866", "866":
		return "ibm866"
	case "macintosh", "mac", "x-mac-roman":
		return "macintosh"
	case "iso-8859-9", "iso8859-9", "latin5", "l5":
		return "windows-1254"
	case "iso-8859-11", "tis-620":
		return "windows-874"
	case "latin2", "l2":
		return "iso-8859-2"
	case "cyrillic":
		return "iso-8859-5"
	case "arabic":
		return "iso-8859-6"
	case "greek":
		return "iso-8859-7"
	case "hebrew", "iso-8859-8-i":
		return "iso-8859-8"
	case "latin9", "l9":
		return "iso-8859-15"
	}
	if n, ok := strings.CutPrefix(label, "cp125"); ok {
		label = "windows-125" + n
	}
	if n, ok := strings.CutPrefix(label, "iso8859-"); ok {
		label = "iso-8859-" + n
	}
	if _, ok := singleByte(label); ok {
		return label
	}
	return ""
}

func multiByte(name string) encoding.Encoding {
	switch name {
	case "shift_jis":
		return japanese.ShiftJIS
	case "euc-jp":
		return japanese.EUCJP
	case "iso-2022-jp":
		return japanese.ISO2022JP
	case "gb18030":
		return simplifiedchinese.GB18030
	case "big5":
		return traditionalchinese.Big5
	case "euc-kr":
		return korean.EUCKR
	}
	return encoding.Replacement
}

// metaCharset is the charset an HTML page names in a meta element.
func metaCharset(head string) string {
	z := scanner{text: head}
	for {
		t := z.next()
		switch {
		case t.kind == endOfText, t.kind == openTag && t.name == "body":
			return ""
		case t.kind != openTag || t.name != "meta":
			continue
		}
		if label := t.attr("charset"); known(label) {
			return label
		}
		if strings.EqualFold(t.attr("http-equiv"), "content-type") {
			_, label, _ := strings.Cut(strings.ToLower(t.attr("content")), "charset=")
			label, _, _ = strings.Cut(label, ";")
			if known(label) {
				return label
			}
		}
	}
}

// xmlCharset is the encoding an XML declaration names.
func xmlCharset(head string) string {
	decl, _, ok := strings.Cut(head, "?>")
	if !ok || !strings.HasPrefix(decl, "<?xml") {
		return ""
	}
	_, value, ok := strings.Cut(decl, "encoding")
	value = strings.TrimLeft(value, " \t\r\n=")
	if !ok || value == "" || value[0] != '"' && value[0] != '\'' {
		return ""
	}
	label, _, _ := strings.Cut(value[1:], value[:1])
	return label
}

// guess tells UTF-8, broken here and there, from the old default of the web.
func guess(data []byte, cut bool) string {
	good, bad := 0, 0
	for i := 0; i < len(data); {
		if data[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			if cut && len(data)-i < utf8.UTFMax && !utf8.FullRune(data[i:]) {
				break
			}
			bad++
		} else {
			good++
		}
		i += size
	}
	if bad > good {
		return "windows-1252"
	}
	return "utf-8"
}

// wholeRunes leaves out the beginning of a character that the limit cut in two.
func wholeRunes(s string, cut bool) string {
	if !cut {
		return s
	}
	for i := len(s) - 1; i >= 0 && len(s)-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:i]
			}
			break
		}
	}
	return s
}

func fromUTF16(data []byte, order binary.ByteOrder) string {
	var b strings.Builder
	b.Grow(len(data))
	for i := 0; i+1 < len(data); i += 2 {
		r := rune(order.Uint16(data[i:]))
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if i+3 < len(data) {
				low = rune(order.Uint16(data[i+2:]))
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 2
			}
		}
		b.WriteRune(r)
	}
	if len(data)%2 == 1 {
		b.WriteRune(utf8.RuneError)
	}
	return b.String()
}

// fromSingleByte decodes an encoding whose bytes from 0x80 on stand for the characters of high.
func fromSingleByte(data []byte, high string) string {
	var table [128]rune
	n := 0
	for _, r := range high {
		table[n] = r
		n++
	}
	var b strings.Builder
	b.Grow(len(data) + len(data)/8)
	for _, c := range data {
		if c < 0x80 {
			b.WriteByte(c)
		} else {
			b.WriteRune(table[c-0x80])
		}
	}
	return b.String()
}

// clean makes text valid UTF-8 with plain line ends and without what is not text: control characters, and characters that show nothing
// but can hide words or turn them around.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r', r == '\f', r == '\u2028', r == '\u2029':
			return '\n'
		case r < 0x20, r >= 0x7f && r < 0xa0, r == '\uFEFF', protocol.Unseen(r):
			return -1
		}
		return r
	}, s)
}
