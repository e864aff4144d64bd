-- Outcomes that are kept for executions with the same to do. The execution that ran may be gone: it is named by its id.
CREATE TABLE kept (
  hash    BLOB PRIMARY KEY,
  origin  BLOB NOT NULL,
  at      INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  output  BLOB
);
CREATE INDEX kept_expires ON kept (expires);
