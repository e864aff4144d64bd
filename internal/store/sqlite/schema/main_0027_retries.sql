-- Which executions are retries of another one. The other may be gone: it is named by its id.
CREATE TABLE retries (
  original BLOB NOT NULL,
  n        INTEGER NOT NULL,
  PRIMARY KEY (original, n)
) WITHOUT ROWID;
