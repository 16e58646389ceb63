package session

import (
	"context"
	"slices"
	"time"
)

// GuidePart is one part of what the model is told before the conversation begins.
type GuidePart struct {
	Key       string // of context/inspect: "system", "user_doc", "project_doc", "skills"
	Label     string // of context/inspect
	Text      string // never empty
	Path      string // absolute, of the file it was read from; "" for none
	Scope     string // "user", "project"; "" for our own words
	Truncated bool   // the file is longer than what is given
}

// Skill is a text the model or a person can load by name.
type Skill struct {
	Name        string `json:"name"`
	Scope       string `json:"scope"` // "project", "user"
	Description string `json:"description"`
	Path        string `json:"path"` // absolute
	Text        string `json:"-"`
}

// Guide is what the user and the workspace tell a model: our own words, project documents, skills (docs/protocol/rind-v2.md section 8).
// It reads files anew each time, so that a change holds from the next request on; nothing it meets there is an error: what cannot be
// read is left out. Safe for concurrent use.
type Guide interface {
	// Parts are the parts of the system message, in order.
	Parts(workspace string) []GuidePart
	// Skills lists what can be loaded, sorted by name, without their texts. A project's skill hides a user's of the same name.
	Skills(workspace string) []Skill
	// Skill loads one; false when there is none of that name.
	Skill(workspace, name string) (Skill, bool)
}

// Images keep the contents of files before tools changed them: by content, per session, bounded. Safe for concurrent use.
type Images interface {
	// Keep stores data and returns its digest (SHA-256, hex); it is on disk when Keep returns. An image too large to be kept is no
	// error: the digest is returned and Image will not find it.
	Keep(ctx context.Context, id SessionID, data []byte) (digest string, err error)
	// Image returns what was kept under digest. ErrNotFound.
	Image(ctx context.Context, id SessionID, digest string) ([]byte, error)
}

// Fates of a file in an Undone (docs/protocol/rind-v2.md section 8).
const (
	FileRestored     = "restored"
	FileChangedSince = "changed_since"
	FileNotKept      = "not_kept"
)

// FileUndo is what became of one file.
type FileUndo struct {
	Path   string `json:"path"` // relative to the workspace where it lies in it, slash separated
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"` // one line: why it was not restored, where that is more than Status says
}

// Undone is the outcome of an undo. Turn is "" when no turn of the session wrote anything that is not undone already.
type Undone struct {
	Turn  TurnID
	Files []FileUndo
}

// FileDiff is what one turn changed in one file.
type FileDiff struct {
	Path    string
	Diff    string // unified; "" for what is not text, is too long, or was not kept
	Created bool
	Removed bool
	Kept    bool   // the content from before is there
	Reason  string // one line: why there is no Diff, where there should be one
}

// Undo puts back files that tools wrote. Safe for concurrent use.
type Undo interface {
	// Undo puts back what tools wrote in a turn and nobody changed since; turn "" is the last that wrote any and is not undone yet.
	// NotFound when the session has no such turn; SessionBusy while another process works in the session.
	Undo(ctx context.Context, id SessionID, turn TurnID) (Undone, error)
	// Diff tells what tools wrote in a turn; turn "" is the last that wrote any.
	Diff(ctx context.Context, id SessionID, turn TurnID) (TurnID, []FileDiff, error)
}

// Rule is remembered consent, for one workspace.
type Rule struct {
	ID        int64
	Workspace string // absolute, links resolved
	Tool      string // name of the tool it is about
	Pattern   string // what it matches, as a person reads it; opaque to the store
	Allow     bool   // else deny
	Created   time.Time
}

// Rules is the store's port for remembered consent. Adding needs no lease.
type Rules interface {
	// AddRule stores r and returns it with its ID and Created. The same tool, pattern and workspace again replaces the older rule.
	AddRule(ctx context.Context, r Rule) (Rule, error)
	// Rules lists those of a workspace, oldest first.
	Rules(ctx context.Context, workspace string) ([]Rule, error)
	// RemoveRule removes one; false when there is none.
	RemoveRule(ctx context.Context, workspace string, id int64) (bool, error)
}

// guideText joins the parts of a guide into message 0.
func guideText(parts []GuidePart) string {
	n := 0
	for _, p := range parts {
		n += len(p.Text) + 2
	}
	b := make([]byte, 0, n)
	for i, p := range parts {
		if i > 0 {
			b = append(b, "\n\n"...)
		}
		b = append(b, p.Text...)
	}
	return string(b)
}

// noGuide tells nothing.
type noGuide struct{}

func (noGuide) Parts(string) []GuidePart           { return nil }
func (noGuide) Skills(string) []Skill              { return nil }
func (noGuide) Skill(string, string) (Skill, bool) { return Skill{}, false }

// PlainGuide is a Guide of one text; "" tells nothing.
func PlainGuide(text string) Guide { return plainGuide{text: text} }

type plainGuide struct {
	noGuide
	text string
}

func (g plainGuide) Parts(string) []GuidePart {
	if g.text == "" {
		return nil
	}
	return []GuidePart{{Key: "system", Label: "System prompt", Text: g.text}}
}

// truncatedScopes names the scopes of documents that are given in part, for context_built.
func truncatedScopes(parts []GuidePart) []string {
	scopes := []string{}
	for _, p := range parts {
		if p.Truncated && p.Scope != "" && !slices.Contains(scopes, p.Scope) {
			scopes = append(scopes, p.Scope)
		}
	}
	return scopes
}
