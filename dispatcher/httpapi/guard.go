package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol/portable"
)

// guard refuses what a web page could send here: a foreign Host, a foreign Origin (section 1.1, steps 1 and 2).
func (x *exchange) guard() error {
	if !x.hostAllowed(x.r.Host) {
		return &portable.Error{Code: portable.Forbidden, Message: "Host not allowed"}
	}
	origins := x.r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !x.originAllowed(origins[0]) {
		return &portable.Error{Code: portable.Forbidden, Message: "Origin not allowed"}
	}
	named := len(origins) == 1 && x.s.allowedOrigin(origins[0])
	if named {
		x.w.Header().Set("Access-Control-Allow-Origin", origins[0])
		x.w.Header().Set("Vary", "Origin")
	}
	for _, site := range x.r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" && !named {
			return &portable.Error{Code: portable.Forbidden, Message: "Origin not allowed"}
		}
	}
	return nil
}

// hostAllowed checks a Host, whose port must be ours or absent.
func (x *exchange) hostAllowed(host string) bool {
	if slices.Contains(x.s.cfg.Hosts, host) {
		return true
	}
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
		if port != strconv.Itoa(x.s.cfg.Port) {
			return false
		}
	}
	if slices.Contains(x.s.cfg.Hosts, name) {
		return true
	}
	switch strings.ToLower(name) {
	case "localhost", "127.0.0.1", "[::1]":
		return true
	}
	local, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	named, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	return err == nil && named.Unmap() == at.Addr().Unmap()
}

func (x *exchange) originAllowed(origin string) bool {
	if x.s.allowedOrigin(origin) {
		return true
	}
	host, ok := strings.CutPrefix(origin, "http://")
	if !ok {
		return false
	}
	if x.s.cfg.Port != 80 && !strings.HasSuffix(host, ":"+strconv.Itoa(x.s.cfg.Port)) { // an origin without a port is another server
		return false
	}
	return x.hostAllowed(host)
}

// preflight answers the preflight of an allowed origin.
func (x *exchange) preflight() bool {
	if x.r.Method != http.MethodOptions || x.w.Header().Get("Access-Control-Allow-Origin") == "" || x.r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := x.w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "authorization, content-type, last-event-id, range, rind-workspace")
	x.status(http.StatusNoContent)
	return true
}

// authenticate checks the token (step 3). Absent and wrong get the same answer.
func (x *exchange) authenticate() error {
	if x.s.cfg.Token == "" {
		return nil
	}
	given := ""
	if values := x.r.Header.Values("Authorization"); len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			given = strings.Trim(token, " ")
		}
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(x.s.cfg.Token))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return &portable.Error{Code: portable.Unauthorized, Message: "Bearer token required"}
	}
	return nil
}

// body reads the body of a POST (steps 7 to 9): nil for one that counts as empty. How it is framed changes nothing about what it is refused with.
func (x *exchange) body() (json.RawMessage, error) {
	badMedia := &portable.Error{Code: portable.BadMedia, Message: "Content-Type must be application/json"}
	for _, enc := range given(x.r.Header.Values("Content-Encoding")) {
		if !strings.EqualFold(strings.TrimSpace(enc), "identity") {
			return nil, badMedia
		}
	}
	types := given(x.r.Header.Values("Content-Type"))
	if len(types) > 1 || len(types) == 1 && !isJSON(types[0]) {
		return nil, badMedia
	}
	most, over := int64(maxBody), &portable.Error{Code: portable.TooLarge, Message: "Request body is too large"}
	if len(types) == 0 { // the first byte is one too many
		most, over = 0, badMedia
	}
	if x.r.ContentLength > most {
		return nil, over
	}
	body, err := x.take(most)
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > most:
		return nil, over
	}
	return portable.Text(body)
}

// given are the values of a header that say something: an empty one counts as absent.
func given(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
}

// take reads the body, or what is one byte more than most of it. The bound of its time is lifted where it is whole: what is read of the
// connection then is its end. A body that breaks off, or does not come in time, ends the connection.
func (x *exchange) take(most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(x.r.Body, most+1))
	switch {
	case err != nil:
		x.w.Header().Set("Connection", "close")
		return nil, &portable.Error{Code: portable.Validation, Message: "Request body is not valid JSON", Cause: err}
	case int64(len(body)) > most:
		x.w.Header().Set("Connection", "close")
	default:
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{})
	}
	return body, nil
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "application/json" {
		return false
	}
	charset, there := params["charset"]
	return !there || strings.EqualFold(charset, "utf-8")
}
