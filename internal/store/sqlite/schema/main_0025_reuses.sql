-- One tree instead of a table and its index: a rerun of 10,000 items writes, reads and deletes as many of these rows.
CREATE TABLE reuses_by_item (
  workflow INTEGER NOT NULL,
  task     TEXT NOT NULL,
  idx      INTEGER NOT NULL,
  origin   BLOB NOT NULL,
  hash     BLOB NOT NULL,
  output   BLOB,
  PRIMARY KEY (workflow, task, idx)
) WITHOUT ROWID;
INSERT INTO reuses_by_item SELECT workflow, task, idx, origin, hash, output FROM reuses;
DROP TABLE reuses;
ALTER TABLE reuses_by_item RENAME TO reuses;
