package settings

import "maps"

// over lays o over s. A provider is taken whole: half of one and half of another would send a key to an address it was not meant for.
func (s Settings) over(o Settings) Settings {
	doc := s.doc
	if o.Configured() {
		doc.Provider, doc.API, doc.entry = o.doc.Provider, o.doc.API, o.doc.entry
	}
	doc.Model, doc.ReasoningEffort = first(o.doc.Model, doc.Model), first(o.doc.ReasoningEffort, doc.ReasoningEffort)
	doc.ApprovalMode = first(o.doc.ApprovalMode, doc.ApprovalMode)
	doc.ClientFiles, doc.ClientTerminal = first(o.doc.ClientFiles, doc.ClientFiles), first(o.doc.ClientTerminal, doc.ClientTerminal)
	doc.Sandbox, doc.FetchPrivate = first(o.doc.Sandbox, doc.Sandbox), first(o.doc.FetchPrivate, doc.FetchPrivate)
	if o.doc.SearchURL != nil { // whole, for the same reason
		doc.SearchURL, doc.SearchKey, doc.SearchHeader = o.doc.SearchURL, o.doc.SearchKey, o.doc.SearchHeader
	}
	if o.doc.MCPServers != nil {
		doc.MCPServers = o.doc.MCPServers
	}
	doc.Providers = maps.Clone(doc.Providers)
	if doc.Providers == nil {
		doc.Providers = map[string]named{}
	}
	maps.Copy(doc.Providers, o.doc.Providers)
	return Settings{Path: s.Path, doc: doc, more: s.more, stored: s.stored}
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
