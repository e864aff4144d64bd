package jsonvalue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Decimal is an exact number: digits × 10^power, of any size. 9007199254740993 and …992 are different Decimals but the same float64.
type Decimal struct {
	negative bool
	digits   string // without leading and trailing zeros; "" is zero
	power    int64
}

// mostPower is far above all exponents of numbers in computations, and the sum of two fits into an int64.
const mostPower = 1 << 40

// DecimalOf parses a number in JSON's grammar. It refuses exponents that are larger than in any computation.
func DecimalOf(text string) (d Decimal, ok bool) {
	if !ValidNumber(text) {
		return d, false
	}
	rest, negative := strings.CutPrefix(text, "-")
	if e := strings.IndexAny(rest, "eE"); e >= 0 {
		p, err := strconv.ParseInt(rest[e+1:], 10, 64)
		if err != nil || p > mostPower || p < -mostPower {
			return d, false
		}
		d.power, rest = p, rest[:e]
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	d.power -= int64(len(fraction))
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return Decimal{}, true
	}
	d.power += int64(len(digits) - len(d.digits))
	d.negative = negative
	return d, true
}

// DecimalOfFloat returns the shortest decimal that is read as f.
func DecimalOfFloat(f float64) Decimal {
	d, _ := DecimalOf(strconv.FormatFloat(f, 'e', -1, 64))
	return d
}

// Compare returns -1, 0 or 1 if d is less than, equal to or greater than o.
func (d Decimal) Compare(o Decimal) int {
	if n := cmp.Compare(d.sign(), o.sign()); n != 0 || d.sign() == 0 {
		return n
	}
	n := cmp.Or(cmp.Compare(int64(len(d.digits))+d.power, int64(len(o.digits))+o.power), cmp.Compare(d.digits, o.digits))
	return n * d.sign()
}

func (d Decimal) Float() float64 {
	text := cmp.Or(d.digits, "0") + "e" + strconv.FormatInt(d.power, 10)
	if d.negative {
		text = "-" + text
	}
	f, _ := strconv.ParseFloat(text, 64) // outside its range it is infinite
	return f
}

func (d Decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// whole returns the digits of an integer that may fit into 64 bits.
func (d Decimal) whole() (digits string, is bool) {
	if d.digits == "" {
		return "0", true
	}
	if d.power < 0 || int64(len(d.digits))+d.power > 20 {
		return "", false
	}
	digits = d.digits + strings.Repeat("0", int(d.power))
	if d.negative {
		digits = "-" + digits
	}
	return digits, true
}

// magnitude is one more than the power of ten of the first digit.
func (d Decimal) magnitude() int64 {
	if d.digits == "" {
		return 0
	}
	return int64(len(d.digits)) + d.power
}

// mostDigits limits the digits of decoded numbers, including those written with an exponent, because comparing and writing takes time for
// each digit.
const mostDigits = 1000

// number returns the same value, an integer, for 5, 5.0 and 5e0: a producer's spelling of an integer must not decide whether `x + 1` is
// well typed. It never rounds.
func number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	d, ok := DecimalOf(text)
	if !ok || d.magnitude() > mostDigits || d.magnitude() < -mostDigits {
		return nil, fmt.Errorf("the number %.40s is out of range: at most 1e%d is read, and at least 1e-%[2]d", text, mostDigits)
	}
	if digits, ok := d.whole(); ok {
		if i, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return i, nil
		}
		if u, err := strconv.ParseUint(digits, 10, 64); err == nil {
			return u, nil
		}
	}
	if err == nil && DecimalOfFloat(f) == d {
		return f, nil
	}
	if len(d.digits) > mostDigits {
		return nil, fmt.Errorf("number %.40s… has %d digits; at most %d are read", text, len(d.digits), mostDigits)
	}
	return json.Number(text), nil
}
