package demo

import (
	"encoding/json"
	"strings"

	"github.com/rind-dev/rind/session"
)

// knowledge is what the messages of a request tell.
type knowledge struct {
	asked    string          // the last user message
	offered  map[string]bool // tools
	labelled bool            // the user was told what this is
	told     bool            // an earlier turn told its overview
	spoke    bool            // this turn has said something
	made     map[string]bool // calls of this turn that have a result, by wish.key
	files    *listing        // of everything, nil when it could not be listed
	top      *listing        // of the top of the folder
	listErr  string          // why there is no list
	reads    map[string]page
	greps    map[string]matches
}

type listing struct {
	files []foundFile
	cut   bool // there are more
}

type foundFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// page is what read_file gave: lines without their numbers, or why not.
type page struct {
	lines []string
	total int // lines of the file, 0 when unknown
	cut   bool
	err   string
}

type matches struct {
	found []foundLine
	cut   bool
	err   string
}

type foundLine struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// outcome is a tool's result as the model gets it (docs/protocol/rind-v2.md section 9).
type outcome struct {
	OK    bool            `json:"ok"`
	Data  json.RawMessage `json:"data"`
	Error string          `json:"error"`
	Meta  struct {
		Truncated bool `json:"truncated"`
		Total     int  `json:"total_lines"`
	} `json:"meta"`
}

// gather reads the conversation from its beginning. What an earlier turn found stays known; what this turn finds replaces it.
func gather(r session.ModelRequest) *knowledge {
	k := &knowledge{offered: map[string]bool{}, made: map[string]bool{}, reads: map[string]page{}, greps: map[string]matches{}}
	for _, t := range r.Tools {
		k.offered[t.Name] = true
	}
	calls, looked := map[string]session.Call{}, false
	for i := range r.Messages {
		m := &r.Messages[i]
		switch m.Role {
		case session.RoleUser:
			k.asked, k.spoke = m.Text, false
			clear(k.made)
		case session.RoleAssistant:
			k.labelled = k.labelled || strings.Contains(m.Text, mark)
			k.spoke = k.spoke || m.Text != ""
			if len(m.Calls) == 0 && !m.Interrupted && looked && k.listErr == "" {
				k.told = true
			}
			for _, c := range m.Calls {
				calls[c.ID] = c
			}
		case session.RoleTool:
			looked = true
			k.learn(calls[m.CallID], m.Text)
		case session.RoleSystem:
		}
	}
	return k
}

// learn takes one result in.
func (k *knowledge) learn(c session.Call, text string) {
	var o outcome
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		o = outcome{Error: "its result could not be read"}
	}
	if !o.OK && o.Error == "" {
		o.Error = "it failed"
	}
	switch c.Name {
	case "glob":
		var a globArgs
		if json.Unmarshal(c.Arguments, &a) != nil {
			return
		}
		k.made[wish{c.Name, a}.key()] = true
		k.list(wish{c.Name, a}, &o)
	case "read_file":
		var a readArgs
		if json.Unmarshal(c.Arguments, &a) != nil {
			return
		}
		k.made[wish{c.Name, a}.key()] = true
		k.reads[a.Path] = readPage(&o)
	case "grep":
		var a grepArgs
		if json.Unmarshal(c.Arguments, &a) != nil {
			return
		}
		k.made[wish{c.Name, a}.key()] = true
		m := matches{cut: o.Meta.Truncated, err: o.Error}
		if o.OK && json.Unmarshal(o.Data, &m.found) != nil {
			m.err = "its result could not be read"
		}
		k.greps[a.Pattern] = m
	}
}

func (k *knowledge) list(c wish, o *outcome) {
	l := &listing{cut: o.Meta.Truncated}
	if o.OK && json.Unmarshal(o.Data, &l.files) != nil {
		o.OK, o.Error = false, "its result could not be read"
	}
	switch c {
	case everything:
		if !o.OK {
			k.listErr = o.Error
			return
		}
		k.files, k.listErr = l, ""
	case top:
		if o.OK {
			k.top = l
		}
	}
}

// numbered is a line as read_file gives it.
var numbered = later(`^ *[0-9]+\t`)

func readPage(o *outcome) page {
	if !o.OK {
		return page{err: o.Error}
	}
	var text string
	if json.Unmarshal(o.Data, &text) != nil {
		return page{err: "its result could not be read"}
	}
	p := page{total: o.Meta.Total, cut: o.Meta.Truncated}
	for line := range strings.SplitSeq(text, "\n") {
		if at := numbered().FindStringIndex(line); at != nil {
			p.lines = append(p.lines, strings.TrimRight(line[at[1]:], "\r"))
		}
	}
	return p
}
