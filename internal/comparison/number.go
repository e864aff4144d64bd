package comparison

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// number is a number in C's notation: finite, infinite or not a number.
type number struct {
	special  byte // 'i' for infinite, 'n' for not a number, 0 for finite
	negative bool
	decimal
}

// decimal is mantissa · 10^exponent, and not negative.
type decimal struct {
	mantissa *big.Int
	exponent int64
	digits   int64 // number of digits of the mantissa, or one more; 0 for zero
}

// The limits for texts that are read as numbers. Texts beyond them are equal only as texts.
const (
	longestNumber = 1000 // bytes, but for integers
	longestExp    = 9    // digits of a decimal exponent
	mostBinaryExp = 1100 // range of a double, for which C prints hexadecimal numbers
)

// near reports whether two words are equal, or numbers within the tolerances. Two integers must be equal.
func (t tolerances) near(got, want []byte) bool {
	if bytes.Equal(got, want) {
		return true
	}
	if g, ok := integer(got); ok {
		if w, ok := integer(want); ok {
			return g == w
		}
	}
	g, ok := parse(string(got))
	w, also := parse(string(want))
	switch {
	case !ok || !also:
		return false
	case g.special != 0 || w.special != 0:
		return g.special == w.special && (g.special == 'n' || g.negative == w.negative)
	}
	return within(g, w, t.absolute) || within(g, w, w.times(t.relative))
}

// integer is the normal form of an integer: "+007" is "7", and "-0" is "0".
func integer(word []byte) (string, bool) {
	digits, sign := word, ""
	if len(word) > 0 && (word[0] == '+' || word[0] == '-') {
		digits, sign = word[1:], strings.Trim(string(word[:1]), "+")
	}
	if len(digits) == 0 || len(bytes.TrimLeft(digits, "0123456789")) > 0 {
		return "", false
	}
	if digits = bytes.TrimLeft(digits, "0"); len(digits) == 0 {
		return "0", true
	}
	return sign + string(digits), true
}

// parse parses a whole word as C's strtod does.
func parse(word string) (n number, ok bool) {
	if len(word) > longestNumber || word == "" {
		return number{}, false
	}
	if n.negative = word[0] == '-'; n.negative || word[0] == '+' {
		word = word[1:]
	}
	word = strings.ToLower(word)
	if inside, closed := strings.CutSuffix(word, ")"); closed {
		if inside, open := strings.CutPrefix(inside, "nan("); open && strings.Trim(inside, "0123456789abcdefghijklmnopqrstuvwxyz_") == "" {
			word = "nan"
		}
	}
	switch word {
	case "inf", "infinity":
		n.special = 'i'
		return n, true
	case "nan":
		n.special = 'n'
		return n, true
	}
	if hex, ok := strings.CutPrefix(word, "0x"); ok {
		n.decimal, ok = hexadecimal(hex)
		return n, ok
	}
	digits, exponent, ok := split(word, "e", "0123456789")
	if !ok {
		return number{}, false
	}
	exp, err := strconv.ParseInt(exponent, 10, 64)
	if short := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0"); exponent != "" && (err != nil || len(short) > longestExp) {
		return number{}, false
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	n.decimal = makeDecimal(whole+fraction, exp-int64(len(fraction)))
	return n, true
}

// split divides a number into its digits, with or without a point, and its exponent.
func split(word, mark, digit string) (digits, exponent string, ok bool) {
	digits, exponent, marked := strings.Cut(word, mark)
	unsigned := exponent
	if marked && exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		unsigned = exponent[1:]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	ok = whole+fraction != "" && strings.Trim(whole+fraction, digit) == "" && strings.Trim(unsigned, "0123456789") == "" && (unsigned != "" || !marked)
	return digits, exponent, ok
}

func makeDecimal(digits string, exponent int64) decimal {
	digits = strings.TrimLeft(digits, "0")
	short := strings.TrimRight(digits, "0")
	d := decimal{new(big.Int), exponent + int64(len(digits)-len(short)), int64(len(short))}
	if short != "" {
		d.mantissa.SetString(short, 10)
	}
	return d
}

// hexadecimal parses the text after 0x.
func hexadecimal(word string) (decimal, bool) {
	digits, exponent, ok := split(word, "p", "0123456789abcdef")
	whole, fraction, _ := strings.Cut(digits, ".")
	exp, err := strconv.Atoi(exponent)
	if !ok || exponent != "" && err != nil || exp > mostBinaryExp || exp < -mostBinaryExp || len(digits) > mostBinaryExp {
		return decimal{}, false
	}
	mantissa, ok := new(big.Int).SetString(whole+fraction, 16)
	if !ok {
		return decimal{}, false
	}
	if exp -= 4 * len(fraction); exp >= 0 {
		return makeDecimal(mantissa.Lsh(mantissa, uint(exp)).String(), 0), true
	}
	// 2^-n is 5^n · 10^-n.
	five := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(-exp)), nil)
	return makeDecimal(mantissa.Mul(mantissa, five).String(), int64(exp)), true
}

// times is the product of two decimals.
func (d decimal) times(o decimal) decimal {
	if d.digits == 0 || o.digits == 0 {
		return decimal{mantissa: new(big.Int)}
	}
	return decimal{new(big.Int).Mul(d.mantissa, o.mantissa), d.exponent + o.exponent, d.digits + o.digits}
}

// within reports whether g and w differ by at most t. It brings the three to one exponent. That could take as many digits as the
// exponents differ, up to a billion: so a term that is too small to matter, below all digits of the largest and a second term, counts
// as one unit there.
func within(g, w number, t decimal) bool {
	terms := []decimal{g.decimal, w.decimal, t}
	var top, most int64 = math.MinInt64, 0
	for _, d := range terms {
		if d.digits > 0 {
			top, most = max(top, d.exponent+d.digits), max(most, d.digits)
		}
	}
	bottom := top - 2*most - 4
	least := int64(math.MaxInt64)
	for i, d := range terms {
		if d.digits > 0 && d.exponent+d.digits < bottom {
			terms[i] = decimal{big.NewInt(1), bottom, 1}
		}
		if d.digits > 0 {
			least = min(least, terms[i].exponent)
		}
	}
	for i, d := range terms {
		if d.digits > 0 && d.exponent > least {
			scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(d.exponent-least), nil)
			terms[i].mantissa = scale.Mul(scale, d.mantissa)
		}
	}
	apart := new(big.Int)
	if g.negative == w.negative {
		apart.Sub(terms[0].mantissa, terms[1].mantissa)
	} else {
		apart.Add(terms[0].mantissa, terms[1].mantissa)
	}
	return apart.CmpAbs(terms[2].mantissa) <= 0
}

type tolerances struct{ absolute, relative decimal }

func (r Rule) tolerances() tolerances {
	exact := func(f float64) decimal {
		n, _ := parse(strconv.FormatFloat(f, 'e', -1, 64))
		return n.decimal
	}
	return tolerances{exact(r.Absolute), exact(r.Relative)}
}
