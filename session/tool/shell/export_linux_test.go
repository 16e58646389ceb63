package shell

// Offer makes the system offer a sandbox, until it is taken back.
func Offer(sandbox string) (back func()) {
	old := offered
	offered = func() string { return sandbox }
	return func() { offered = old }
}

// BubblewrapWorks reports whether it can be used here.
func BubblewrapWorks() bool { return bubblewrapWorks() }
