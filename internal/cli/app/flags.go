package app

import (
	"errors"
	"fmt"
	"math"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/duration"
)

// FirstExample is the first line of a command's examples, without its remark.
func FirstExample(cmd *cobra.Command) string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	line, _, _ = strings.Cut(line, "   ")
	return line
}

// DurationVar adds a flag for a duration, in the usual form. The value of d is the default.
func DurationVar(flags *pflag.FlagSet, d *time.Duration, name, doc string) {
	flags.Var((*durationValue)(d), name, doc)
}

// Decimal makes a flag for a whole number read decimal digits: pflag reads Go literals, in which 010 is 8 and 1_0 is 10.
func Decimal(f *pflag.Flag) {
	if t := f.Value.Type(); t == "int" || t == "int64" {
		f.Value = decimalValue{f.Value}
	}
}

type decimalValue struct{ pflag.Value }

var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

func (v decimalValue) Set(s string) error {
	if !decimal.MatchString(s) {
		return fmt.Errorf("%.40q is not a whole number: write it in digits, without a 0 in front", s)
	}
	return v.Value.Set(s)
}

// Filled makes a flag for a text refuse the empty one. A script gives it when a variable is not set, and pawl cancel --action "$ACTION"
// --label team=ops would cancel the executions of all actions. A reason or note may be empty, and so may a setting: --compat "" turns off
// what PAWL_COMPAT turns on.
func Filled(f *pflag.Flag) {
	setting := slices.ContainsFunc(config.Settings, func(s config.Setting) bool { return s.Flag() == f.Name })
	if t := f.Value.Type(); (t == "string" || t == "stringSlice") && f.Name != "reason" && f.Name != "note" && !setting {
		f.Value = filledValue{f.Value}
	}
}

type filledValue struct{ pflag.Value }

func (v filledValue) Set(s string) error {
	if s == "" {
		return errors.New("it is empty: give a value, or leave the flag out")
	}
	return v.Value.Set(s)
}

// Number parses a number of digits, optionally with a point or an exponent. strconv would also read 0x1p4 as 16.
func Number(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !strings.ContainsAny(s, "_xX") && !math.IsInf(f, 0) && !math.IsNaN(f)
}

type durationValue time.Duration

func (v *durationValue) String() string { return time.Duration(*v).String() }
func (v *durationValue) Type() string   { return "duration" }

func (v *durationValue) Set(s string) error {
	d, err := duration.Parse(s)
	*v = durationValue(d)
	return err
}

// FillBy sets the author of an order to the user of this system, unless the flag names one.
func FillBy(by *string, flag string) error {
	if *by != "" {
		return nil
	}
	u, err := user.Current()
	if err != nil {
		return exit.Usagef("say who you are with %s: this system does not tell (%v)", flag, err)
	}
	*by = u.Username
	return nil
}

// Moment parses a time, or a time ago.
func Moment(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := duration.Parse(s); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, exit.Usagef("%s %q: write a time as 2026-11-02T10:00:00Z, or how long ago as 90m or 2d", flag, s)
	}
	return t, nil
}
