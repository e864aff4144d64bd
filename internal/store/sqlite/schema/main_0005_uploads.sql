-- Contents that were sent ahead of the submissions that name them. The blob is named after "id". "sum" is NULL while the
-- content is on its way. It is kept until "until" and as long as a row of "holds" names it; what is dropped can be named by
-- nothing any more, and waits for its blob to be removed.
CREATE TABLE uploads (
  id      BLOB NOT NULL PRIMARY KEY,
  sum     BLOB,
  size    INTEGER NOT NULL,
  until   INTEGER NOT NULL,
  dropped INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX uploads_sum ON uploads (sum) WHERE sum IS NOT NULL AND dropped = 0;
CREATE INDEX uploads_until ON uploads (dropped, until);

CREATE TABLE holds (
  n      INTEGER NOT NULL,
  upload BLOB NOT NULL,
  PRIMARY KEY (n, upload)
) WITHOUT ROWID;
CREATE INDEX holds_upload ON holds (upload);
