package httpapi

import (
	"mime"
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

// after is where a reader wants to begin, and whether it said so.
func after(r *http.Request) (int64, bool, error) {
	bad := portable.Invalid("after must be a non-negative integer")
	q, err := url.ParseQuery(r.URL.RawQuery)
	values := q["after"]
	switch {
	case len(values) == 0 && (err == nil || !strings.Contains(r.URL.RawQuery, "after")):
		return 0, false, nil
	case len(values) != 1:
		return 0, true, bad
	}
	n, ok := cursor(values[0])
	if !ok {
		return 0, true, bad
	}
	return n, true, nil
}

// wantsStream reads Accept: an event stream when it is named with a weight that is at least that of JSON.
func wantsStream(lines []string) bool {
	stream, json, jsonAt := -1.0, -1.0, 0
	for _, part := range strings.Split(strings.Join(lines, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) { // NaN is neither
				continue
			}
		}
		exact := map[string]int{"*/*": 1, "application/*": 2, "application/json": 3}[kind]
		switch {
		case kind == "text/event-stream":
			stream = max(stream, q)
		case exact > jsonAt:
			json, jsonAt = q, exact
		}
	}
	return stream > 0 && stream >= json
}
