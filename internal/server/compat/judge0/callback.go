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

// A submission with a callback_url has a second execution, of kind http, which sends the request. Both name a concurrency key that has room
// for one. So the engine holds the second one back until the first has ended, and a restart of the server changes nothing about that. Its
// input has no body: a worker in the server, which serves CallbackQueue, writes the submission's JSON when it sends the request
// ([Callback]).
const (
	CallbackQueue = "judge0-callbacks"
	CallbackLabel = "judge0.callback" // of the second execution: the token of the first

	callbackTries = 3
	callbackTime  = 5 * time.Second // for an answer
	// callbackReading is how long a try may take: the output is read before.
	callbackReading  = 30 * time.Second
	callbackFileSize = 4096 // KiB, Judge0's largest max_file_size
)

// CallbackWorker has the labels of the worker in the server. Another one that served CallbackQueue would send no body.
func CallbackWorker() map[string]string { return map[string]string{"pawl": CallbackQueue} }

// submit hands in a submission, and the request to its callback_url. made are the ids of both, in the order in which they are to be killed
// if the client gets no token: a request whose submission has been killed would be sent.
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

// Callback returns a function that writes the body of the request to a callback_url: the default fields of the submission, always in
// base64.
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
