package judge0

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/server/compat"
)

// A submission with a callback_url has a second execution, of kind http, which sends the callback. Both have a concurrency key with limit
// 1. So the engine holds the second execution back until the first has ended, even if the server restarts. Its input has no body: a worker
// in the server, which serves CallbackQueue, adds the submission's JSON when it sends the request ([Callback]).
const (
	CallbackQueue = "judge0-callbacks"
	CallbackLabel = "judge0.callback" // label of the second execution: the token of the first

	callbackTries = 3
	callbackTime  = 5 * time.Second // time limit for the answer
	// callbackReading is the time limit of a try, which begins by reading the output.
	callbackReading  = 30 * time.Second
	callbackFileSize = 4096 // KiB, Judge0's largest max_file_size
)

// CallbackWorker returns the labels of the worker in the server. Another worker that served CallbackQueue would send no body.
func CallbackWorker() map[string]string { return map[string]string{"pawl": CallbackQueue} }

// submit submits the evaluation, and the callback if there is a callback_url. made has the ids of both, in the order in which they must be
// killed if the client gets no token: the callback first, because it would be sent once its submission had been killed.
func (s *wire) submit(ctx context.Context, sub *submission) (x *api.Execution, made []string, err error) {
	e := sub.Evaluation
	if sub.callback != "" {
		e.Concurrency = &api.Concurrency{Key: CallbackLabel + ":" + rand.Text(), Limit: 1}
	}
	if x, err = s.Submit(ctx, e); err != nil {
		return nil, nil, err
	}
	if sub.callback == "" {
		return x, []string{x.ID}, nil
	}
	input, err := json.Marshal(map[string]any{"method": "PUT", "url": sub.callback, "timeout": api.Duration(callbackTime)})
	if err != nil {
		return nil, nil, fmt.Errorf("write the request to callback_url: %w", err)
	}
	request, err := s.Pawl.Submit(ctx, api.Submission{
		Action: "http", Input: input, Queue: CallbackQueue, Labels: map[string]string{CallbackLabel: x.ID}, WorkerLabels: CallbackWorker(),
		Timeout: api.Duration(callbackReading), Retry: &api.Retry{MaxAttempts: callbackTries}, Concurrency: e.Concurrency, IdempotencyKey: rand.Text(),
	})
	if err != nil {
		s.Abandon(ctx, x.ID)
		return nil, nil, s.Failure(x.ID, err)
	}
	return x, []string{request.ID, x.ID}, nil
}

// Callback returns a function that returns the body of a callback: the default fields of the submission, always in base64.
func Callback(o compat.Options) func(ctx context.Context, token string) (json.RawMessage, error) {
	s := &wire{o.Shell(Name, nil), offered(o.Languages)}
	return func(ctx context.Context, token string) (json.RawMessage, error) {
		x, err := s.find(ctx, token)
		if err == nil && x == nil {
			err = fmt.Errorf("there is no submission %s any more", token)
		}
		if err == nil && !x.Status.Terminal() {
			x, err = s.Wait(ctx, token)
		}
		if err != nil {
			return nil, err
		}
		out, _, err := s.serialized(ctx, x, true, defaultFields)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}
