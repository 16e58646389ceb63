package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// FileName is the settings file's name inside the data root.
const FileName = "settings.json"

// MaxSize is the size in bytes beyond which a settings file is refused.
const MaxSize = 1 << 20

// Types of providers.
const (
	OpenAIChat      = "openai-chat"
	OpenAIResponses = "openai-responses"
	Anthropic       = "anthropic"
	ACP             = "acp"
	Script          = "script"
	Demo            = "demo"
)

// Settings is what a settings file says, checked. The zero value is that of a missing file. It is never changed after it was made.
type Settings struct {
	Path   string // of the file, "" for none
	doc    document
	more   []Unknown
	stored Stored
}

// Unknown is a member of the file that no setting has: ignored, but often a slip of the pen.
type Unknown struct {
	Key       string // "modell", "providers.local.modle"
	Line, Col int    // from 1
}

// document is the file as Go sees it. A nil pointer, map or list was not set.
type document struct {
	Provider *string `json:"provider"`
	API      *string `json:"api"`
	entry
	ApprovalMode      *string           `json:"approvalMode"`
	Providers         map[string]named  `json:"-"`
	TrustedWorkspaces map[string]string `json:"trustedWorkspaces"`
	MCPServers        json.RawMessage   `json:"mcpServers"`
	Sandbox           *string           `json:"sandbox"`
	SearchURL         *string           `json:"searchUrl"`
	SearchKey         *string           `json:"searchKey"`
	SearchHeader      *string           `json:"searchHeader"`
	FetchPrivate      *bool             `json:"fetchPrivate"`
	ClientFiles       *string           `json:"clientFiles"`
	ClientTerminal    *string           `json:"clientTerminal"`
	FolderDefaults    json.RawMessage   `json:"folderDefaults"`
}

type entry struct {
	BaseURL         *string           `json:"baseUrl"`
	APIKey          *string           `json:"apiKey"`
	Keyring         *bool             `json:"keyring"`
	Model           *string           `json:"model"`
	ReasoningEffort *string           `json:"reasoningEffort"`
	Headers         map[string]string `json:"headers"`
	CAFile          *string           `json:"caFile"`
	ContextWindow   *int              `json:"contextWindow"`
	Images          *bool             `json:"images"`
}

type named struct {
	Type *string `json:"type"`
	entry
	Command        *string           `json:"command"`
	Args           []string          `json:"args"`
	Env            map[string]string `json:"env"`
	PassEnv        []string          `json:"passEnv"`
	AuthMethod     *string           `json:"authMethod"`
	ClientFS       *bool             `json:"clientFs"`
	ClientTerminal *bool             `json:"clientTerminal"`
	Script         *string           `json:"script"`
}

// Error says why a settings file cannot be used. Its text is one line, "Invalid settings.json: <reason>", and holds no value of the
// file. In its chain is a *protocol.Error of kind ConfigurationError with the same text.
type Error struct {
	Path      string
	Line, Col int // from 1; 0 where the reason has no place
	Reason    string
	Cause     error // of the operating system, nil for most
}

func (e *Error) Error() string {
	where := e.Path
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", e.Path, e.Line, e.Col)
	}
	return fmt.Sprintf("Invalid settings.json: %s (%s)", e.Reason, where)
}

// Unwrap gives the error a client is told.
func (e *Error) Unwrap() error {
	return &protocol.Error{Kind: protocol.ConfigurationError, Message: e.Error(), Cause: e.Cause}
}

// Load reads the settings file at path. A missing file gives the settings of an empty one and creates nothing; every other failure is
// an *Error, and no setting of a file with one takes effect.
func Load(path string) (Settings, error) {
	src, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{Path: path}, nil
	}
	if err != nil {
		return Settings{Path: path}, err
	}
	return Parse(path, src)
}

// Parse checks the bytes of a settings file; path is only for the texts of errors.
func Parse(path string, src []byte) (Settings, error) {
	src, err := decode(path, src)
	if err != nil {
		return Settings{Path: path}, err
	}
	s := Settings{Path: path}
	root, bad := scan(src)
	if bad == nil {
		s.more, bad = check(src, root)
	}
	if bad != nil {
		return Settings{Path: path}, faultAt(path, src, bad)
	}
	fill(src, root, &s.doc)
	if m, ok := root.get("providers"); ok {
		s.doc.Providers = make(map[string]named, len(m.value.members))
		for _, p := range m.value.members {
			var n named
			fill(src, p.value, &n)
			s.doc.Providers[p.key] = n
		}
	}
	return s, nil
}

func faultAt(path string, src []byte, bad *fault) *Error {
	line, col := place(src, bad.pos)
	return &Error{Path: path, Line: line, Col: col, Reason: bad.reason}
}

// readFile gives the file's bytes; an error is fs.ErrNotExist or an *Error. What is no file is not opened: opening may wait for ever.
func readFile(path string) ([]byte, error) {
	refuse := func(reason string, cause error) ([]byte, error) {
		return nil, &Error{Path: path, Reason: reason, Cause: cause}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fs.ErrNotExist
	case err != nil:
		return refuse("it cannot be read: "+reasonOf(err), err)
	case info.IsDir():
		return refuse("it is a folder, not a file", nil)
	case !info.Mode().IsRegular():
		return refuse("it is not a regular file", nil)
	case info.Size() > MaxSize:
		return refuse("it is larger than 1 MiB", nil)
	}
	f, err := os.Open(path)
	if err != nil {
		return refuse("it cannot be read: "+reasonOf(err), err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return refuse("it cannot be read: "+reasonOf(err), err)
	}
	if len(src) > MaxSize {
		return refuse("it is larger than 1 MiB", nil)
	}
	return src, nil
}

// reasonOf is an operating system's reason without the path, which the text names already.
func reasonOf(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return err.Error()
}

// decode takes off a byte order mark and refuses what is not UTF-8.
func decode(path string, src []byte) ([]byte, error) {
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) || bytes.IndexByte(src, 0) >= 0 {
		return nil, &Error{Path: path, Reason: "it is not UTF-8 (UTF-16?); save it as UTF-8"}
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(src) {
		pos := 0
		for pos < len(src) {
			r, size := utf8.DecodeRune(src[pos:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			pos += size
		}
		return nil, faultAt(path, src, &fault{pos, "it is not UTF-8; save it as UTF-8"})
	}
	return src, nil
}

// Unknown lists members of the file that are ignored because no setting has their name, in the order of the file.
func (s Settings) Unknown() []Unknown { return slices.Clone(s.more) }

// ApprovalMode is the mode new sessions start in: ask, edit, read or full.
func (s Settings) ApprovalMode() string { return or(s.doc.ApprovalMode, "ask") }

// MCPServers is the object of that name as the file has it, nil where it has none.
func (s Settings) MCPServers() json.RawMessage { return slices.Clone(s.doc.MCPServers) }

// Sandbox tells whether commands run in a sandbox: "auto" or "off".
func (s Settings) Sandbox() string { return or(s.doc.Sandbox, "auto") }

// Web says where the web tools may go. Private allows addresses that are not public.
type Web struct {
	SearchURL, SearchKey, SearchHeader string
	Private                            bool
}

// Web returns the settings of the web tools, the key looked up in env where it names a variable.
func (s Settings) Web(env Env) Web {
	key := or(s.doc.SearchKey, "")
	if name, ok := strings.CutPrefix(key, "$"); ok {
		key, _ = env(name)
	}
	return Web{or(s.doc.SearchURL, ""), key, or(s.doc.SearchHeader, ""), s.doc.FetchPrivate != nil && *s.doc.FetchPrivate}
}

// ClientFiles tells whether an ACP editor's file methods are used: "auto" or "never".
func (s Settings) ClientFiles() string { return or(s.doc.ClientFiles, "auto") }

// ClientTerminal tells whether an ACP editor's terminal is used: "never" or "auto".
func (s Settings) ClientTerminal() string { return or(s.doc.ClientTerminal, "never") }

// TrustedWorkspaces maps the workspaces somebody trusted to the hash of what they enabled then.
func (s Settings) TrustedWorkspaces() map[string]string { return maps.Clone(s.doc.TrustedWorkspaces) }

// or gives what a pointer points at, or the value for nil.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
