-- Which executions run another one again. The other may be gone: it is named by its id.
CREATE TABLE reruns (
  original BLOB NOT NULL,
  n        INTEGER NOT NULL,
  PRIMARY KEY (original, n)
) WITHOUT ROWID;

-- What the items of a rerun that has not ended are to end with instead of running. "origin" ran to put the output out.
CREATE TABLE reuses (
  workflow INTEGER NOT NULL,
  task     TEXT NOT NULL,
  idx      INTEGER NOT NULL,
  origin   BLOB NOT NULL,
  hash     BLOB NOT NULL,
  output   BLOB,
  PRIMARY KEY (workflow, task, idx)
);
