package web

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

func TestSingleByteEncodingsAreThoseOfTheStandardTables(t *testing.T) {
	tables := map[string]*charmap.Charmap{
		"windows-1250": charmap.Windows1250, "windows-1251": charmap.Windows1251, "windows-1252": charmap.Windows1252, "windows-1253": charmap.Windows1253,
		"windows-1254": charmap.Windows1254, "windows-1255": charmap.Windows1255, "windows-1256": charmap.Windows1256, "windows-1257": charmap.Windows1257,
		"windows-1258": charmap.Windows1258, "windows-874": charmap.Windows874, "iso-8859-2": charmap.ISO8859_2, "iso-8859-3": charmap.ISO8859_3,
		"iso-8859-4": charmap.ISO8859_4, "iso-8859-5": charmap.ISO8859_5, "iso-8859-6": charmap.ISO8859_6, "iso-8859-7": charmap.ISO8859_7,
		"iso-8859-8": charmap.ISO8859_8, "iso-8859-10": charmap.ISO8859_10, "iso-8859-13": charmap.ISO8859_13, "iso-8859-14": charmap.ISO8859_14,
		"iso-8859-15": charmap.ISO8859_15, "iso-8859-16": charmap.ISO8859_16, "koi8-r": charmap.KOI8R, "koi8-u": charmap.KOI8U, "ibm866": charmap.CodePage866,
		"macintosh": charmap.Macintosh,
	}
	var every []byte
	for c := range 256 {
		every = append(every, byte(c))
	}
	for name, table := range tables {
		if canonical(name) != name {
			t.Errorf("%s is not known by its name", name)
		}
		high, _ := singleByte(name)
		want := ""
		for _, c := range every {
			want += string(table.DecodeByte(c))
		}
		if got := fromSingleByte(every, high); got != want {
			t.Errorf("%s:\n%q, want\n%q", name, got, want)
		}
	}
}

func utf16Bytes(order binary.AppendByteOrder, s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func TestTextIsReadInTheCharsetItsServerOrPageNames(t *testing.T) {
	encode := func(s string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sjis := encode(japanese.ShiftJIS.NewEncoder().String("日本語テキスト"))
	eucjp := encode(japanese.EUCJP.NewEncoder().String("日本語"))
	jis := encode(japanese.ISO2022JP.NewEncoder().String("日本語"))
	gbk := encode(simplifiedchinese.GBK.NewEncoder().String("简体中文"))
	big5 := encode(traditionalchinese.Big5.NewEncoder().String("繁體中文"))
	euckr := encode(korean.EUCKR.NewEncoder().String("한국어"))
	cyrillic := encode(charmap.Windows1251.NewEncoder().String("Привет"))
	for _, c := range []struct{ name, kind, charset, data, want string }{
		{"header", "text/plain", "windows-1251", cyrillic, "Привет"},
		{"header in capitals and quotes", "text/plain", `"WINDOWS-1251"`, cyrillic, "Привет"},
		{"header before meta", "text/html", "cp1251", "<meta charset=utf-8>" + cyrillic, "Привет"},
		{"unknown header, meta", "text/html", "x-unknown", "<meta charset='windows-1251'>" + cyrillic, "Привет"},
		{"meta http-equiv", "text/html", "", `<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1251">` + cyrillic, "Привет"},
		{"meta in a comment is none", "text/html", "", "<!-- <meta charset=koi8-r> --><meta charset=windows-1251>" + cyrillic, "Привет"},
		{"meta utf-16 is utf-8", "text/html", "", "<meta charset=utf-16>é", "é"},
		{"xml declaration", "application/xml", "", `<?xml version="1.0" encoding="windows-1251"?>` + cyrillic, `<?xml version="1.0" encoding="windows-1251"?>Привет`},
		{"shift_jis", "text/html", "Shift_JIS", sjis, "日本語テキスト"},
		{"euc-jp", "text/html", "euc-jp", eucjp, "日本語"},
		{"iso-2022-jp", "text/html", "iso-2022-jp", jis, "日本語"},
		{"gb2312", "text/html", "gb2312", gbk, "简体中文"},
		{"big5", "text/html", "big5", big5, "繁體中文"},
		{"euc-kr", "text/html", "ks_c_5601-1987", euckr, "한국어"},
		{"latin1 is windows-1252", "text/html", "iso-8859-1", "\x80 caf\xe9", "€ café"},
		{"mark of utf-8", "text/plain", "windows-1252", "\xef\xbb\xbfé", "é"},
		{"mark of utf-16le", "text/plain", "", "\xff\xfe" + utf16Bytes(binary.LittleEndian, "aé😀"), "aé😀"},
		{"mark of utf-16be", "text/plain", "utf-8", "\xfe\xff" + utf16Bytes(binary.BigEndian, "aé😀"), "aé😀"},
		{"utf-16 by header", "text/plain", "utf-16be", utf16Bytes(binary.BigEndian, "aé"), "aé"},
		{"utf-16 cut and unpaired", "text/plain", "utf-16le", "\x00\xd8a\x00\x00\xdcb", "\uFFFDa\uFFFD\uFFFD"},
		{"nothing named, utf-8", "text/plain", "", "naïve", "naïve"},
		{"nothing named, old default", "text/plain", "", "na\xefve caf\xe9", "naïve café"},
		{"nothing named, utf-8 with faults", "text/plain", "", "naïve café \xff", "naïve café \uFFFD"},
		{"named utf-8, with faults", "text/plain", "utf-8", "a\xff\xfe\xc3", "a\uFFFD"},
		{"control characters, line ends", "text/plain", "", "a\x00b\x1b[31m\r\nc\rd\x7f\u0085e\uFEFF", "ab[31m\nc\nde"},
		{"hidden words and turned lines", "text/plain", "", "a\U000E0041\U000E0042\u202eb", "ab"},
	} {
		b := body{data: []byte(c.data), kind: c.kind, charset: c.charset, markedUp: c.kind == "text/html"}
		got := decodeText(b)
		if b.markedUp {
			_, got = markdown(got, somewhere)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestACharacterThatTheLimitCutIsLeftOut(t *testing.T) {
	for cut := range 4 {
		data := "x😀"[:1+cut]
		want := "x"
		if got := decodeText(body{data: []byte(data), kind: "text/plain", cut: true}); got != want {
			t.Errorf("%q: %q", data, got)
		}
	}
	if got := decodeText(body{data: []byte("x\xff"), kind: "text/plain", charset: "utf-8", cut: true}); got != "x\uFFFD" {
		t.Errorf("%q", got)
	}
}

func FuzzDecodeText(f *testing.F) {
	for _, s := range []string{"a", "\xff\xfe", "<meta charset=big5>\x80", "\x1b$B", "<?xml encoding='euc-kr'?>"} {
		for _, charset := range []string{"", "utf-8", "shift_jis", "gb18030", "iso-2022-jp", "utf-16le", "windows-1255"} {
			f.Add([]byte(s), charset, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, charset string, cut bool) {
		for _, kind := range []string{"text/html", "text/xml", "text/plain"} {
			got := decodeText(body{data: data, kind: kind, charset: charset, cut: cut, markedUp: kind == "text/html"})
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\r\x1b") {
				t.Errorf("%q", got)
			}
		}
	})
}
