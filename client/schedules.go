package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/pawl-run/pawl/api"
)

// Schedules lists the schedules, by name.
func (c *Client) Schedules(ctx context.Context) ([]api.Schedule, error) {
	return collect(entries(ctx, c, "/schedules", nil, func(p *api.SchedulePage) ([]api.Schedule, string) { return p.Schedules, p.NextCursor }))
}

// Schedule loads one schedule, with its document.
func (c *Client) Schedule(ctx context.Context, name string) (*api.Schedule, error) {
	return fetch[api.Schedule](ctx, c, get("/schedules/"+url.PathEscape(name), nil))
}

// Ticks lists up to limit ticks of a schedule, the latest first.
func (c *Client) Ticks(ctx context.Context, name string, limit int) ([]api.Tick, error) {
	q := url.Values{}
	setInt(q, "limit", int64(limit))
	var p api.TickPage
	err := c.call(ctx, get("/schedules/"+url.PathEscape(name)+"/ticks", q), &p)
	return p.Ticks, err
}

// PauseSchedule lets a schedule fire no more until it is resumed.
func (c *Client) PauseSchedule(ctx context.Context, name, reason string) (*api.Schedule, error) {
	return c.steerSchedule(ctx, name, "/pause", api.PauseRequest{Reason: reason})
}

// ResumeSchedule lets a schedule fire again. With catchUp, what has passed meanwhile goes by its policy of catching up; otherwise
// it is missed.
func (c *Client) ResumeSchedule(ctx context.Context, name string, catchUp bool) (*api.Schedule, error) {
	return c.steerSchedule(ctx, name, "/resume", api.ResumeRequest{CatchUp: catchUp})
}

func (c *Client) steerSchedule(ctx context.Context, name, how string, body any) (*api.Schedule, error) {
	return fetch[api.Schedule](ctx, c, post("/schedules/"+url.PathEscape(name)+how, body))
}

// FireSchedule starts an execution as a tick of now would, and returns its id. It is not repeated after a failure: each call
// starts one.
func (c *Client) FireSchedule(ctx context.Context, name string) (string, error) {
	var f api.FiredSchedule
	err := c.call(ctx, request{method: http.MethodPost, path: "/schedules/" + url.PathEscape(name) + "/fire"}, &f)
	return f.Execution, err
}

// WhySchedule asks how a schedule stands, what became of its last times, and what would let it go on.
func (c *Client) WhySchedule(ctx context.Context, name string) (*api.ScheduleWhy, error) {
	return fetch[api.ScheduleWhy](ctx, c, get("/schedules/"+url.PathEscape(name)+"/why", nil))
}

// Backfill starts executions for the first nominal times of a span, up to a bound; Next says from where the next call goes on. It may be
// repeated after a failure: a time that has had an execution has none again.
func (c *Client) Backfill(ctx context.Context, name string, b api.BackfillRequest) (*api.Backfilled, error) {
	return fetch[api.Backfilled](ctx, c, post("/schedules/"+url.PathEscape(name)+"/backfill", b))
}
