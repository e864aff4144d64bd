package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// PauseQueue lets no worker take anything from a queue until it is resumed, or the order's time is over. What runs goes on, and
// submissions are accepted. When it returns no server hands out anything more of the queue.
func (c *Client) PauseQueue(ctx context.Context, name string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/queues/", name, "/pause", o)
}

// ResumeQueue lets workers take from a queue again, at once.
func (c *Client) ResumeQueue(ctx context.Context, name string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/queues/", name, "/resume", o)
}

// PauseWorker gives the workers of a name nothing more until they are resumed, or the order's time is over. What they run goes on.
func (c *Client) PauseWorker(ctx context.Context, name string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/workers/", name, "/pause", o)
}

// ResumeWorker gives the workers of a name work again, at once.
func (c *Client) ResumeWorker(ctx context.Context, name string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/workers/", name, "/resume", o)
}

// PauseAction lets no execution of an action, a workflow or a built-in kind begin, tasks of workflows included, until it is resumed, or the
// order's time is over. What runs goes on, and submissions are accepted.
func (c *Client) PauseAction(ctx context.Context, name string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/actions/", name, "/pause", o)
}

// ResumeAction lets executions of an action begin again, at once.
func (c *Client) ResumeAction(ctx context.Context, name string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/actions/", name, "/resume", o)
}

// PauseExecution lets a workflow, and those among its tasks, start no more tasks until it is resumed, or the order's time is over. Tasks
// that have begun go on, and so do those that wait in a queue.
func (c *Client) PauseExecution(ctx context.Context, id string, o api.PauseOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/executions/", id, "/pause", o)
}

// ResumeExecution lets a workflow, and those among its tasks, start tasks again, at once.
func (c *Client) ResumeExecution(ctx context.Context, id string, o api.ResumeOrder) (*api.Pause, error) {
	return c.changePause(ctx, "/executions/", id, "/resume", o)
}

func (c *Client) changePause(ctx context.Context, of, name, how string, body any) (*api.Pause, error) {
	return fetch[api.Pause](ctx, c, post(of+url.PathEscape(name)+how, body))
}

// Pauses lists what is paused now, by kind and name.
func (c *Client) Pauses(ctx context.Context) ([]api.Pause, error) {
	var l api.PauseList
	err := c.call(ctx, get("/pauses", nil), &l)
	return l.Pauses, err
}

// PauseHistory walks through what was paused and resumed, the latest first.
func (c *Client) PauseHistory(ctx context.Context) iter.Seq2[api.Pause, error] {
	return entries(ctx, c, "/pauses", url.Values{"history": {"true"}}, func(l *api.PauseList) ([]api.Pause, string) { return l.Pauses, l.NextCursor })
}
