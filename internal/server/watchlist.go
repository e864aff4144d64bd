package server

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// burstPages is how many pages of a list are read at most, until an item is found that was sent before.
const burstPages = 10

// watchList streams a list: at once the items of its first page, oldest first, and then each item that is new or changes while it is on
// that page. next reads the following page, latest item first; after restart it begins again. A stream cannot be resumed: a client that
// reconnects gets the first page again.
func watchList[T any](c *call, name string, key func(*T) string, restart func(), next func() ([]T, error)) error {
	changed, stop := c.Engine.WatchAll() // before the first read, so that no change is missed
	defer stop()
	sent := map[string][sha256.Size]byte{}
	look := func() (news []json.RawMessage, err error) {
		restart()
		seen := map[string][sha256.Size]byte{}
		for page, met := 0, len(sent) == 0; page == 0 || !met && page < burstPages; page++ {
			items, err := next()
			if err != nil {
				return nil, err
			}
			for i := range items {
				body, err := encode(&items[i])
				if err != nil {
					return nil, fmt.Errorf("encode %s: %w", name, err)
				}
				k, sum := key(&items[i]), sha256.Sum256(body)
				before, known := sent[k]
				if met = met || known; before != sum {
					news = append(news, body)
				}
				seen[k] = sum
			}
			if len(items) == 0 {
				break
			}
		}
		sent = seen
		slices.Reverse(news)
		return news, nil
	}
	news, err := look()
	if err != nil {
		return err // the status has not been sent
	}
	s, err := c.openStream(mediaEvents)
	for begun := time.Now(); err == nil; news, err = look() {
		for _, body := range news {
			if err = s.add(name, "", body); err != nil {
				break
			}
		}
		if err == nil {
			err = s.flush()
		}
		if err != nil || c.draining.Err() != nil || !c.pauseUntil(time.Now().Add(max(setPause, setPauseRatio*time.Since(begun)))) {
			break
		}
		if err = c.untilNews(s, changed); err != nil {
			break
		}
		begun = time.Now()
	}
	return c.ended(err)
}
