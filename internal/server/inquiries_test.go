package server

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// syncBuffer collects the log while a test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// asked submits a question and returns its inquiry.
func (h *house) asked(t *testing.T, question string) *api.Inquiry {
	t.Helper()
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "ask", Input: json.RawMessage(question)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := h.client.Inquiries(t.Context(), client.InquiryFilter{})
	if err != nil || len(all.Inquiries) == 0 || all.Inquiries[0].Execution != x.ID {
		t.Fatalf("inquiries: %v, %+v", err, all)
	}
	return &all.Inquiries[0]
}

// linked returns the path of a link to a question.
func (h *house) linked(t *testing.T, id, name string) string {
	t.Helper()
	l, err := h.client.LinkInquiry(t.Context(), id, api.Invitation{For: name})
	if err != nil {
		t.Fatal(err)
	}
	return l.Path
}

func TestInquiries(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	i := h.asked(t, `{"title":"Go?","expires":"1h","assignees":["ada","group:ops"],"exclude":["bob"],"form":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}}`)
	if i.State != api.InquiryOpen || i.Title != "Go?" || i.Due == nil || i.Workflow != "" || i.Purpose != "ask" {
		t.Errorf("%+v", i)
	}
	for _, f := range []client.InquiryFilter{{Assignee: "user:ada"}, {Assignee: "group:ops"}, {State: "all"}, {State: "open"}} {
		if all, err := c.Inquiries(ctx, f); err != nil || len(all.Inquiries) != 1 || all.Inquiries[0].ID != i.ID {
			t.Errorf("%+v: %v, %+v", f, err, all)
		}
	}
	for _, f := range []client.InquiryFilter{{Assignee: "bob"}, {State: "answered"}} {
		if all, err := c.Inquiries(ctx, f); err != nil || len(all.Inquiries) != 0 {
			t.Errorf("%+v: %v, %+v", f, err, all)
		}
	}
	if page := h.page(t); page["pawl_inquiries_open"] != "1" {
		t.Errorf("pawl_inquiries_open is %q", page["pawl_inquiries_open"])
	}
	answer := func(r api.Reply) *api.Problem {
		t.Helper()
		var p *api.Problem
		if _, err := c.Answer(ctx, i.ID, r); err != nil && !errors.As(err, &p) {
			t.Fatal(err)
		}
		return p
	}
	for _, k := range []struct {
		r      api.Reply
		status int
		kind   string
		path   string
	}{
		{api.Reply{By: "eve", Answer: json.RawMessage(`{"ok":true}`)}, 403, api.ProblemNotAsked, ""},
		{api.Reply{By: "bob", Groups: []string{"group:ops"}, Answer: json.RawMessage(`{"ok":true}`)}, 403, api.ProblemNotAsked, ""},
		{api.Reply{By: "ada", Answer: json.RawMessage(`{"ok":1}`)}, 422, api.ProblemInvalid, "answer.ok"},
		{api.Reply{By: "ada", Answer: json.RawMessage(`{}`)}, 422, api.ProblemInvalid, "answer"},
		{api.Reply{By: "a b", Answer: json.RawMessage(`{"ok":true}`)}, 422, api.ProblemInvalid, "by"},
		{api.Reply{By: "group:ops", Answer: json.RawMessage(`{"ok":true}`)}, 422, api.ProblemInvalid, "by"},
		{api.Reply{By: "ada", Groups: []string{"ops"}, Answer: json.RawMessage(`{"ok":true}`)}, 422, api.ProblemInvalid, "groups[0]"},
		{api.Reply{By: "carl", Groups: []string{"group:ops"}, Answer: json.RawMessage(`{"ok":true}`), Note: "fine"}, 0, "", ""},
		{api.Reply{By: "carl", Groups: []string{"group:ops"}, Answer: json.RawMessage(`{"ok": true}`)}, 0, "", ""},
		{api.Reply{By: "ada", Answer: json.RawMessage(`{"ok":true}`)}, 409, api.ProblemAnswered, ""},
	} {
		p := answer(k.r)
		switch {
		case p == nil && k.status == 0:
		case p == nil || p.Status != k.status || p.Type != k.kind || k.path != "" && p.Errors[0].Path != k.path:
			t.Errorf("%+v: %+v, want %d", k.r, p, k.status)
		}
	}
	got, err := c.Inquiry(ctx, i.ID)
	if err != nil || got.State != api.InquiryAnswered || got.Answer.By != "carl" || got.Answer.Note != "fine" || got.Answer.Via != "api" || got.ClosedAt == nil {
		t.Errorf("%v, %+v", err, got)
	}
	if p := answer(api.Reply{By: "ada", Answer: json.RawMessage(`{"ok":false}`)}); p == nil || !strings.Contains(p.Detail, "by carl at 2") {
		t.Errorf("%+v", p)
	}
	for range 4 {
		h.asked(t, `{"title":"?"}`)
	}
	seen := map[string]bool{}
	for k, err := range c.AllInquiries(ctx, client.InquiryFilter{State: "all", Limit: 2}) {
		if err != nil || seen[k.ID] {
			t.Fatalf("%v, %s twice", err, k.ID)
		}
		seen[k.ID] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d inquiries in pages, want 5", len(seen))
	}
	var p *api.Problem
	for _, id := range []string{"iq_x", "ex_00000000000000000000000000", "iq_00000000000000000000000000", "iq_06h07wz7x9se770hwf1bma1f3g"} {
		if _, err := c.Inquiry(ctx, id); !errors.As(err, &p) || p.Status != http.StatusNotFound {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := c.Answer(ctx, id, api.Reply{By: "ada", Answer: json.RawMessage(`1`)}); !errors.As(err, &p) || p.Status != http.StatusNotFound {
			t.Errorf("answer %s: %v", id, err)
		}
	}
	for _, query := range []string{"state=opne", "assignee=a%20b", "assignee=ada&state=answered", "cursor=x", "limit=0"} {
		if res, body := h.do(t, "GET", "/api/v1/inquiries?"+query, ""); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s %s", query, res.Status, body)
		}
	}
}

// A link shows the form as often as it is opened, and answers as one person; it needs no token.
func TestAnswerLinks(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef0123456789abcdef"
	var logged syncBuffer
	h := start(t, Options{Tokens: []string{token}, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	i := h.asked(t, `{"title":"<script>alert(1)</script>","text":"</p><img src=x onerror=alert(2)>","assignees":["ada"],"expires":"1h",
		"form":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"},"when":{"enum":["now","\"><b>late"],"default":"now"},"n":{"type":"integer","minimum":3,"maximum":9},"why":{"type":"string","title":"<i>Why</i>"}}}}`)
	var p *api.Problem
	if _, err := h.client.LinkInquiry(t.Context(), i.ID, api.Invitation{For: "bob"}); !errors.As(err, &p) || p.Status != http.StatusForbidden {
		t.Errorf("a link for another person: %v", err)
	}
	path := h.linked(t, i.ID, "ada")
	visit := func(method, path, body string, header ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(header); n += 2 {
			req.Header.Set(header[n], header[n+1])
		}
		res, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var b strings.Builder
		if _, err := io.Copy(&b, res.Body); err != nil {
			t.Fatal(err)
		}
		return res, b.String()
	}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	var page string
	for range 3 {
		for _, method := range []string{"HEAD", "GET"} {
			var res *http.Response
			res, page = visit(method, path, "")
			csp := res.Header.Get("Content-Security-Policy")
			if res.StatusCode != 200 || !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "script") {
				t.Fatalf("%s %s", res.Status, csp)
			}
		}
	}
	for _, want := range []string{"&lt;script&gt;", "&lt;img", "&lt;i&gt;Why", "Answer as ada", "Until 2", `step="1" min="3" max="9"`, `value="&#34;&gt;&lt;b&gt;late"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	for _, bad := range []string{"<script", "<img", "<i>", "<b>"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
	if now, err := h.client.Inquiry(t.Context(), i.ID); err != nil || now.State != api.InquiryOpen {
		t.Fatalf("looking at the link: %v %+v", err, now)
	}
	// f0 is ok; the others, by name, are n, when and why.
	filled := url.Values{"f0": {"yes"}, "f1": {"2"}, "f2": {`"><b>late`}, "f3": {""}, "note": {"<u>go</u>"}}
	if res, body := visit("POST", path, filled.Encode(), form...); res.StatusCode != 422 || !strings.Contains(body, "n: 2 is less than 3") || !strings.Contains(body, `value="2"`) {
		t.Errorf("a bad answer: %s\n%s", res.Status, body)
	}
	if res, _ := visit("POST", path, filled.Encode(), append(form, "Origin", "https://evil.example")...); res.StatusCode != 403 {
		t.Errorf("another site's form: %s", res.Status)
	}
	if res, _ := visit("POST", path, "{}", "Content-Type", "application/json"); res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a body that is not a form: %s", res.Status)
	}
	if res, _ := visit("POST", path, strings.Repeat("x", 2<<20), form...); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a large form: %s", res.Status)
	}
	filled.Set("f1", "3")
	for range 2 {
		if res, body := visit("POST", path, filled.Encode(), form...); res.StatusCode != 200 || !strings.Contains(body, "ada answered at") || strings.Contains(body, "<u>") || strings.Contains(body, "<form") {
			t.Errorf("the answer: %s\n%s", res.Status, body)
		}
	}
	filled.Set("f0", "no")
	if res, body := visit("POST", path, filled.Encode(), form...); res.StatusCode != 409 && res.StatusCode != 422 || !strings.Contains(body, "answered") {
		t.Errorf("another answer: %s\n%s", res.Status, body)
	}
	now, err := h.client.Inquiry(t.Context(), i.ID)
	if err != nil || now.Answer == nil || now.Answer.Via != "link" || now.Answer.By != "ada" || !strings.Contains(string(now.Answer.Value), `"n":3`) {
		t.Errorf("%v %+v", err, now)
	}
	mistyped := []byte(path)
	mistyped[len(answerPath)+3] ^= 1
	for _, bad := range []string{string(mistyped), answerPath + "x", path + "A", answerPath + strings.Repeat("A", 30_000)} {
		if res, _ := visit("GET", bad, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("%.40s: %s", bad, res.Status)
		}
	}
	if log := logged.String(); !strings.Contains(log, "request turned away") || strings.Contains(log, path[len(answerPath):]) {
		t.Errorf("the log names the link, or not the request that was turned away:\n%s", log)
	}
	if res, _ := visit("GET", "/api/v1/inquiries", ""); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the list without a token: %s", res.Status)
	}
}
