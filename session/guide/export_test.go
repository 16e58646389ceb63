package guide

// ParseSkill is the decoder of skills' files, for its table and its fuzzing.
func ParseSkill(text string) (name, description, body string, err error) {
	h, body, err := parseSkill(text)
	return h.name, h.description, body, err
}
