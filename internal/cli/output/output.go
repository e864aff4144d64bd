// Package output prints the results of commands: tables, JSON, YAML, and the outputs of executions.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/strictjson"
	"github.com/pawl-run/pawl/internal/terminal"
	"github.com/pawl-run/pawl/internal/wirejson"
)

type Format string

const (
	AsTable Format = "table"
	AsWide  Format = "wide"
	AsJSON  Format = "json"
	AsYAML  Format = "yaml"
	AsName  Format = "name"
)

// FormatFlag adds -o with the formats given; the first is the default.
func FormatFlag(c *cobra.Command, f *Format, all ...Format) {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = string(v)
	}
	*f = all[0]
	c.Flags().VarP(&formatValue{f, names}, "output", "o", "one of "+strings.Join(names, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

type formatValue struct {
	to    *Format
	names []string
}

// String implements pflag.Value, together with Type and Set.
func (v *formatValue) String() string { return string(*v.to) }
func (v *formatValue) Type() string   { return "format" }

func (v *formatValue) Set(s string) error {
	if !slices.Contains(v.names, s) {
		return fmt.Errorf("one of %s is wanted", strings.Join(v.names, ", "))
	}
	*v.to = Format(s)
	return nil
}

// WriteData writes v as JSON or YAML. A nil list is written as an empty one.
func WriteData(w io.Writer, f Format, v any) error {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = reflect.MakeSlice(list.Type(), 0, 0).Interface()
	}
	var b bytes.Buffer
	if err := wirejson.AppendIndented(&b, v); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if f == AsYAML {
		return WriteYAML(w, b.Bytes())
	}
	_, err := w.Write(escaped(b.Bytes(), ""))
	return err
}

// Show writes v in a format for programs, or calls table, which writes it for people. It returns an error of the request unchanged.
func Show(w io.Writer, f Format, v any, err error, table func()) error {
	if err != nil {
		return err
	}
	if f != AsTable {
		return WriteData(w, f, v)
	}
	table()
	return nil
}

// Table writes columns of text for people. Text from programs is sanitized.
type Table struct {
	Rows    [][]string
	columns int // the number of columns that are shown; 0: all
}

func Titled(titles ...string) *Table {
	t := &Table{}
	t.Row(titles...)
	return t
}

// Listing is a table with titles that shows only the first columns, except with -o wide.
func Listing(f Format, columns int, titles ...string) *Table {
	if f == AsWide {
		columns = 0
	}
	t := &Table{columns: columns}
	t.Row(titles...)
	return t
}

func (t *Table) Row(cells ...string) {
	if t.columns > 0 {
		cells = cells[:t.columns]
	}
	for i, c := range cells {
		cells[i] = terminal.Clean(c)
	}
	t.Rows = append(t.Rows, cells)
}

// Fields adds a row for each name that has a value: name, value, name, value …
func (t *Table) Fields(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			t.Row(pair[0]+":", pair[1])
		}
	}
}

// Write aligns the columns. On a terminal lines are cut at its width.
func (t *Table) Write(w io.Writer) {
	width := terminal.Width(w, 0)
	var widths []int
	for _, r := range t.Rows {
		for i, c := range r {
			if i >= len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(c))
		}
	}
	for _, r := range t.Rows {
		var b strings.Builder
		for i, c := range r {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(c)))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if width > 0 {
			line = ansi.Truncate(line, width, "…")
		}
		fmt.Fprintln(w, line)
	}
}

// Ago writes how long ago t was, as lists show it.
func Ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := max(time.Since(t), 0)
	if d < 48*time.Hour {
		return terminal.Seconds(d) + " ago"
	}
	return fmt.Sprintf("%dd ago", d/(24*time.Hour))
}

// Took writes how long an execution ran, or has been running.
func Took(x *api.Execution) string {
	if x.StartedAt.IsZero() {
		return ""
	}
	end := x.FinishedAt
	if end.IsZero() {
		end = time.Now()
	}
	return terminal.Seconds(max(end.Sub(x.StartedAt), 0))
}

// Bytes writes a number of bytes for people, as in 2.9 MiB.
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, exp := float64(n), -1
	for f >= unit && exp < 4 {
		f /= unit
		exp++
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[exp])
}

// WriteResult writes the output of an execution: a string as it is, anything else as JSON. On a terminal, the members of an
// object that contains texts of several lines are written one by one, because such texts are hard to read in JSON.
func WriteResult(w io.Writer, raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return writeText(w, text)
	}
	width := terminal.Width(w, prettyWidth)
	members, err := orderedMembers(raw)
	if err != nil || !terminal.IsTerminal(w) || !slices.ContainsFunc(members, isPage) {
		return writeText(w, prettyJSON(raw, width))
	}
	return writeMembers(w, members, width)
}

// writeMembers writes the members of an object, strings unquoted.
func writeMembers(w io.Writer, members []jsonMember, width int) error {
	var text string
	for i, m := range members {
		if i > 0 {
			fmt.Fprintln(w)
		}
		body := prettyJSON(m.value, width)
		if json.Unmarshal(m.value, &text) == nil {
			body = text
		}
		separator := " "
		if strings.Contains(body, "\n") {
			separator = "\n"
		}
		fmt.Fprintf(w, "%s:%s", terminal.Clean(m.name), separator)
		if err := writeText(w, body); err != nil {
			return err
		}
	}
	return nil
}

// isPage reports whether a member is text of several lines.
func isPage(m jsonMember) bool {
	var text string
	return json.Unmarshal(m.value, &text) == nil && strings.Contains(text, "\n")
}

// prettyWidth is the longest line of JSON if there is no terminal.
const prettyWidth = 160

// prettyJSON breaks up lists and objects that do not fit on a line.
func prettyJSON(raw []byte, width int) string {
	var b bytes.Buffer
	appendPretty(&b, raw, "", width)
	return b.String()
}

func appendPretty(b *bytes.Buffer, raw []byte, indent string, width int) {
	line, err := jsontext.AppendFormat(nil, raw, jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true),
		jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		b.Write(raw) // it cannot be indented: written unchanged
		return
	}
	var members []jsonMember
	open, end := "{", "}"
	switch jsontext.Value(raw).Kind() {
	case '{':
		members, err = orderedMembers(raw)
	case '[':
		open, end = "[", "]"
		err = strictjson.Elements(raw, func(_ int, item []byte) error {
			members = append(members, jsonMember{value: item})
			return nil
		})
	}
	if len(indent)+len(line) <= width || len(members) == 0 || err != nil {
		b.Write(line) // it fits, or is a long string or number
		return
	}
	b.WriteString(open)
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent + "  ")
		if open == "{" {
			name, _ := json.Marshal(m.name) // a string always has a JSON form
			b.Write(name)
			b.WriteString(": ")
		}
		appendPretty(b, m.value, indent+"  ", width)
	}
	b.WriteString("\n" + indent + end)
}

func writeText(w io.Writer, text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if terminal.IsTerminal(w) {
		text = CleanLines(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

type jsonMember struct {
	name  string
	value json.RawMessage
}

// orderedMembers lists the members of an object in their order; the error means that raw is not an object.
func orderedMembers(raw []byte) (all []jsonMember, err error) {
	err = strictjson.Members(raw, func(name string, value []byte) error {
		all = append(all, jsonMember{name, value})
		return nil
	})
	return all, err
}

// WriteLine writes v as one line of JSON.
func WriteLine(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := wirejson.Append(&b, v); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err := w.Write(append(escaped(b.Bytes(), ""), '\n'))
	return err
}

// Plural writes a number with its noun, in the singular or plural.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
