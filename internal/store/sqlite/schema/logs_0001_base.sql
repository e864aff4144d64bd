CREATE TABLE chunks (
  execution BLOB NOT NULL,
  attempt   INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  stream    TEXT NOT NULL,
  offset    INTEGER NOT NULL,
  at        INTEGER NOT NULL, -- microseconds since 1970 in UTC
  size      INTEGER NOT NULL,
  blob      TEXT,
  data      BLOB,
  PRIMARY KEY (execution, attempt, seq)
);
