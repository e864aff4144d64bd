package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Events returns at most limit events (0: the server's default) after the given number (0: from the start).
func (c *Client) Events(ctx context.Context, id string, after int64, limit int) (*api.EventPage, error) {
	q := url.Values{}
	setInt(q, "after", after)
	setInt(q, "limit", int64(limit))
	return fetch[api.EventPage](ctx, c, get(execution(id, "/events"), q))
}

// FollowEvents walks through the history after the given number, and waits for new events until the execution has ended. It resumes by
// itself when the connection breaks. An error ends the walk.
func (c *Client) FollowEvents(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	q := url.Values{}
	setInt(q, "after", after)
	return follow[api.Event](ctx, c, execution(id, "/events"), q, api.StreamEvent)
}

// LogQuery selects parts of an execution's logs. Zero fields select everything.
type LogQuery struct {
	Attempt int
	Stream  string // stdout, stderr or log
	After   string // NextCursor of the previous page, or "attempt.seq"
	Before  string // for a page: PrevCursor of the page after it, or "attempt.seq"
	Tail    int64  // start about this many bytes before the end, unless After is set
	Skip    bool   // for [Client.Follow]: skip ahead whenever the reader is more than Tail bytes behind
	Limit   int    // approximate number of bytes in a page
}

func (q LogQuery) query() url.Values {
	v := url.Values{}
	setInt(v, "attempt", int64(q.Attempt))
	set(v, "stream", q.Stream)
	set(v, "after", q.After)
	set(v, "before", q.Before)
	setInt(v, "tail", q.Tail)
	setInt(v, "limit", int64(q.Limit))
	return v
}

// Logs returns one page of the execution's logs.
func (c *Client) Logs(ctx context.Context, id string, q LogQuery) (*api.LogPage, error) {
	return fetch[api.LogPage](ctx, c, get(execution(id, "/logs"), q.query()))
}

// FollowLogs walks through the execution's logs as they are written, until it has ended. It resumes by itself when the connection breaks.
// An error ends the walk.
func (c *Client) FollowLogs(ctx context.Context, id string, q LogQuery) iter.Seq2[api.LogChunk, error] {
	return follow[api.LogChunk](ctx, c, execution(id, "/logs"), q.query(), api.StreamLog)
}

// LogSearch selects what to search for in an execution's logs.
type LogSearch struct {
	Text    string // text in the lines
	Regexp  bool   // Text is a regular expression in the syntax of package regexp
	Attempt int    // 0: all
	Stream  string // stdout, stderr or log; "": all
	After   string // NextCursor of the previous answer
	Limit   int    // lines in one answer; 0: 100
}

// LogSummary returns how much an execution has written, by attempt and stream: for one attempt, or for the latest 50 if attempt is 0.
func (c *Client) LogSummary(ctx context.Context, id string, attempt int) (*api.LogSummary, error) {
	q := url.Values{}
	setInt(q, "attempt", int64(attempt))
	return fetch[api.LogSummary](ctx, c, get(execution(id, "/logs/summary"), q))
}

// SearchLogs searches lines for about a second. If the answer has More, call again with its NextCursor.
func (c *Client) SearchLogs(ctx context.Context, id string, s LogSearch) (*api.LogMatches, error) {
	q := url.Values{"q": {s.Text}}
	setTrue(q, "regexp", s.Regexp)
	setInt(q, "attempt", int64(s.Attempt))
	set(q, "stream", s.Stream)
	set(q, "after", s.After)
	setInt(q, "limit", int64(s.Limit))
	return fetch[api.LogMatches](ctx, c, get(execution(id, "/logs/search"), q))
}

// AllMatches walks through all lines in the current logs that match s. An error ends the walk.
func (c *Client) AllMatches(ctx context.Context, id string, s LogSearch) iter.Seq2[api.LogMatch, error] {
	return walk(s.After, func(cursor string) ([]api.LogMatch, string, error) {
		s.After = cursor
		found, err := c.SearchLogs(ctx, id, s)
		if err != nil {
			return nil, "", err
		}
		if !found.More {
			found.NextCursor = ""
		}
		return found.Matches, found.NextCursor, nil
	})
}

// RawLog opens the bytes that one stream ("stdout", "stderr" or "log") of an attempt has so far, starting at an offset. Attempt 0 is the
// latest. The caller closes it.
func (c *Client) RawLog(ctx context.Context, id, stream string, attempt int, offset int64) (io.ReadCloser, error) {
	q := url.Values{"stream": {stream}}
	setInt(q, "attempt", int64(attempt))
	setInt(q, "offset", offset)
	res, err := c.open(ctx, request{method: http.MethodGet, path: execution(id, "/logs"), query: q, repeatable: true,
		header: http.Header{"Accept": {"text/plain"}}})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// FollowTasks walks through the states of a workflow's tasks until the workflow has ended: the current state first, then a state after
// every change (several changes close together give one). listed is as for [Client.Tasks]. An error ends the walk.
func (c *Client) FollowTasks(ctx context.Context, id string, listed int) iter.Seq2[api.Tasks, error] {
	q := url.Values{}
	items(q, listed)
	return follow[api.Tasks](ctx, c, execution(id, "/tasks"), q, api.StreamTasks)
}

// FollowQuery selects what [Client.Follow] follows.
type FollowQuery struct {
	Tasks, Events, Logs bool // parts to follow; default: all
	Items               int  // executions listed for each foreach task; 0 is the server's default, and a negative number lists none
	Written             LogQuery
}

// Message is one message about an execution. Exactly one field is set.
type Message struct {
	Event *api.Event
	Log   *api.LogChunk
	Gap   *api.LogGap // a part of the logs was left out here
	Tasks *api.Tasks  // the current state
}

// Follow walks through the history, the logs and the states of the tasks of an execution on one connection, until it has ended. It resumes
// by itself when the connection breaks. After, Before and Limit of f.Written have no effect here. An error ends the walk.
func (c *Client) Follow(ctx context.Context, id string, f FollowQuery) iter.Seq2[Message, error] {
	q := url.Values{}
	var of []string
	for part, wanted := range map[string]bool{"tasks": f.Tasks, "events": f.Events, "logs": f.Logs} {
		if wanted {
			of = append(of, part)
		}
	}
	slices.Sort(of)
	q.Set("of", strings.Join(of, ","))
	items(q, f.Items)
	setInt(q, "attempt", int64(f.Written.Attempt))
	set(q, "stream", f.Written.Stream)
	setInt(q, "tail", f.Written.Tail)
	setTrue(q, "skip", f.Written.Skip)
	var tasks api.Tasks
	read := func(m message) (v Message, known bool, err error) {
		switch m.name {
		case api.StreamEvent:
			return v, true, json.Unmarshal(m.data, into(&v.Event))
		case api.StreamLog:
			return v, true, json.Unmarshal(m.data, into(&v.Log))
		case api.StreamGap:
			return v, true, json.Unmarshal(m.data, into(&v.Gap))
		case api.StreamTasks:
			tasks = api.Tasks{}
			err = json.Unmarshal(m.data, &tasks)
		case api.StreamTaskChanges:
			var changes api.TaskChanges
			err = json.Unmarshal(m.data, &changes)
			tasks.Status, tasks.Attempt, tasks.Tasks = changes.Status, changes.Attempt, slices.Clone(tasks.Tasks)
			for _, change := range changes.Tasks {
				if change.Place >= 0 && change.Place < len(tasks.Tasks) {
					tasks.Tasks[change.Place] = change.Task
				}
			}
		default:
			return v, false, nil
		}
		now := tasks
		v.Tasks = &now
		return v, true, err
	}
	return followed(ctx, c, execution(id, "/stream"), q, read)
}

// into sets *at to a new value and returns it for decoding.
func into[T any](at **T) *T {
	*at = new(T)
	return *at
}

// errStreamEnded means that the server sent the end of the stream.
var errStreamEnded = errors.New("stream ended")

// follow reads the messages called name from a stream, and reconnects at the last position.
func follow[T any](ctx context.Context, c *Client, path string, query url.Values, name string) iter.Seq2[T, error] {
	return followed(ctx, c, path, query, func(m message) (v T, known bool, err error) {
		if m.name != name {
			return v, false, nil
		}
		return v, true, json.Unmarshal(m.data, &v)
	})
}

// followed reads the messages that read recognizes from a stream, and reconnects at the last position.
func followed[T any](ctx context.Context, c *Client, path string, query url.Values, read func(message) (v T, known bool, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		lastID, failures := "", 0
		heard := time.Now() // time of the last data from the server
		var since time.Time // time of the first failure
		for {
			err := c.stream(ctx, path, query, &lastID, &heard, func(m message) error {
				failures = 0
				if m.name == api.StreamEnd {
					return errStreamEnded
				}
				v, known, err := read(m)
				if err != nil {
					return fmt.Errorf("read a message of %s: %w", path, err)
				}
				if known && !yield(v, nil) {
					return errStreamEnded
				}
				return nil
			})
			if failures++; failures == 1 {
				since = time.Now()
			}
			next := pauseAfter(failures, retryAfter(err))
			switch {
			case errors.Is(err, errStreamEnded):
				return
			case ctx.Err() != nil:
				yield(none, context.Cause(ctx))
				return
			case !broken(err) || time.Since(heard)+next > c.patience:
				yield(none, err)
				return
			}
			c.onRetry(err, since, heard.Add(c.patience))
			if err := pause(ctx, next); err != nil {
				yield(none, err)
				return
			}
		}
	}
}

// broken reports whether the stream may be reopened.
func broken(err error) bool {
	if _, ok := errors.AsType[*api.Problem](err); ok {
		return worthRepeating(request{repeatable: true}, err)
	}
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	return !errors.As(err, &syntax) && !errors.As(err, &wrongType)
}

// message is one server-sent event.
type message struct {
	name string
	id   string
	data []byte
}

// stream opens the stream and passes its messages to each. It records the last id, and the time of the last message or sign of life. It
// returns the error of each, or why the stream broke off; the error is never nil.
func (c *Client) stream(ctx context.Context, path string, query url.Values, lastID *string, heard *time.Time, each func(message) error) error {
	h := http.Header{"Accept": {"text/event-stream"}}
	if *lastID != "" {
		h.Set("Last-Event-ID", *lastID)
	}
	res, err := c.once(ctx, request{method: http.MethodGet, path: path, query: query, header: h}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewReaderSize(res.Body, 32<<10)
	var m message
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("read the stream %s: %w", path, err)
		}
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "":
			if len(line) > 0 || m.data != nil {
				*heard = time.Now()
			}
			if len(line) > 0 || m.data == nil {
				m = message{}
				continue // a comment, or no message
			}
			if m.id != "" {
				*lastID = m.id // not earlier: a truncated message is requested again
			}
			if err := each(m); err != nil {
				return err
			}
			m = message{}
		case "event":
			m.name = string(value)
		case "id":
			m.id = string(value)
		case "data":
			if m.data != nil {
				m.data = append(m.data, '\n')
			}
			m.data = append(m.data, value...)
		}
	}
}

// AfterLog returns the cursor after a chunk, for LogQuery.After.
func AfterLog(chunk api.LogChunk) string {
	return strconv.Itoa(chunk.Attempt) + "." + strconv.FormatInt(chunk.Seq, 10)
}
