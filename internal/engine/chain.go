package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/problem"
)

// The chain of rules that have led to an execution leaves Pawl in the header Pawl-Chain of the execution's requests, and comes back with a
// signal or a submission. In the header a rule is a tag, made with a key of this Pawl: receivers cannot read the rule's name from it, and
// senders cannot invent a tag. Another Pawl keeps it as the tag of a rule elsewhere, and forwards it.
const (
	// ChainHeader is the header's name.
	ChainHeader = "Pawl-Chain"
	// chainKeyName is the setting that holds the key of tags.
	chainKeyName = "chain_key"
	// chainMost is the longest incoming chain: no rule runs at the end of more than definition.MostDepth rules.
	chainMost = 64
	tagBytes  = 8
	// elsewhere marks, among the names of a chain, the tag of a rule of another Pawl, or of a rule that is not in force
	// any more. No rule has such a name.
	elsewhere = "elsewhere:"
)

// chains makes and recognises the tags of rules.
type chains struct {
	key  atomic.Pointer[[]byte]
	tags atomic.Pointer[taggedRules]
}

// taggedRules are the tags of the rules in force at a generation.
type taggedRules struct {
	set       *automation.Set
	nameByTag map[string]string
}

// loadKey loads the key of tags, once.
func (c *chains) loadKey(ctx context.Context, e *Engine) error {
	if c.key.Load() != nil {
		return nil
	}
	key, err := e.catalog.SharedKey(ctx, chainKeyName)
	if err == nil {
		c.key.Store(&key)
	}
	return err
}

func tagOf(key []byte, rule string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("pawl chain 1\n" + rule))
	return hex.EncodeToString(h.Sum(nil)[:tagBytes])
}

// header is the value of Pawl-Chain for a chain of rules; "" without rules. Tags of rules elsewhere need no key. Rules of this Pawl are
// left out until the key is loaded, which happens with the first rules.
func (c *chains) header(rules []string) string {
	key := c.key.Load()
	tags := make([]string, 0, len(rules))
	for _, rule := range rules {
		if tag, ok := strings.CutPrefix(rule, elsewhere); ok {
			tags = append(tags, tag)
		} else if key != nil {
			tags = append(tags, tagOf(*key, rule))
		}
	}
	return strings.Join(tags, ",")
}

// Chain reads the header Pawl-Chain of a request: the rules that have led to it, in order. An error is an *Invalid, or one of the store.
func (e *Engine) Chain(ctx context.Context, header string) ([]string, error) {
	if strings.TrimSpace(header) == "" {
		return nil, nil
	}
	refuse := func(message string) error {
		return fault.New(ChainHeader, problem.Clip(header, 60), message, "send the header as Pawl sent it, or leave it out")
	}
	tags := strings.Split(header, ",")
	if len(tags) > chainMost {
		return nil, refuse(fmt.Sprintf("it names %d rules, and no rule runs at the end of more than %d", len(tags), chainMost))
	}
	set, err := e.rulesInForce(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.rules.chains.loadKey(ctx, e); err != nil {
		return nil, err
	}
	known := e.rules.chains.known(set)
	rules := make([]string, len(tags))
	for i, tag := range tags {
		tag = strings.TrimSpace(tag)
		if raw, err := hex.DecodeString(tag); err != nil || len(raw) != tagBytes || tag != strings.ToLower(tag) {
			return nil, refuse(fmt.Sprintf("%q is not a tag of a rule", problem.Clip(tag, 40)))
		}
		if rules[i] = known[tag]; rules[i] == "" {
			rules[i] = elsewhere + tag
		}
	}
	return rules, nil
}

// known are the names of the rules in force, by tag.
func (c *chains) known(set *automation.Set) map[string]string {
	if t := c.tags.Load(); t != nil && t.set == set {
		return t.nameByTag
	}
	t := &taggedRules{set: set, nameByTag: make(map[string]string, len(set.Rules))}
	key := *c.key.Load()
	for _, r := range set.Rules {
		t.nameByTag[tagOf(key, r.Name)] = r.Name
	}
	c.tags.Store(t)
	return t.nameByTag
}
