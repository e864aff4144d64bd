package uploads_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/store"
)

// An upload with a wrong checksum stores nothing; a second upload of the same bytes is the first one.
func TestUploads(t *testing.T) {
	enginetest.OnEachStore(t, func(r *enginetest.Rig) {
		if _, _, err := r.Engine.Uploads().Put(r.Ctx, blob.Sum{1}, strings.NewReader("x")); !errors.Is(err, uploads.ErrWrongSum) {
			t.Errorf("bytes of another sum: %v", err)
		}
		if _, err := r.Engine.Uploads().Find(r.Ctx, blob.Sum{1}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("they are there: %v", err)
		}
		text := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		sum := sha256.Sum256(text)
		for again := range 2 {
			u, existed, err := r.Engine.Uploads().Put(r.Ctx, sum, bytes.NewReader(text))
			if err != nil || existed != (again == 1) || u.Size != int64(len(text)) {
				t.Errorf("%+v, %v, %v", u, existed, err)
			}
		}
		if _, err := r.Engine.Uploads().Drop(r.Ctx); err != nil {
			t.Fatal(err)
		}
		if u, err := r.Engine.Uploads().Find(r.Ctx, sum); err != nil || time.Until(u.Until) < uploads.Kept-time.Hour {
			t.Errorf("%+v, %v", u, err)
		}
	})
}
