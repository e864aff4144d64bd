package store

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Upload is a content that was sent before the submissions that name it. Its bytes are a blob with its own name, so two uploads of the same
// bytes, one of which is being removed, share no blob.
type Upload struct {
	ID    flow.ID
	Sum   [sha256.Size]byte
	Size  int64
	Until time.Time // it is kept until then, and longer while an execution refers to it
}

// UploadReference keeps an upload for an execution.
type UploadReference struct {
	Execution, Upload flow.ID
}

// Uploads stores the records of uploads. The states of an upload are: begun, kept (ended), dropped, forgotten.
type Uploads interface {
	// BeginUpload records an upload that is being received, whose sum and size are not known yet. It is dropped if it has not ended at the
	// time until.
	BeginUpload(ctx context.Context, id flow.ID, until time.Time) error
	// EndUpload records that an upload has been received. If an upload with the same sum is already kept, that one is returned and kept at
	// least as long, and the new one is dropped. It returns ErrNotFound if the upload was dropped meanwhile.
	EndUpload(ctx context.Context, u Upload) (Upload, error)
	// KeepUpload keeps the upload with a sum at least until a time, and returns it, or ErrNotFound.
	KeepUpload(ctx context.Context, sum [sha256.Size]byte, until time.Time) (Upload, error)
	// LockUploads returns the kept uploads with these sums. They are not dropped before the transaction ends.
	LockUploads(ctx context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]flow.ID, error)
	// DropUploads examines up to n uploads whose time has passed. Those that an execution refers to are examined again at the given time; the
	// others are dropped, and cannot be referred to any more.
	DropUploads(ctx context.Context, now, again time.Time, n int) error
	// DroppedUploads returns up to n uploads that were dropped.
	DroppedUploads(ctx context.Context, n int) ([]flow.ID, error)
	// ForgetUploads deletes the records of dropped uploads. Other uploads stay.
	ForgetUploads(ctx context.Context, ids []flow.ID) error
}
