package s3

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob"
)

const (
	// lists is how many prefixes are listed concurrently, if each needs its own list.
	lists = 16
	// batch is how many keys one request removes or lists, which is the maximum of services.
	batch = 1000
)

// Remove implements blob.Store. A reader continues over its open connection.
func (s *Store) Remove(ctx context.Context, prefixes ...string) error {
	if err := blob.CheckName(prefixes...); err != nil {
		return fmt.Errorf("remove blobs: %w", err)
	}
	if len(prefixes) == 0 {
		return nil
	}
	if err := s.remove(ctx, prefixes); err != nil {
		return fmt.Errorf("remove blobs %s and %d more: %w", prefixes[0], len(prefixes)-1, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, prefixes []string) error {
	within, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	keys := make(chan string, batch)
	go func() {
		defer close(keys)
		if err := s.find(within, prefixes, keys); err != nil {
			fail(err)
		}
	}()
	var all []string
	for key := range keys {
		if all = append(all, key); len(all) == batch {
			if err := s.delete(within, all); err != nil {
				fail(err)
			}
			all = all[:0]
		}
	}
	if within.Err() == nil && len(all) > 0 {
		return s.delete(ctx, all)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Cause(within)
}

// find finds the keys of names and of the names below them. It does not check a name's own key, because removing a missing one is not an
// error.
func (s *Store) find(ctx context.Context, names []string, keys chan<- string) error {
	for _, name := range names {
		if err := give(ctx, keys, s.key(name)); err != nil {
			return err
		}
	}
	var apart []string
	for _, run := range runs(names) {
		left, err := s.walk(ctx, run, keys)
		if err != nil {
			return err
		}
		apart = append(apart, left...)
	}
	return s.listEach(ctx, apart, keys)
}

func give(ctx context.Context, keys chan<- string, key string) error {
	select {
	case keys <- key:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runs sorts names in the order of the keys below them, in groups by their part before the first "/". Names below other names are left out.
func runs(names []string) (all [][]string) {
	sorted := make([]string, len(names))
	for i, name := range names {
		sorted[i] = name + "/" // a- comes before a/b, and a after it
	}
	slices.Sort(sorted)
	last := ""
	for _, beneath := range sorted {
		if last != "" && strings.HasPrefix(beneath, last) {
			continue
		}
		if last == "" || top(last) != top(beneath) {
			all = append(all, nil)
		}
		n := len(all) - 1
		all[n], last = append(all[n], strings.TrimSuffix(beneath, "/")), beneath
	}
	return all
}

func top(name string) string {
	part, _, _ := strings.Cut(name, "/")
	return part
}

// walk finds the keys below sorted names by listing all keys from the first name on, as long as one list covers many names: names that
// retention removes are adjacent, and most of them have no blobs. It returns the names that it has not reached.
func (s *Store) walk(ctx context.Context, names []string, keys chan<- string) (left []string, err error) {
	beneath := func(name string) string { return s.at.Prefix + name + "/" }
	all := names
	for last := ""; len(names) > lists; {
		last = max(last, beneath(names[0]))
		opts := minio.ListObjectsOptions{Prefix: beneath(top(names[0])), StartAfter: last, Recursive: true, MaxKeys: batch}
		before, listed, found := len(names), 0, 0
		for o := range s.core.ListObjectsIter(ctx, s.at.Bucket, opts) {
			if o.Err != nil {
				return nil, s.fault(ctx, o.Err)
			}
			if o.Key <= last { // the service lists in another order, or from the beginning, so it is not certain that names were covered
				return all, nil
			}
			last = o.Key
			for len(names) > 0 && last > beneath(names[0]) && !strings.HasPrefix(last, beneath(names[0])) {
				names = names[1:]
			}
			if len(names) == 0 {
				return nil, nil
			}
			if strings.HasPrefix(last, beneath(names[0])) {
				found++
				if err := give(ctx, keys, last); err != nil {
					return nil, err
				}
			}
			if listed++; listed == batch {
				break
			}
		}
		switch {
		case listed < batch:
			return nil, ctx.Err()
		case before-len(names) < lists && found < batch/2:
			return names, nil
		}
	}
	return names, nil
}

// listEach finds the keys below names with one list for each.
func (s *Store) listEach(ctx context.Context, names []string, keys chan<- string) error {
	within, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, lists)
	for _, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := s.list(within, name, keys); err != nil {
				fail(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(within)
}

func (s *Store) list(ctx context.Context, name string, keys chan<- string) error {
	for o := range s.core.ListObjectsIter(ctx, s.at.Bucket, minio.ListObjectsOptions{Prefix: s.at.Prefix + name + "/", Recursive: true}) {
		if o.Err != nil {
			return s.fault(ctx, o.Err)
		}
		if err := give(ctx, keys, o.Key); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// delete removes objects with one request, or one by one if the service does not support that request.
func (s *Store) delete(ctx context.Context, keys []string) error {
	objects := make([]minio.ObjectInfo, len(keys))
	for i, key := range keys {
		objects[i].Key = key
	}
	results, err := s.core.RemoveObjectsWithIter(ctx, s.at.Bucket, slices.Values(objects), minio.RemoveObjectsOptions{})
	if err != nil {
		return s.fault(ctx, err)
	}
	for result := range results {
		if unsupported(result.Err) {
			return s.deleteEach(ctx, keys)
		}
		if err := s.fault(ctx, result.Err); err != nil && !errors.Is(err, blob.ErrNotFound) {
			return err
		}
	}
	return ctx.Err()
}

func (s *Store) deleteEach(ctx context.Context, keys []string) error {
	for _, key := range keys {
		err := s.core.RemoveObject(ctx, s.at.Bucket, key, minio.RemoveObjectOptions{})
		if err = s.fault(ctx, err); err != nil && !errors.Is(err, blob.ErrNotFound) {
			return err
		}
	}
	return nil
}
