package protocol

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"
)

// TestAnExponentIsShiftedAsANumberIs compares the arithmetic on digits with that of whole numbers.
func TestAnExponentIsShiftedAsANumberIs(t *testing.T) {
	nines, zeros := strings.Repeat("9", 40), strings.Repeat("0", 40)
	texts := []string{
		"", "0", "-0", "+0", "7", "-7", "+07", "000123", "-000123", strings.Repeat("9", 18), strings.Repeat("9", 19), "1" + zeros, "-1" + zeros, nines, "-" + nines,
		"+" + nines, zeros + nines, "-" + zeros + "1", "1" + strings.Repeat("0", 18), "-1" + strings.Repeat("0", 18), "9223372036854775807", "-9223372036854775808",
	}
	same := func(text string, n int64) bool {
		want := new(big.Int)
		if digits := strings.TrimPrefix(text, "+"); digits != "" {
			want.SetString(digits, 10)
		}
		want.Add(want, big.NewInt(n))
		if got := shiftExponent(text, n); got != want.String() {
			t.Errorf("%q and %d: %s, not %s", text, n, got, want)
			return false
		}
		return true
	}
	for _, text := range texts {
		for _, n := range []int64{0, 1, -1, 16 << 20, -16 << 20, 999_999, -1000} {
			same(text, n)
		}
	}
	if err := quick.Check(func(high uint64, low int64, n int32) bool {
		return same(strconv.FormatInt(low, 10)+strconv.FormatUint(high, 10), int64(n))
	}, nil); err != nil {
		t.Error(err)
	}
}

// TestANumberWithMegabytesOfDigitsCostsItsLength: whoever may send a body may send such a number, and its text is compared, not its value.
func TestANumberWithMegabytesOfDigitsCostsItsLength(t *testing.T) {
	const size = 3 << 19 // bytes
	for _, text := range []string{"1e-" + strings.Repeat("9", size), "0." + strings.Repeat("0", size) + "1"} {
		began := time.Now()
		out, err := Canonical(strings.NewReader(text))
		if err != nil || len(out) == 0 {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second { // with numbers of any size it were half a minute
			t.Errorf("%.20s…: %v", text, took)
		}
	}
}

func TestAnIntegerIsOneHoweverItIsWritten(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "-0.0": 0, "0e99999999999999999999": 0, "1": 1, "1.0": 1, "1e0": 1, "0.1e1": 1, "10E-1": 1, "-2.50e1": -25, "1e18": 1e18,
		"9007199254740993.0": 9007199254740993, "9223372036854775807": 9223372036854775807,
	} {
		if n, ok := Integer([]byte(text)); !ok || n != want {
			t.Errorf("%s: %d %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "null", "true", `"1"`, "1.5", "1e-1", "1.0000000000000000001", "1e19", "9223372036854775808", "1e999999999999999999999", "[1]", "{}"} {
		if n, ok := Integer([]byte(text)); ok {
			t.Errorf("%s: %d", text, n)
		}
	}
}
