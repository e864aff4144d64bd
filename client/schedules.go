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

// Ticks lists up to limit ticks of a schedule, newest first.
func (c *Client) Ticks(ctx context.Context, name string, limit int) ([]api.Tick, error) {
	q := url.Values{}
	setInt(q, "limit", int64(limit))
	var p api.TickPage
	err := c.call(ctx, get("/schedules/"+url.PathEscape(name)+"/ticks", q), &p)
	return p.Ticks, err
}

// PauseSchedule stops a schedule until it is resumed.
func (c *Client) PauseSchedule(ctx context.Context, name, reason string) (*api.Schedule, error) {
	return c.steerSchedule(ctx, name, "/pause", api.PauseRequest{Reason: reason})
}

// ResumeSchedule starts a schedule again. With catchUp, the schedule's catch-up policy applies to the times that passed meanwhile;
// otherwise they are missed.
func (c *Client) ResumeSchedule(ctx context.Context, name string, catchUp bool) (*api.Schedule, error) {
	return c.steerSchedule(ctx, name, "/resume", api.ResumeRequest{CatchUp: catchUp})
}

func (c *Client) steerSchedule(ctx context.Context, name, how string, body any) (*api.Schedule, error) {
	return fetch[api.Schedule](ctx, c, post("/schedules/"+url.PathEscape(name)+how, body))
}

// FireSchedule starts an execution as a tick at the current time would, and returns its id. The client does not repeat it after a failure:
// each call starts an execution.
func (c *Client) FireSchedule(ctx context.Context, name string) (string, error) {
	var f api.FiredSchedule
	err := c.call(ctx, request{method: http.MethodPost, path: "/schedules/" + url.PathEscape(name) + "/fire"}, &f)
	return f.Execution, err
}

// WhySchedule returns the state of a schedule, the results of its last times, and what would let it continue.
func (c *Client) WhySchedule(ctx context.Context, name string) (*api.ScheduleWhy, error) {
	return fetch[api.ScheduleWhy](ctx, c, get("/schedules/"+url.PathEscape(name)+"/why", nil))
}

// Backfill starts executions for the first nominal times of a span, up to a bound; Next is the start of the next call's span. It may be
// repeated after a failure: a nominal time that has had an execution gets no second one.
func (c *Client) Backfill(ctx context.Context, name string, b api.BackfillRequest) (*api.Backfilled, error) {
	return fetch[api.Backfilled](ctx, c, post("/schedules/"+url.PathEscape(name)+"/backfill", b))
}
