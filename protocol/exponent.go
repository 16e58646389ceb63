package protocol

import "math/big"

// exponent is a decimal exponent of any size: a number's text may name one that fits no machine word.
type exponent struct{ n big.Int }

func newExponent(text string) *exponent {
	e := &exponent{}
	if len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	if text != "" {
		e.n.SetString(text, 10)
	}
	return e
}

func (e *exponent) add(n int) { e.n.Add(&e.n, big.NewInt(int64(n))) }

func (e *exponent) String() string { return e.n.String() }
