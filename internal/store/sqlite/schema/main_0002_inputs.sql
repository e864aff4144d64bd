-- What interactive executions are given to read while they run: pieces, each at its offset.
CREATE TABLE inputs (
  n      INTEGER NOT NULL,
  start  INTEGER NOT NULL,
  number INTEGER NOT NULL, -- 1, 2, 3 …
  last   INTEGER NOT NULL, -- 1: nothing follows
  data   BLOB,
  PRIMARY KEY (n, start)
) WITHOUT ROWID;
