package consent

import "mvdan.cc/sh/v3/syntax"

// alternative is one outcome of brace expansion.
type alternative struct {
	parts    []syntax.WordPart
	sequence bool // {1..3}: only the ends are there
}

// braces takes {a,b} apart. SplitBraces changes the word, so it is given a copy.
func braces(w *syntax.Word) []alternative {
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	if !syntax.SplitBraces(split) {
		return []alternative{{parts: w.Parts}}
	}
	if len(split.Parts) > mostParts {
		return []alternative{{parts: w.Parts, sequence: true}} // nobody writes that
	}
	return product(split.Parts)
}

func product(parts []syntax.WordPart) []alternative {
	out := []alternative{{}}
	for _, p := range parts {
		var tails []alternative
		if b, ok := p.(*syntax.BraceExp); ok {
			for i, e := range b.Elems {
				if b.Sequence && i > 1 {
					break // the step
				}
				for _, t := range product(e.Parts) {
					tails = append(tails, alternative{t.parts, t.sequence || b.Sequence})
				}
			}
		} else {
			tails = []alternative{{parts: []syntax.WordPart{p}}}
		}
		var next []alternative
		for _, o := range out {
			for _, t := range tails {
				if len(next) == mostAlternatives {
					next[0].sequence = true // not all of it is known
					break
				}
				next = append(next, alternative{append(o.parts[:len(o.parts):len(o.parts)], t.parts...), o.sequence || t.sequence})
			}
		}
		out = next
	}
	return out
}
