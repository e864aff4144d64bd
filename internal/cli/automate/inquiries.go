package automate

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/form"
)

// answering are the flags of `pawl answer`.
type answering struct {
	as          string
	groups      []string
	note        string
	data        string
	interactive bool
	link        string
	format      output.Format
}

func AnswerCommand(a *app.App) *cobra.Command {
	o := &answering{}
	c := &cobra.Command{
		Use:   "answer ID [FIELD=VALUE…]",
		Short: "Answer a question that an execution waits for",
		Long: `Answer a question that an execution of action ask waits for: give the fields of its form, or one value if it has
no form, or use -i to be asked field by field. --as names the person who answers (default: the current user);
Pawl has no accounts yet and trusts the caller. With --link the command instead creates a link with which one
person can answer in a browser, without a token.`,
		Example: `  pawl get inquiries --assignee group:release
  pawl answer iq_… approved=true window=tonight --note 'after the backup'
  pawl answer iq_… -i
  pawl answer iq_… --link ada`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, is := range []bool{len(args) > 1, o.data != "", o.interactive, o.link != ""} {
				if is {
					given++
				}
			}
			if given > 1 {
				return exit.Usagef("give one of FIELD=VALUE, --data, -i and --link")
			}
			if given == 0 {
				return exit.Usagef("no answer is given: give FIELD=VALUE, or -i to be asked, or --data '{}' to answer with each field's default")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if o.link != "" {
					return linkTo(ctx, a, s, args[0], o)
				}
				return answer(ctx, a, s, args[0], args[1:], o)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.as, "as", "", "who answers (default: the current user)")
	f.StringSliceVar(&o.groups, "group", nil, "group of this person, for example release")
	f.StringVar(&o.note, "note", "", "reason, kept for later readers")
	app.JSONVar(f, &o.data, "data", "d", "the whole answer as JSON, or @FILE (@- for standard input)")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "show the question and prompt for each field")
	f.StringVar(&o.link, "link", "", "create and print a link with which this person can answer")
	output.FormatFlag(c, &o.format, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func groupNames(names []string) (all []string) {
	for _, g := range names {
		all = append(all, "group:"+strings.TrimPrefix(g, "group:"))
	}
	return all
}

func linkTo(ctx context.Context, a *app.App, s *app.Session, id string, o *answering) error {
	l, err := s.LinkInquiry(ctx, id, api.Invitation{For: o.link, Groups: groupNames(o.groups)})
	return output.Show(a.Out, o.format, l, err, func() {
		server := a.Config.Text("server")
		if server == "" {
			a.Say("pawl: the link leads to a server on this state directory: put its address before the path")
		}
		fmt.Fprintln(a.Out, strings.TrimSuffix(server, "/")+l.Path)
	})
}

func answer(ctx context.Context, a *app.App, s *app.Session, id string, args []string, o *answering) error {
	r := api.Reply{By: o.as, Groups: groupNames(o.groups), Note: o.note}
	if err := app.FillBy(&r.By, "--as"); err != nil {
		return err
	}
	i, err := s.Inquiry(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case o.data != "":
		r.Answer, err = a.GivenJSON("--data", o.data)
	case o.interactive:
		r.Answer, err = askFields(a, i)
	default:
		r.Answer, err = answerOf(i, args)
	}
	if err != nil {
		return err
	}
	if i, err = s.Answer(ctx, id, r); err != nil {
		return err
	}
	if o.format != output.AsTable {
		return output.WriteData(a.Out, o.format, i)
	}
	say := "answered"
	if i.Answer.Declined {
		say = "declined"
	}
	output.Printf(a.Out, "%s is %s by %s: %s\n", i.ID, say, i.Answer.By, i.Answer.Value)
	return nil
}

// answerOf builds an answer from FIELD=VALUE, or from the single value of a question without fields.
func answerOf(i *api.Inquiry, args []string) (json.RawMessage, error) {
	fields := form.Fields(i.Form)
	whole := len(fields) == 1 && fields[0].Name == ""
	if whole && len(args) == 1 && !(fields[0].Kind == form.JSON && strings.Contains(args[0], "=") && !json.Valid([]byte(args[0]))) {
		v, err := valueOf(&fields[0], args[0])
		if err != nil {
			return nil, exit.Usagef("%s: %v", args[0], err)
		}
		return v, nil
	}
	answer := map[string]json.RawMessage{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		switch {
		case !ok:
			return nil, exit.Usagef("%q is not FIELD=VALUE", arg)
		case !utf8.ValidString(arg):
			return nil, exit.Usagef("%q: the text is not UTF-8: encode it as UTF-8", arg)
		}
		f := &form.Field{Name: name, Kind: form.JSON}
		for k := range fields {
			if fields[k].Name == name {
				f = &fields[k]
			}
		}
		v, err := valueOf(f, text)
		if err != nil {
			return nil, exit.Usagef("%s: %v", name, err)
		}
		if answer[name] != nil {
			return nil, exit.Usagef("%s is given twice: leave one of them out", name)
		}
		answer[name] = v
	}
	return json.Marshal(answer)
}

// valueOf is the value of a field from its text. Text that is not valid JSON is taken as a string where JSON is expected.
func valueOf(f *form.Field, text string) (json.RawMessage, error) {
	if f.Kind == form.JSON && !json.Valid([]byte(text)) {
		return json.Marshal(text)
	}
	v, err := f.Value(text)
	if v == nil && err == nil {
		err = errors.New("no value is given")
	}
	return v, err
}

// askFields shows a question and asks for each of its fields until the text is valid for it.
func askFields(a *app.App, i *api.Inquiry) (json.RawMessage, error) {
	a.Say("%s", i.Title)
	if i.Text != "" {
		a.Say("%s", i.Text)
	}
	in := bufio.NewReader(io.LimitReader(a.In, 1<<20))
	fields := form.Fields(i.Form)
	values := make([]json.RawMessage, len(fields))
	for n := range fields {
		f := &fields[n]
		for {
			fmt.Fprint(a.Err, promptOf(f))
			line, err := in.ReadString('\n')
			if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
				return nil, exit.Usagef("standard input ends before the question is answered: nothing was sent")
			}
			text := cmp.Or(strings.TrimRight(line, "\r\n"), f.Given)
			v, bad := f.Value(text)
			if bad == nil && v == nil && f.Required {
				bad = errors.New("this is needed")
			}
			if bad == nil {
				values[n] = v
				break
			}
			a.Say("  %v", bad)
			if err != nil {
				return nil, exit.Usagef("standard input ends before the question is answered: nothing was sent")
			}
		}
	}
	return form.Answer(fields, values)
}

func promptOf(f *form.Field) string {
	say := cmp.Or(f.Title, "Answer")
	switch f.Kind {
	case form.YesNo:
		say += " (yes or no)"
	case form.Choice:
		var all []string
		for _, o := range f.Choices {
			all = append(all, o.Text)
		}
		say += " (" + strings.Join(all, ", ") + ")"
	case form.JSON:
		say += " (JSON)"
	}
	if f.Given != "" {
		return say + " [" + f.Given + "]: "
	}
	if !f.Required {
		say += ", optional"
	}
	return say + ": "
}

func ListInquiries(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	all, err := listing.First(c.AllInquiries(ctx, client.InquiryFilter{State: l.State, Assignee: l.Assignee, Limit: min(l.Limit, 1000)}), l.Limit)
	if err != nil {
		return nil, nil, err
	}
	t := output.Listing(l.Format, 6, "ID", "STATE", "TITLE", "FOR", "ASKED", "DUE", "EXECUTION", "WORKFLOW", "PURPOSE", "ANSWER", "BY")
	for k := range all {
		i := &all[k]
		answer, by := "", ""
		if i.Answer != nil {
			answer, by = string(i.Answer.Value), i.Answer.By
		}
		t.Row(i.ID, i.State, i.Title, strings.Join(i.Assignees, ", "), output.Ago(i.AskedAt), output.When(i.Due),
			i.Execution, i.Workflow, i.Purpose, answer, by)
	}
	return all, t, nil
}

func DescribeInquiry(ctx context.Context, a *app.App, s *app.Session, id string, f output.Format) error {
	i, err := s.Inquiry(ctx, id)
	return output.Show(a.Out, f, i, err, func() {
		t := &output.Table{}
		t.Fields(
			"ID", i.ID, "State", i.State, "Title", i.Title, "Text", i.Text, "Purpose", i.Purpose, "Execution", i.Execution, "Workflow", i.Workflow,
			"For", strings.Join(i.Assignees, ", "), "Not for", strings.Join(i.Exclude, ", "),
			"Asked", i.AskedAt.UTC().Format(time.RFC3339), "Due", output.When(i.Due),
			"Default", string(i.Default), "Accepted if", i.Accept, "Closed", output.When(i.ClosedAt),
		)
		if n := i.Answer; n != nil {
			t.Fields("Answer", string(n.Value), "By", n.By, "Via", n.Via, "Note", n.Note)
		}
		t.Write(a.Out)
		if i.State != api.InquiryOpen {
			return
		}
		fmt.Fprintln(a.Out, "\nFields:")
		t = &output.Table{}
		for _, field := range form.Fields(i.Form) {
			t.Row("  "+strings.TrimSuffix(promptOf(&field), ": "), field.Name)
		}
		t.Write(a.Out)
	})
}
