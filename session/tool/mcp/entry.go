package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is one of mcpServers, checked, its variables looked up.
type entry struct {
	disabled bool
	literal  bool // a client gave it
	timeout  time.Duration
	only     []string // tools that are offered; nil for all

	command string // of a program
	args    []string
	env     map[string]string
	dir     string

	url     *url.URL // of an HTTP server
	headers http.Header

	secrets []string
	hide    *strings.Replacer // takes secrets out of what the model and the user see
	quiet   *strings.Replacer // takes out of what is logged and told as a reason also the values of env and headers that a client gave
}

// written is an entry as it stands in the file. Members that other programs use and we do not are ignored.
type written struct {
	Type      string            `json:"type"`
	Transport string            `json:"transport"`
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env"`
	CWD       string            `json:"cwd"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Disabled  bool              `json:"disabled"`
	TimeoutMS *float64          `json:"timeoutMs"`
	Tools     []string          `json:"tools"`
}

// readEntry checks an entry. Errors are one line and hold no value of it.
func readEntry(raw json.RawMessage, c *Config) (entry, error) {
	e := entry{literal: c.Literal, timeout: defaultTimeout, hide: strings.NewReplacer(), quiet: strings.NewReplacer()}
	var w written
	if err := json.Unmarshal(raw, &w); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && bad.Field != "" {
			return e, fmt.Errorf("%s must not be a %s", bad.Field, bad.Value)
		}
		return e, errors.New("the entry must be an object with command or url")
	}
	if e.disabled = w.Disabled; e.disabled {
		return e, nil
	}
	if w.TimeoutMS != nil {
		if *w.TimeoutMS < 1 || *w.TimeoutMS > float64(24*time.Hour/time.Millisecond) {
			return e, errors.New("timeoutMs must be 1 to 86400000")
		}
		e.timeout = time.Duration(*w.TimeoutMS) * time.Millisecond
	}
	e.only = w.Tools
	kind := w.Type
	if kind == "" {
		kind = w.Transport
	}
	switch {
	case w.Command != "" && w.URL != "":
		return e, errors.New("it has both command and url; leave one out")
	case w.Command == "" && w.URL == "":
		return e, errors.New("it has neither command nor url")
	case kind == "sse":
		return e, errors.New("type sse is the older transport, which is not supported; ask the server's makers for its streamable HTTP address")
	case w.Command != "" && kind != "" && kind != "stdio":
		return e, errors.New("type must be stdio for a command")
	case w.URL != "" && !slices.Contains([]string{"", "http", "streamable-http", "streamableHttp"}, kind):
		return e, errors.New("type must be http for a url")
	}
	var err error
	v := &variables{env: c.Env, literal: c.Literal}
	if w.Command != "" {
		err = e.program(&w, v, c.Dir)
	} else {
		err = e.remote(&w, v)
	}
	if err != nil {
		return e, err
	}
	e.secrets = v.secrets
	e.hide, e.quiet = hiding(v.secrets), hiding(append(v.values, v.secrets...))
	return e, nil
}

// hiding replaces texts, of those that begin alike the longest.
func hiding(texts []string) *strings.Replacer {
	pairs := make([]string, 0, 2*len(texts))
	slices.SortStableFunc(texts, func(a, b string) int { return len(b) - len(a) })
	for _, s := range texts {
		pairs = append(pairs, s, "[hidden]")
	}
	return strings.NewReplacer(pairs...)
}

func (e *entry) program(w *written, v *variables, dir string) (err error) {
	if e.command, err = v.expand("command", w.Command, false); err != nil {
		return err
	}
	for _, a := range w.Args {
		if a, err = v.expand("args", a, false); err != nil {
			return err
		}
		e.args = append(e.args, a)
	}
	e.env = map[string]string{}
	for name, value := range w.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "RIND_") {
			return fmt.Errorf("%q is no variable that env may set", clean(name, 80))
		}
		if e.env[name], err = v.expand("env."+name, value, secretName().MatchString(name)); err != nil {
			return err
		}
		v.given(value)
	}
	cwd, err := v.expand("cwd", w.CWD, false)
	if err != nil {
		return err
	}
	e.dir = v.path(dir, cwd)
	if filepath.ToSlash(e.command) != filepath.Base(e.command) { // else it is looked up in PATH
		e.command = v.path(e.dir, e.command)
	}
	if strings.ContainsAny(e.command+strings.Join(e.args, ""), "\x00") {
		return errors.New("command and args hold a NUL character")
	}
	return nil
}

func (e *entry) remote(w *written, v *variables) error {
	address, err := v.expand("url", w.URL, false)
	if err != nil {
		return err
	}
	e.url, err = url.Parse(address)
	if err != nil || e.url.Scheme != "http" && e.url.Scheme != "https" || e.url.Host == "" {
		return errors.New("url must be an http or https address")
	}
	if password, ok := e.url.User.Password(); ok {
		v.keep(password)
	}
	e.headers = http.Header{}
	for name, value := range w.Headers {
		value, err := v.expand("headers."+name, value, secretName().MatchString(name))
		if err != nil {
			return err
		}
		if !headerName().MatchString(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("%q is no header that can be sent", clean(name, 80))
		}
		v.given(value)
		scheme, bare, ok := strings.Cut(value, " ")
		v.given(bare)
		if ok && secretName().MatchString(name) && !strings.Contains(bare, " ") && scheme != "" {
			v.keep(bare) // "Bearer KEY"
		}
		e.headers.Set(name, value)
	}
	return nil
}

// where says where the server is, without what may be a key.
func (e *entry) where() string {
	if e.url != nil {
		return e.url.Scheme + "://" + e.url.Host + e.url.Path
	}
	return e.command
}

func (e *entry) transport() string {
	switch {
	case e.url != nil:
		return "http"
	case e.command != "":
		return "stdio"
	}
	return ""
}

func (e *entry) offers(name string) bool { return e.only == nil || slices.Contains(e.only, name) }

var (
	secretName = pattern(`(?i)(^|[_-])(key|token|secret|password|passwd|pwd|pat|authorization|cookie|credentials?)([_-]|$)|api[_-]?key`)
	headerName = pattern("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	whole      = pattern(`^\$([A-Za-z_][A-Za-z0-9_]*)$`)
	inside     = pattern(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
)

// What is shorter stands in texts by chance.
const (
	shortestSecret = 8 // bytes
	shortestValue  = 4 // bytes, of any value that a client gave, in a log
)

// variables looks up what "$NAME", ${NAME} and ${NAME:-otherwise} stand for, and remembers what no log may hold.
type variables struct {
	env     []string
	literal bool
	secrets []string
	values  []string // of env and headers, where they are a client's
}

func (v *variables) look(name string) (string, bool) {
	for i := len(v.env) - 1; i >= 0; i-- {
		if n, value, ok := strings.Cut(v.env[i], "="); ok && n == name {
			return value, value != ""
		}
	}
	return "", false
}

// path is p as an absolute path: ~ is the home folder, base that of relative ones.
func (v *variables) path(base, p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		if home, ok := v.look("HOME"); ok {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(base, p)
}

func (v *variables) keep(secret string) {
	if len(secret) >= shortestSecret {
		v.secrets = append(v.secrets, secret)
	}
}

// given remembers a value of env or headers.
func (v *variables) given(value string) {
	if v.literal && len(value) >= shortestValue {
		v.values = append(v.values, value)
	}
}

func (v *variables) expand(member, value string, secret bool) (string, error) {
	var missing string
	find := func(name, otherwise string, has bool) string {
		found, ok := v.look(name)
		switch {
		case ok:
			if secretName().MatchString(name) {
				v.keep(found)
			}
			return found
		case has:
			return otherwise
		}
		missing = name
		return ""
	}
	out := value
	switch m := whole().FindStringSubmatch(value); {
	case v.literal:
	case m != nil:
		out = find(m[1], "", false)
	default:
		out = inside().ReplaceAllStringFunc(value, func(s string) string {
			m := inside().FindStringSubmatch(s)
			return find(m[1], strings.TrimPrefix(m[2], ":-"), m[2] != "")
		})
	}
	if missing != "" {
		return "", fmt.Errorf("%s names the variable %s, which is not set; set it or change the entry", member, missing)
	}
	if secret {
		v.keep(out)
	}
	return out, nil
}
