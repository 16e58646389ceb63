package modelhttp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rind-dev/rind/protocol"
)

// messageChars is the longest message of a *session.ModelError.
const messageChars = 500

const hidden = "[hidden]"

// secrets are the texts that must never be shown: the key, the values of custom headers, what stands before the @ of the base URL.
func secrets(cfg Config, u *url.URL) []string {
	var out []string
	add := func(s string) {
		if len(s) < 4 { // so short that hiding it would only hide words
			return
		}
		out = append(out, s)
		if j, err := json.Marshal(s); err == nil { // as a body repeats it
			out = append(out, string(j[1:len(j)-1]))
		}
		out = append(out, url.QueryEscape(s), url.PathEscape(s))
	}
	add(cfg.Key)
	for _, v := range cfg.Headers {
		add(v)
		if _, credentials, two := strings.Cut(v, " "); two {
			add(credentials) // Authorization: Scheme credentials
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(password)
		add(u.User.Username())
		add(u.User.String())
		add(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))) // what net/http sends of it
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) }) // the whole before its parts
	return slices.Compact(out)
}

func replacer(secrets []string) *strings.Replacer {
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, hidden)
	}
	return strings.NewReplacer(pairs...)
}

// credentials are found by their shape, whosever they are: a server may repeat those of a proxy before it.
var credentials = sync.OnceValue(func() *regexp.Regexp { // compiled with the first error, not with every start
	return regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{6,}|\b(sk|pk|rk)-[A-Za-z0-9_-]{8,}|://[^/\s@"']+@`)
})

// Line makes text from outside fit to be shown: one line, short, without secrets and control characters.
func (e *Endpoint) Line(text string) string {
	return protocol.OneLine(e.clean(text), messageChars)
}

// clean takes the secrets out of a text.
func (e *Endpoint) clean(text string) string {
	return credentials().ReplaceAllStringFunc(e.hide.Replace(text), func(found string) string {
		if strings.HasPrefix(found, "://") {
			return "://" + hidden + "@"
		}
		if scheme, _, two := strings.Cut(found, " "); two {
			return scheme + " " + hidden
		}
		return hidden
	})
}

// redacted is an error whose text holds no secrets, for a Cause: the log file shows it.
func (e *Endpoint) redacted(err error) error {
	if err == nil {
		return nil
	}
	return safeError{e.Line(err.Error()), err}
}

// safeError does not unwrap, so that nobody comes by the text it hides; errors.Is still sees through it.
type safeError struct {
	text string
	err  error
}

func (e safeError) Error() string        { return e.text }
func (e safeError) Is(target error) bool { return errors.Is(e.err, target) }
