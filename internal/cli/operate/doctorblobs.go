package operate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/instance"
)

// maxSkew is the clock difference above which doctor warns. Services refuse requests with a clock that is off by 15 minutes.
const maxSkew = time.Minute

// checkBlobs tests the blob locations other than the database and the state directory.
func checkBlobs(ctx context.Context, a *app.App) []checkup {
	var all []checkup
	for _, place := range a.Config.List("blobs") {
		switch {
		case config.IsBucket(place):
			all = append(all, checkBucket(ctx, place))
		case place != config.InStore:
			all = append(all, checkBlobDir(place))
		}
	}
	return all
}

// checkBlobDir tries to write to the directory.
func checkBlobDir(dir string) checkup {
	c := checkup{What: "blobs", Needed: true, OK: true, Say: dir + " can be written; all servers of a database must share it"}
	s, err := file.Open(dir)
	if err == nil {
		_, err = s.Put(context.Background(), "doctor", strings.NewReader("ok"))
		err = errors.Join(err, s.Remove(context.Background(), "doctor"), s.Close())
	}
	if err != nil {
		c.OK, c.Say, c.Fix = false, err.Error(), "give a directory that this user can write, or set blobs to "+config.InStore
	}
	return c
}

// checkBucket tries every operation on blobs in a bucket.
func checkBucket(ctx context.Context, url string) checkup {
	c := checkup{What: "blobs", Needed: true, Fix: "docs/blobs.md has the parameters of the URL, and what the keys must be allowed"}
	s, err := instance.OpenBucket(ctx, url)
	if err != nil {
		c.Say = err.Error()
		return c
	}
	defer func() { _ = s.Close() }()
	begun := time.Now()
	if err := errors.Join(tryBlobs(ctx, s), s.Sweep(ctx)); err != nil {
		c.Say = err.Error()
		return c
	}
	c.OK, c.Fix = true, ""
	c.Say = fmt.Sprintf("%s: put, read, listed and removed a key in %s", config.Redacted(url), time.Since(begun).Round(time.Millisecond))
	skew := s.Skew().Round(time.Second)
	switch {
	case skew.Abs() >= maxSkew:
		c.OK, c.Needed = false, false
		c.Say += fmt.Sprintf("; this machine's clock differs by %s from the service's", skew.Abs())
		c.Fix = "set the clock, as by NTP: from 15 minutes on the service refuses every request"
	default:
		c.Say += "; the clocks agree within " + max(skew.Abs(), time.Second).String()
	}
	return c
}

// tryBlobs writes a test blob, reads it, and removes it; a store lists a blob before it removes it, so that permission is tested as well.
func tryBlobs(ctx context.Context, s blob.Store) error {
	name := "doctor/" + rand.Text()
	if _, err := s.Put(ctx, name+"/1", strings.NewReader(name)); err != nil {
		return err
	}
	r, err := s.Get(ctx, name+"/1", 0)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	if string(got) != name {
		return fmt.Errorf("what was put as %s/1 was read as %.40q", name, got)
	}
	if err := s.Remove(ctx, name); err != nil {
		return err
	}
	r, err = s.Get(ctx, name+"/1", 0)
	if err == nil {
		return errors.Join(fmt.Errorf("%s/1 is there after its removal", name), r.Close())
	}
	if !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	return nil
}
