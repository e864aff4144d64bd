package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// PauseQueue stops handing out executions of a queue until it is resumed or the pause's time is over. Running executions continue, and
// submissions are accepted. When it returns, no server hands out executions of the queue any more.
func (c *Client) PauseQueue(ctx context.Context, name string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/queues/", name, "/pause", o)
}

// ResumeQueue hands out executions of a queue again, at once.
func (c *Client) ResumeQueue(ctx context.Context, name string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/queues/", name, "/resume", o)
}

// PauseWorker gives the workers with a name no more executions until they are resumed or the pause's time is over. Their running executions
// continue.
func (c *Client) PauseWorker(ctx context.Context, name string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/workers/", name, "/pause", o)
}

// ResumeWorker gives the workers with a name executions again, at once.
func (c *Client) ResumeWorker(ctx context.Context, name string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/workers/", name, "/resume", o)
}

// PauseAction lets no execution of an action, a workflow or a built-in kind begin, including tasks of workflows, until it is resumed or the
// pause's time is over. Running executions continue, and submissions are accepted.
func (c *Client) PauseAction(ctx context.Context, name string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/actions/", name, "/pause", o)
}

// ResumeAction lets executions of an action begin again, at once.
func (c *Client) ResumeAction(ctx context.Context, name string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/actions/", name, "/resume", o)
}

// PauseExecution keeps a workflow and its sub-workflows from starting tasks until it is resumed or the pause's time is over. Tasks that
// have begun or wait in a queue continue.
func (c *Client) PauseExecution(ctx context.Context, id string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/executions/", id, "/pause", o)
}

// ResumeExecution lets a workflow and its sub-workflows start tasks again, at once.
func (c *Client) ResumeExecution(ctx context.Context, id string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/executions/", id, "/resume", o)
}

func (c *Client) changePause(ctx context.Context, of, name, how string, body any) (*api.Pause, error) {
	return fetch[api.Pause](ctx, c, post(of+url.PathEscape(name)+how, body))
}

// Pauses lists the current pauses, by kind and name.
func (c *Client) Pauses(ctx context.Context) ([]api.Pause, error) {
	var l api.PauseList
	err := c.call(ctx, get("/pauses", nil), &l)
	return l.Pauses, err
}

// PauseHistory walks through the pauses and resumes, newest first.
func (c *Client) PauseHistory(ctx context.Context) iter.Seq2[api.Pause, error] {
	return entries(ctx, c, "/pauses", url.Values{"history": {"true"}}, func(l *api.PauseList) ([]api.Pause, string) { return l.Pauses, l.NextCursor })
}
