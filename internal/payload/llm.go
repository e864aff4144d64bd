package payload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Chat is the payload of kind "llm".
type Chat struct {
	BaseURL        string          `json:"base_url" check:"url"` // for example https://api.example.com/v1
	Model          string          `json:"model" check:"model"`
	Messages       []Message       `json:"messages,omitempty"`
	System         string          `json:"system,omitempty"` // shorthand for messages, like prompt
	Prompt         string          `json:"prompt,omitempty"`
	Temperature    *float64        `json:"temperature,omitempty"`
	TopP           *float64        `json:"top_p,omitempty"`
	MaxTokens      int             `json:"max_tokens,omitempty"`
	Stop           []string        `json:"stop,omitempty"`
	Seed           *int64          `json:"seed,omitempty"`
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
	APIKeyEnv      string          `json:"api_key_env,omitempty"` // name of the worker's environment variable; never the key itself
	Timeout        api.Duration    `json:"timeout,omitempty"`
}

// Message is one turn of a conversation.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string, or a list of parts for a message with images
}

// LLM reads the payload of kind "llm", and adds system and prompt to the messages. The error is a *strictjson.Error that lists all errors.
func LLM(payload []byte) (*Chat, error) {
	c, err := decode[Chat](payload)
	if err != nil {
		return nil, err
	}
	if c.System != "" {
		c.Messages = append(c.Messages, textMessage("system", c.System))
	}
	if c.Prompt != "" {
		c.Messages = append(c.Messages, textMessage("user", c.Prompt))
	}
	return &c, nil
}

func checkModel(r *strictjson.Reader, at string, v reflect.Value) {
	if v.String() == "" {
		r.ProblemAt(at, "", "it is missing", "name the model as the server does")
	}
}

func wholeChat(r *strictjson.Reader, c *Chat) {
	switch {
	case len(c.Messages) == 0 && c.Prompt == "":
		r.ProblemAt("messages", "", "there is nothing to ask", "give messages, or prompt")
	case len(c.Messages) > 0 && (c.Prompt != "" || c.System != ""):
		r.ProblemAt("messages", "", "they are given beside prompt or system", "give one or the other")
	}
	if c.MaxTokens < 0 {
		r.ProblemAt("max_tokens", strconv.Itoa(c.MaxTokens), "it is negative", "leave it out for the server's own limit")
	}
	for i, m := range c.Messages {
		if m.Role == "" {
			r.ProblemAt(fmt.Sprintf("messages[%d]", i), "", "it lacks a role", `write {"role": "user", "content": "…"}`)
		}
	}
}

func textMessage(role, s string) Message {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return Message{Role: role, Content: b}
}
