package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol/portable"
)

const maxCursor = 9007199254740991

// cursor reads a cursor: 1 to 16 digits, at most 2^53-1.
func cursor(text string) (int64, bool) {
	if text == "" || len(text) > 16 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= maxCursor
}

// after is where a reader wants to begin, and whether it said so. Whatever else a query holds is ignored, also where it cannot be read.
func after(r *http.Request) (int64, bool, error) {
	n, given, bad := int64(0), false, false
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != "after" {
			continue
		}
		value, err := url.QueryUnescape(value)
		at, ok := cursor(value)
		n, given, bad = at, true, bad || given || err != nil || !ok
	}
	if bad {
		return 0, true, portable.Invalid("after must be a non-negative integer")
	}
	return n, given, nil
}

// wantsStream reads Accept: an event stream when it is named with a weight that is at least that of JSON.
func wantsStream(lines []string) bool {
	stream, json, jsonAt := -1.0, -1.0, 0
	for _, part := range split(strings.Join(lines, ","), ',') {
		kind, q, ok := mediaRange(part)
		if !ok {
			continue
		}
		exact := map[string]int{"*/*": 1, "application/*": 2, "application/json": 3}[kind]
		switch {
		case kind == "text/event-stream":
			stream = max(stream, q)
		case exact > jsonAt:
			json, jsonAt = q, exact
		case exact == jsonAt && exact > 0: // named again
			json = max(json, q)
		}
	}
	return stream > 0 && stream >= json
}

// mediaRange reads one range of Accept, its name in lower case and its weight; false when the weight is none. Other parameters mean nothing here.
func mediaRange(text string) (kind string, q float64, ok bool) {
	params := split(text, ';')
	q, weighed := 1, false
	for _, p := range params[1:] {
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "q") {
			continue
		}
		if q, ok = qvalue(value); !ok || weighed || len(name) > 1 {
			return "", 0, false
		}
		weighed = true
	}
	return strings.ToLower(params[0]), q, true
}

// qvalue reads a weight as RFC 9110, section 12.4.2, writes it: 0 to 1 with three digits at most behind the point.
func qvalue(text string) (float64, bool) {
	whole, digits, _ := strings.Cut(text, ".")
	if len(digits) > 3 || strings.Trim(digits, "0123456789") != "" || whole != "0" && (whole != "1" || strings.Trim(digits, "0") != "") {
		return 0, false
	}
	q, err := strconv.ParseFloat(text, 64)
	return q, err == nil
}

// split splits a header at a separator, but not within quotes, and trims the parts.
func split(text string, at byte) []string {
	var parts []string
	begin, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case quoted && text[i] == '\\':
			i++
		case !quoted && text[i] == at:
			parts = append(parts, strings.Trim(text[begin:i], " \t"))
			begin = i + 1
		}
	}
	return append(parts, strings.Trim(text[begin:], " \t"))
}
