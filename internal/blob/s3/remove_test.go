package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/s3"
	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// fill puts blobs, several concurrently.
func fill(t testing.TB, s *s3.Store, names []string) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < len(names); i += 16 {
				if _, err := s.Put(t.Context(), names[i], strings.NewReader(names[i])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

var contents = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)

// reversed reverses a list of keys.
func reversed(r *http.Request, body []byte) []byte {
	if !r.URL.Query().Has("list-type") {
		return body
	}
	all := contents.FindAll(slices.Clone(body), -1)
	i := len(all)
	return contents.ReplaceAllFunc(body, func([]byte) []byte {
		i--
		return all[i]
	})
}

// Many names are removed with everything below them, with few lists if they are adjacent, and nothing else is removed. If a service lists
// in another order, each name gets its own list.
func TestRemoveWalks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rewrite func(*http.Request, []byte) []byte
		least   int64 // lists
		most    int64
	}{
		"in order":         {nil, 2, 8},
		"in another order": {reversed, 20, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := s3test.URL(t)
			direct := open(t, place)
			var lists atomic.Int64
			s := open(t, through(t, place, &proxy{rewrite: c.rewrite, choose: func(r *http.Request) fault {
				if r.URL.Query().Has("list-type") {
					lists.Add(1)
				}
				return none
			}}))
			var all, gone, prefixes []string
			add := func(removed bool, names ...string) {
				all = append(all, names...)
				if removed {
					gone = append(gone, names...)
				}
			}
			for i := range 400 {
				id := fmt.Sprintf("files/ex_%03d", i)
				removed := i >= 20 && i < 360 && i%10 > 0
				if removed {
					prefixes = append(prefixes, id, strings.Replace(id, "files", "logs", 1))
				}
				if i%3 == 0 {
					add(removed, id, id+"/1/0", id+"/2/0/deep")
					add(false, id+"0/1", id+"-/1")
				}
			}
			for i := range 1200 { // more than one list of one name
				add(true, fmt.Sprintf("files/ex_111/many/%d", i))
			}
			prefixes = append(prefixes, "files/ex_111/many", "other", "files/zz")
			add(true, "other", "other/1", "files/zz/1")
			add(false, "files/a", "other0", "logs/zz")
			fill(t, direct, all)
			lists.Store(0)
			if err := s.Remove(t.Context(), prefixes...); err != nil {
				t.Fatal(err)
			}
			if n := lists.Load(); n < c.least || n > c.most {
				t.Errorf("%d lists for %d prefixes", n, len(prefixes))
			}
			removed := map[string]bool{}
			for _, name := range gone {
				removed[name] = true
			}
			for _, name := range all {
				got, err := get(direct, name, 0)
				if removed[name] != errors.Is(err, blob.ErrNotFound) || err == nil && !bytes.Equal(got, []byte(name)) {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
}

// Names far apart are listed one by one, because a list from one to the next would be long.
func TestRemoveApart(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	direct := open(t, place)
	var lists atomic.Int64
	s := open(t, through(t, place, &proxy{choose: func(r *http.Request) fault {
		if r.URL.Query().Has("list-type") {
			lists.Add(1)
		}
		return none
	}}))
	var all, prefixes []string
	for i := range 2400 {
		all = append(all, fmt.Sprintf("files/ex_%04d/1", i))
		if i%120 == 0 {
			prefixes = append(prefixes, fmt.Sprintf("files/ex_%04d", i))
		}
	}
	fill(t, direct, all)
	lists.Store(0)
	if err := s.Remove(t.Context(), prefixes...); err != nil {
		t.Fatal(err)
	}
	if n := lists.Load(); n > 1+int64(len(prefixes)) {
		t.Errorf("%d lists for %d prefixes", n, len(prefixes))
	}
	for i, name := range all {
		if _, err := get(direct, name, 0); errors.Is(err, blob.ErrNotFound) != (i%120 == 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
