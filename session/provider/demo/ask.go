package demo

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	greetings = later(`(?i)^(hi|hello|hey|hallo|thanks|thank you|ok|help|test|ping|who are you|what are you|what can you do|good (morning|day|evening))( there| rind)?[\s!.?,]*$`)
	overviews = later(`(?i)\b(overview|summar(y|ise|ize)|once more|again)\b`)
	quoted    = later("\"([^\"\n]{2,80})\"|`([^`\n]{2,80})`|“([^”\n]{2,80})”")
	words     = later(`[\pL\pN_./\\-]+(\(\))?`)
	compound  = later(`^[A-Za-z]+[a-z0-9][A-Z]\w*$|^[A-Za-z]\w*_\w+$|^\w+\(\)$`) // fooBar, foo_bar, foo()
	todos     = later(`(?i)\b(todos?|fixmes?)\b`)
)

// greeting tells whether nothing is asked that the folder could answer.
func (k *knowledge) greeting() bool {
	return strings.TrimSpace(k.asked) == "" || greetings().MatchString(strings.TrimSpace(k.asked))
}

// needsOverview tells whether the folder is to be described: once in a session, and when asked to.
func (k *knowledge) needsOverview() bool { return !k.told || overviews().MatchString(k.asked) }

// empty tells whether the list is known and holds nothing.
func (k *knowledge) empty() bool { return k.files != nil && len(k.files.files) == 0 && !k.files.cut }

// known lists the paths of the files that were found, each once.
func (k *knowledge) known() []string {
	var out []string
	for _, l := range []*listing{k.top, k.files} {
		if l == nil {
			continue
		}
		for _, f := range l.files {
			out = append(out, f.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// telling lists the files at the top of the folder that say what it is, the most telling first.
func (k *knowledge) telling() []string {
	known := k.known()
	if k.files == nil && k.top == nil {
		return []string{"README.md", "go.mod", "package.json"} // unseen: worth a try
	}
	var out []string
	for _, want := range manifests {
		for _, p := range known {
			if strings.EqualFold(p, want) || want == "README" && readme(p) && !strings.Contains(p, "/") {
				out = append(out, p)
				break
			}
		}
	}
	return out[:min(len(out), mostManifests)]
}

func readme(p string) bool {
	base := strings.ToLower(path.Base(p))
	return strings.TrimSuffix(base, path.Ext(base)) == "readme"
}

// askedFiles lists the files the prompt names: whole paths first, else by their last part.
func (k *knowledge) askedFiles() []string {
	var out []string
	known := k.known()
	for _, w := range words().FindAllString(k.asked, -1) {
		w = strings.TrimPrefix(strings.TrimRight(strings.ReplaceAll(w, `\`, "/"), "./-"), "./")
		if w == "" {
			continue
		}
		i := slices.IndexFunc(known, func(p string) bool { return strings.EqualFold(p, w) })
		if i < 0 {
			i = slices.IndexFunc(known, func(p string) bool { return strings.EqualFold(path.Base(p), w) })
		}
		if i >= 0 {
			w = known[i]
		} else if k.files != nil && !k.files.cut || language(w) == "" && kind(w) == "" {
			continue // no file; where the list is not whole, what is called like one is tried
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out[:min(len(out), mostAsked)]
}

// askedTerms lists what the prompt asks to find: what stands in quotes, and words that only code has.
func (k *knowledge) askedTerms() []wish {
	if k.empty() {
		return nil
	}
	var terms []string
	add := func(t string) {
		t = strings.TrimSuffix(strings.TrimSpace(t), "()")
		if len(t) > 1 && !slices.Contains(terms, t) && !slices.ContainsFunc(k.known(), func(p string) bool {
			return strings.EqualFold(p, t) || strings.EqualFold(path.Base(p), t)
		}) {
			terms = append(terms, t)
		}
	}
	for _, m := range quoted().FindAllStringSubmatch(k.asked, -1) {
		add(m[1] + m[2] + m[3])
	}
	for _, w := range words().FindAllString(k.asked, -1) {
		if compound().MatchString(w) {
			add(w)
		}
	}
	var out []wish
	for _, t := range terms[:min(len(terms), mostAsked)] {
		out = append(out, wish{"grep", grepArgs{regexp.QuoteMeta(t), 200}})
	}
	if todos().MatchString(k.asked) {
		out = append(out, todo)
	}
	return out
}
