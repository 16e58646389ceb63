package shell

// Clean is the text of what a command writes in pieces, and whether something was changed.
func Clean(pieces ...[]byte) (string, bool) {
	var c cleaner
	var out []byte
	for _, p := range pieces {
		out = c.clean(out, p)
	}
	out = c.flush(out)
	return string(out), c.lossy
}
