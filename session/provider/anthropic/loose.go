package anthropic

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// loose is text from a field that some server fills with something else: a string is taken as it is, null is empty, a list of parts
// is the text of its parts, and anything else is its JSON. So one odd field does not cost the whole answer.
type loose string

// UnmarshalJSON implements json.Unmarshaler.
func (l *loose) UnmarshalJSON(j []byte) error {
	switch {
	case len(j) == 0 || bytes.Equal(j, []byte("null")):
		return nil
	case j[0] == '"':
		if inner := j[1 : len(j)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) { // nearly all of them
			*l = loose(inner)
			return nil
		}
		var s string
		err := json.Unmarshal(j, &s)
		*l = loose(s)
		return err
	case j[0] == '[':
		var parts []struct {
			Text *string `json:"text"`
			Msg  *string `json:"msg"`
		}
		if json.Unmarshal(j, &parts) == nil && len(parts) > 0 {
			for _, p := range parts {
				for _, s := range []*string{p.Text, p.Msg} {
					if s != nil {
						*l += loose(*s)
					}
				}
			}
			if *l != "" {
				return nil
			}
		}
	}
	*l = loose(bytes.Clone(j))
	return nil
}
