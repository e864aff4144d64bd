package jsonvalue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Decimal is a number as it is written: digits × 10^power, of any size. 9007199254740993 and …992 are two of them, and one float64.
type Decimal struct {
	negative bool
	digits   string // without zeros at either end; "" is zero
	power    int64
}

// mostPower is far beyond every number that is computed with, and sums of two stay within an int64.
const mostPower = 1 << 40

// DecimalOf reads a number in JSON's grammar. It refuses exponents that no number has which anything computes with.
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

// DecimalOfFloat is the number that a float64 is written as: the shortest that reads as it.
func DecimalOfFloat(f float64) Decimal {
	d, _ := DecimalOf(strconv.FormatFloat(f, 'e', -1, 64))
	return d
}

// Compare returns -1, 0 or 1 for a number that is less than, equal to or more than o.
func (d Decimal) Compare(o Decimal) int {
	if n := cmp.Compare(d.sign(), o.sign()); n != 0 || d.sign() == 0 {
		return n
	}
	n := cmp.Or(cmp.Compare(int64(len(d.digits))+d.power, int64(len(o.digits))+o.power), cmp.Compare(d.digits, o.digits))
	return n * d.sign()
}

// Float is the float64 nearest to the number.
func (d Decimal) Float() float64 {
	text := cmp.Or(d.digits, "0") + "e" + strconv.FormatInt(d.power, 10)
	if d.negative {
		text = "-" + text
	}
	f, _ := strconv.ParseFloat(text, 64) // beyond its range it is infinite
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

// whole returns the digits of a whole number that may fit into 64 bits.
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

// magnitude is the power of ten of the first digit, and one more.
func (d Decimal) magnitude() int64 {
	if d.digits == "" {
		return 0
	}
	return int64(len(d.digits)) + d.power
}

// mostDigits bounds the digits of numbers that are decoded, also of those that are written with an exponent: comparing and writing them
// takes time for each.
const mostDigits = 1000

// number gives 5, 5.0 and 5e0 the same value, the integer: a producer's way of
// writing a whole number must not decide whether `x + 1` is well typed. It never rounds.
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
