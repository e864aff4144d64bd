package automate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/secret"
	"github.com/pawl-run/pawl/internal/signature"
)

func ListWebhooks(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	all, err := c.Webhooks(ctx)
	if err != nil {
		return nil, nil, err
	}
	t := output.Listing(l.Format, 5, "NAME", "PATH", "SCHEME", "TRIGGER", "STATE", "VERSION", "CREATED")
	for i := range all {
		w := &all[i]
		state := "on"
		switch {
		case w.Paused:
			state = "paused"
		case len(w.Missing) > 0:
			state = "lacks a secret: " + w.Missing[0]
		}
		t.Row(w.Name, w.Path, w.Scheme, w.Trigger, state, strconv.Itoa(w.Version), w.CreatedAt.UTC().Format(time.RFC3339))
	}
	return all, t, nil
}

// shownRefusals is how many refusals pawl describe lists.
const shownRefusals = 20

// DescribeWebhook shows a webhook and the latest requests that the server refused.
func DescribeWebhook(ctx context.Context, a *app.App, s *app.Session, name string, f output.Format) error {
	w, err := s.Webhook(ctx, name)
	return output.Show(a.Out, f, w, err, func() {
		t := &output.Table{}
		t.Fields("Name", w.Name, "Version", strconv.Itoa(w.Version), "Path", w.Path, "Scheme", w.Scheme, "Trigger", w.Trigger)
		if w.Paused {
			t.Row("Paused:", "its document says paused: true")
		}
		for _, m := range w.Missing {
			t.Row("Missing:", m)
		}
		t.Write(a.Out)
		if len(w.Refusals) == 0 {
			fmt.Fprintln(a.Out, "\nThe server has refused none of its requests.")
			return
		}
		fmt.Fprintln(a.Out, "\nRefused lately:")
		t = &output.Table{}
		for i := range w.Refusals[:min(len(w.Refusals), shownRefusals)] {
			r := &w.Refusals[i]
			t.Row("  "+r.At.UTC().Format(time.RFC3339), r.Reason, r.Remote, r.Message)
		}
		t.Write(a.Out)
	})
}

func HooksCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "hooks",
		Short: "Test webhooks",
		Long: `Webhooks turn requests of other services into signals. They are documents of kind webhook: pawl apply registers
them, pawl get webhooks lists them, pawl describe webhook:NAME shows refused requests.`,
	}
	c.AddCommand(hooksTest(a))
	return c
}

type hookTrial struct {
	hook, body, at, id string
	headers, query     []string
	sign               bool
	format             output.Format
}

type hookResult struct {
	Webhook string            `json:"webhook"`
	ID      string            `json:"id,omitempty"`
	Signed  bool              `json:"signed"` // the id
	At      time.Time         `json:"at"`
	Answer  string            `json:"answer,omitempty"` // instead of a signal
	Trigger string            `json:"trigger,omitempty"`
	Key     string            `json:"key,omitempty"`
	Subject string            `json:"subject,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Data    any               `json:"data,omitempty"`
	Sign    map[string]string `json:"sign,omitempty"` // headers added by --sign
}

func hooksTest(a *app.App) *cobra.Command {
	var q hookTrial
	c := &cobra.Command{
		Use:   "test FILE|NAME",
		Short: "Show which signal a webhook would make of a request, without sending it",
		Long: `Verify a request with a webhook from a file, or with a registered one, and print the signal that it would
become, or why it would be refused. Nothing is sent or stored. Secrets are read from the environment and files
of this command.

--sign signs the body with the first secret and prints the headers, to send a request with curl. With the
schemes token, bearer and basic these headers contain the secret itself.

Exit codes: 0 it would be accepted, 1 it would be refused, 2 wrong usage.`,
		Example: `  pawl hooks test github.yaml --body @push.json --header X-GitHub-Event=push --header X-Hub-Signature-256=sha256=…
  pawl hooks test github --body '{"zen": "x"}' --header X-GitHub-Event=ping --sign`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := webhookIn(cmd.Context(), a, args[0], q.hook)
			if err != nil {
				return err
			}
			r, err := tryHook(a, d, &q)
			if err != nil {
				return err
			}
			if q.format != output.AsTable {
				return output.WriteData(a.Out, q.format, r)
			}
			return writeHookResult(a, r)
		},
	}
	f := c.Flags()
	f.StringVar(&q.hook, "hook", "", "name of the webhook, if the file has several")
	f.StringVar(&q.body, "body", "", "body, or @FILE (@- for standard input)")
	f.StringArrayVar(&q.headers, "header", nil, "header, as NAME=VALUE or NAME: VALUE; may be repeated")
	f.StringArrayVar(&q.query, "query", nil, "URL parameter, as NAME=VALUE; may be repeated")
	f.StringVar(&q.at, "at", "",
		"arrival time of the request, for example 2026-11-02T10:00:00Z (default: now). Use the time of the recording "+
			"for a recorded request")
	f.BoolVar(&q.sign, "sign", false, "sign the body with the webhook's first secret, and print the headers")
	f.StringVar(&q.id, "id", "test-1", "request ID, for --sign")
	output.FormatFlag(c, &q.format, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// webhookIn is the webhook of a file, or the applied webhook of that name. name selects one of several; "": there is one.
func webhookIn(ctx context.Context, a *app.App, arg, name string) (*definition.Definition, error) {
	all, err := documentsIn(ctx, a, arg, definition.KindWebhook, func(ctx context.Context, s *app.Session) (json.RawMessage, error) {
		w, err := s.Webhook(ctx, arg)
		if err != nil {
			return nil, err
		}
		return w.Document, nil
	})
	all = slices.DeleteFunc(all, func(d *definition.Definition) bool { return name != "" && d.Name != name })
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0 && name != "":
		return nil, exit.Usagef("%s has no webhook %q", arg, name)
	case len(all) == 0:
		return nil, exit.Usagef("%s has no webhook (kind: webhook)", arg)
	case len(all) > 1:
		return nil, exit.Usagef("%s has %d webhooks: say which with --hook", arg, len(all))
	}
	return all[0], nil
}

// pairOf parses NAME=VALUE, or NAME: VALUE as in curl.
func pairOf(flag, text string) (name, value string, err error) {
	i := strings.IndexAny(text, "=:")
	if i < 1 {
		return "", "", exit.Usagef("--%s %q: write NAME=VALUE", flag, text)
	}
	return text[:i], strings.TrimSpace(text[i+1:]), nil
}

// tryHook verifies a request and evaluates its content.
func tryHook(a *app.App, d *definition.Definition, q *hookTrial) (*hookResult, error) {
	now := time.Now()
	if q.at != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, q.at); err != nil {
			return nil, exit.Usagef("--at %q: write a time as 2026-11-02T10:00:00Z", q.at)
		}
	}
	body, err := a.Given("--body", q.body) // unchanged: a signature covers every byte
	if err != nil {
		return nil, &exit.Error{Code: exit.Misuse, Err: err}
	}
	header, query := http.Header{}, url.Values{}
	for _, text := range q.headers {
		name, value, err := pairOf("header", text)
		if err != nil {
			return nil, err
		}
		header.Add(name, value)
	}
	for _, text := range q.query {
		name, value, err := pairOf("query", text)
		if err != nil {
			return nil, err
		}
		query.Add(name, value)
	}
	hook := d.Webhook
	secrets, err := readableSecrets(hook)
	if err != nil {
		return nil, err
	}
	r := &hookResult{Webhook: d.Name}
	if q.sign && len(secrets) > 0 {
		fields, err := signature.Sign(&hook.Verify, secrets[0], q.id, now, body)
		if err != nil {
			return nil, err
		}
		r.Sign = map[string]string{}
		for _, f := range fields {
			r.Sign[f.Name] = f.Value
			header.Set(f.Name, f.Value)
		}
	}
	if int64(len(body)) > hook.MaxBody {
		return nil, fmt.Errorf("refused (413): the body has %d bytes; the webhook takes %d (max_body)", len(body), hook.MaxBody)
	}
	delivery, err := signature.Verify(&hook.Verify, secrets, header, body, now)
	if no, ok := errors.AsType[*signature.Refusal](err); ok {
		return nil, fmt.Errorf("refused (401, %s): %s", no.Reason, no.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("refused (503): %w", err)
	}
	r.ID, r.Signed, r.At = delivery.ID, delivery.Signed, delivery.At.UTC()
	request, err := hook.Request(header, query, body)
	if err != nil {
		return nil, fmt.Errorf("refused (422): %w", err)
	}
	if text, ok := hook.Answer(request); ok {
		r.Answer = text
		return r, nil
	}
	s, err := hook.Signal(d.Name, request)
	if err != nil {
		return nil, fmt.Errorf("refused (422): %w", err)
	}
	r.Trigger, r.Key, r.Subject, r.Headers, r.Data = s.Trigger, s.Key, s.Subject, s.Headers, request.Body
	if r.Key == "" && delivery.ID != "" {
		r.Key = definition.DeliveryKey(d.Name, delivery.ID)
	}
	return r, nil
}

// readableSecrets reads the secrets of a webhook that are available to this command. Users may read their own environment and files.
func readableSecrets(w *definition.Webhook) (all []string, err error) {
	names := make([]string, len(w.Secrets))
	for i, name := range w.Secrets {
		names[i] = name + "@" + secret.Hooks
	}
	grants, err := secret.Parse(names)
	if err != nil {
		return nil, err
	}
	var missing []error
	for _, name := range w.Secrets {
		value, err := grants.Here(name)
		if err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", name, err))
			continue
		}
		all = append(all, value)
	}
	if len(all) == 0 && len(missing) > 0 {
		return nil, fmt.Errorf("no secret of the webhook can be read here: %w", errors.Join(missing...))
	}
	return all, nil
}

func writeHookResult(a *app.App, r *hookResult) error {
	for _, name := range slices.Sorted(maps.Keys(r.Sign)) {
		output.Printf(a.Out, "%s: %s\n", name, r.Sign[name])
	}
	t := &output.Table{}
	t.Row("Accepted by:", r.Webhook)
	t.Row("At:", r.At.Format(time.RFC3339))
	if r.ID != "" {
		signed := "not signed"
		if r.Signed {
			signed = "signed"
		}
		t.Row("ID:", r.ID+", "+signed)
	}
	t.Fields("Answer", r.Answer, "Trigger", r.Trigger, "Key", r.Key, "Subject", r.Subject)
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		t.Row("Header:", name+"="+r.Headers[name])
	}
	t.Write(a.Out)
	return nil
}
