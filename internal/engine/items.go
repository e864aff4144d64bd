package engine

import (
	"sync"

	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// itemCache keeps the evaluated foreach lists of workflows under way, so that a list is not evaluated again for every few
// children. It is a hint: what is lost is evaluated again.
type itemCache struct {
	mu    sync.Mutex
	lists map[store.WorkflowAttempt]*itemLists
}

// itemLists are the lists of one workflow.
type itemLists struct {
	sync.Mutex
	items orchestration.Items
}

// itemCacheLimit is how many workflows' lists are kept; beyond it the cache starts anew.
const itemCacheLimit = 1000

func newItemCache() *itemCache {
	return &itemCache{lists: map[store.WorkflowAttempt]*itemLists{}}
}

func (c *itemCache) of(a store.WorkflowAttempt) *itemLists {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.lists[a]
	if list == nil {
		if len(c.lists) >= itemCacheLimit {
			clear(c.lists)
		}
		list = &itemLists{items: orchestration.Items{}}
		c.lists[a] = list
	}
	return list
}

func (c *itemCache) drop(a store.WorkflowAttempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lists, a)
}
