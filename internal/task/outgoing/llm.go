package outgoing

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/secret"
	"github.com/pawl-run/pawl/internal/task"
)

type LLMOptions struct {
	Egress *Egress
	// Keys are the worker's environment variables that tasks may use as their api_key_env: "NAME", or, to send the key to one server only,
	// "NAME@host" or "NAME@host:port". A key with a host is sent only over https or to a loopback address, to the given port or else the
	// default port of the scheme. A key without a host is sent to any server that a workflow names, also over http.
	Keys []string
}

// LLM asks a model through an OpenAI-compatible chat endpoint. The answer is written to the log as it arrives.
type LLM struct {
	LLMOptions
	keys secret.Grants
}

func NewLLM(o LLMOptions) (*LLM, error) {
	keys, err := secret.Parse(o.Keys)
	if err != nil {
		return nil, fmt.Errorf("new llm handler: %w", err)
	}
	return &LLM{LLMOptions: o, keys: keys}, nil
}

type completion struct {
	Text         string          `json:"text" doc:"Text of the answer"`
	JSON         json.RawMessage `json:"json,omitempty" doc:"Text parsed as JSON, if response_format was set and it parses"`
	Model        string          `json:"model" doc:"Model name that the server reported"`
	FinishReason string          `json:"finish_reason" doc:"Reason that the server reported, for example stop or length"`
	Usage        usage           `json:"usage" doc:"Token counts, as far as the server reports them"`
}

// usage counts tokens as reported by the server; zero if it reports none.
type usage struct {
	PromptTokens     int64 `json:"prompt_tokens" doc:"Tokens of the messages"`
	CompletionTokens int64 `json:"completion_tokens" doc:"Tokens of the answer"`
	TotalTokens      int64 `json:"total_tokens" doc:"Sum of both"`
}

const (
	chatTimeout   = 5 * time.Minute
	mostChatBytes = 10 << 20
)

func (l *LLM) Run(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	c, err := payload.LLM(t.Payload)
	if err != nil {
		return nil, task.Errorf(flow.CodeInvalidInput, "%s", err)
	}
	ctx, cancel := deadline(ctx, time.Duration(c.Timeout), t.Timeout, chatTimeout)
	defer cancel()
	req, err := l.request(ctx, c, t)
	if err != nil {
		return nil, err
	}
	client := *l.Egress.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key is sent to one server only
	res, err := client.Do(req)
	if err != nil {
		return nil, callError(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		body, _ := readAtMost(res.Body, 64<<10) // only the beginning of the body is needed; the status is the error
		return nil, statusError(res, body)
	}
	out := &completion{Model: c.Model}
	log := t.Log("log")
	body := &io.LimitedReader{R: res.Body, N: mostChatBytes}
	if media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err == nil && media == "application/json" {
		err = out.whole(body, log)
		if err != nil {
			return nil, callError(ctx, err)
		}
	} else if err := out.stream(body, log); err != nil {
		return nil, callError(ctx, err)
	}
	if c.ResponseFormat != nil && jsonValue([]byte(out.Text)) == nil {
		out.JSON = json.RawMessage(out.Text)
	}
	return json.Marshal(out)
}

func (l *LLM) request(ctx context.Context, c *payload.Chat, t *task.Task) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Model          string            `json:"model"`
		Messages       []payload.Message `json:"messages"`
		Temperature    *float64          `json:"temperature,omitempty"`
		TopP           *float64          `json:"top_p,omitempty"`
		MaxTokens      int               `json:"max_tokens,omitempty"`
		Stop           []string          `json:"stop,omitempty"`
		Seed           *int64            `json:"seed,omitempty"`
		ResponseFormat json.RawMessage   `json:"response_format,omitempty"`
		Stream         bool              `json:"stream"`
		StreamOptions  map[string]bool   `json:"stream_options"`
	}{c.Model, c.Messages, c.Temperature, c.TopP, c.MaxTokens, c.Stop, c.Seed, c.ResponseFormat, true, map[string]bool{"include_usage": true}})
	if err != nil {
		return nil, task.Errorf(flow.CodeInvalidInput, "write the request: %v", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, task.Invalid("base_url", c.BaseURL, err.Error(), `write "https://example.com/v1"`)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "pawl")
	req.Header.Set("Idempotency-Key", t.IdempotencyKey())
	if c.APIKeyEnv != "" {
		key, err := l.keys.For(c.APIKeyEnv, req.URL)
		if no, ok := errors.AsType[*secret.Error](err); ok {
			return nil, task.Invalid("api_key_env", c.APIKeyEnv, no.Message, no.Fix)
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// delta is a piece of a streamed answer, or the whole answer if the server does not stream.
type delta struct {
	Model   string `json:"model"`
	Choices []struct {
		Index        int                      `json:"index"`
		Delta        struct{ Content string } `json:"delta"`
		Message      struct{ Content string } `json:"message"`
		FinishReason string                   `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// stream reads server-sent events until the answer is complete.
func (out *completion) stream(r io.Reader, log io.Writer) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 16<<10), 4<<20)
	var answer strings.Builder
	defer func() { out.Text = answer.String() }()
	done := false
	for !done && lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // comments, event names, blank lines
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			done = true
			continue
		}
		var d delta
		if err := json.Unmarshal(data, &d); err != nil {
			return task.Errorf("invalid_response", "the stream holds something that is not JSON: %.100q", data)
		}
		if err := out.take(&d); err != nil {
			return err
		}
		for _, c := range d.Choices {
			if c.Index == 0 && c.Delta.Content != "" {
				answer.WriteString(c.Delta.Content)
				if _, err := io.WriteString(log, c.Delta.Content); err != nil {
					return err
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the stream: %w", err)
	}
	if !done && out.FinishReason == "" {
		return task.Errorf("stream_cut", "the stream ended after %d characters of the answer, before the server said that it was complete", answer.Len())
	}
	return nil
}

// whole reads an answer that is not streamed.
func (out *completion) whole(r io.Reader, log io.Writer) error {
	var d delta
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return task.Errorf("invalid_response", "the answer is not the JSON of a chat completion: %v", err)
	}
	if err := out.take(&d); err != nil {
		return err
	}
	if len(d.Choices) == 0 {
		return task.Errorf("invalid_response", "the answer holds no choice")
	}
	out.Text = d.Choices[0].Message.Content
	_, err := io.WriteString(log, out.Text)
	return err
}

// take records the fields of an answer other than its text.
func (out *completion) take(d *delta) error {
	if len(d.Error) > 0 && string(d.Error) != "null" {
		return task.Errorf("llm_error", "the server broke off: %.300s", d.Error)
	}
	if d.Model != "" {
		out.Model = d.Model
	}
	if d.Usage != nil {
		out.Usage = *d.Usage
	}
	for _, c := range d.Choices {
		if c.Index == 0 && c.FinishReason != "" {
			out.FinishReason = c.FinishReason
		}
	}
	return nil
}
