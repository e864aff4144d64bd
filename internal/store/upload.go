package store

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Upload is a content that was sent ahead of the submissions that name it. Its bytes are a blob with a name of its own:
// two uploads of the same bytes, one of which is being removed, share none.
type Upload struct {
	ID    flow.ID
	Sum   [sha256.Size]byte
	Size  int64
	Until time.Time // it is kept until then, and as long as an execution holds it
}

// Hold keeps an upload for an execution.
type Hold struct {
	Execution, Upload flow.ID
}

// Uploads keeps what is known of uploads. An upload is on its way, then there, then dropped, then forgotten.
type Uploads interface {
	// BeginUpload notes an upload that is on its way, of which the sum and the size are not known. It is dropped when it has
	// not arrived by then.
	BeginUpload(ctx context.Context, id flow.ID, until time.Time) error
	// EndUpload says that an upload has arrived. Where one of the same sum is there, that one is returned, is kept at least
	// as long, and the one that has arrived is dropped. One that was dropped meanwhile is ErrNotFound.
	EndUpload(ctx context.Context, u Upload) (Upload, error)
	// KeepUpload keeps the upload of a sum at least until a time, and returns it, or ErrNotFound.
	KeepUpload(ctx context.Context, sum [sha256.Size]byte, until time.Time) (Upload, error)
	// LockUploads returns the uploads of those sums that are there. They stay until the transaction ends.
	LockUploads(ctx context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]flow.ID, error)
	// DropUploads looks at up to n uploads whose time is over at now. What an execution holds is looked at again at the time
	// given; the others are dropped: nothing can name them any more.
	DropUploads(ctx context.Context, now, again time.Time, n int) error
	// DroppedUploads returns up to n uploads that were dropped.
	DroppedUploads(ctx context.Context, n int) ([]flow.ID, error)
	// ForgetUploads forgets uploads that were dropped. Others stay.
	ForgetUploads(ctx context.Context, ids []flow.ID) error
}
