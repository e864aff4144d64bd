// Command localserver is the service and the model that examples/pipeline.yaml talks to: reviews to fetch, a place to post
// summaries to, and an OpenAI-compatible chat endpoint whose model answers with the first words of what it is told.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7480", "address to answer on; port 0 takes a free one")
	flag.Parse()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	s := &http.Server{Handler: routes(), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(s.Serve(l))
}

func routes() http.Handler {
	var stored atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /reviews", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"reviews": []map[string]string{
			{"text": "Catches firmly every time, and never slips back."},
			{"text": "Loud when it turns but holds what it promised."},
			{"text": "Arrived late, works well, would buy again."},
		}})
	})
	mux.HandleFunc("POST /summaries", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Summaries []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Summaries) == 0 {
			answer(w, http.StatusBadRequest, map[string]string{"error": "send {\"summaries\": [\"…\"]}"})
			return
		}
		answer(w, http.StatusCreated, map[string]any{"id": stored.Add(1), "kept": len(in.Summaries)})
	})
	mux.HandleFunc("POST /v1/chat/completions", chat)
	return mux
}

// chat streams an answer word by word, as models do.
func chat(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model    string
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		answer(w, http.StatusBadRequest, map[string]any{"error": map[string]string{"message": "no messages"}})
		return
	}
	asked := strings.Fields(in.Messages[len(in.Messages)-1].Content)
	words := asked[:min(len(asked), 5)]
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	send := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
		_ = flush.Flush() // a client that has gone shows itself at the next write
	}
	for i, word := range words {
		if i > 0 {
			word = " " + word
		}
		send(map[string]any{"model": in.Model, "choices": []any{map[string]any{"index": 0, "delta": map[string]string{"content": word}}}})
		time.Sleep(30 * time.Millisecond) // a model thinks
	}
	send(map[string]any{"model": in.Model, "choices": []any{map[string]any{"index": 0, "delta": map[string]string{}, "finish_reason": "stop"}}})
	send(map[string]any{"model": in.Model, "choices": []any{}, "usage": map[string]int{
		"prompt_tokens": len(asked), "completion_tokens": len(words), "total_tokens": len(asked) + len(words)}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone, or there is nothing to say about it
}
