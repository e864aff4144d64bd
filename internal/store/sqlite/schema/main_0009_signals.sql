-- What was emitted, in the order of (at, n). "detail" and "data" are JSON. Of signals with a key there is one for each trigger.
CREATE TABLE signals (
  n       INTEGER PRIMARY KEY,
  id      BLOB NOT NULL CHECK (length(id) = 16),
  trigger TEXT NOT NULL CHECK (trigger <> ''),
  key     TEXT CHECK (key <> ''),
  subject TEXT CHECK (subject <> ''),
  source  TEXT NOT NULL CHECK (source <> ''),
  at      INTEGER NOT NULL,
  state   INTEGER NOT NULL CHECK (state IN (1, 2)), -- 1 new, 2 matched
  hash    BLOB NOT NULL CHECK (length(hash) = 32),
  detail  TEXT NOT NULL CHECK (json_valid(detail)),
  data    TEXT NOT NULL
);
CREATE UNIQUE INDEX signals_id ON signals (id);
CREATE UNIQUE INDEX signals_key ON signals (trigger, key) WHERE key IS NOT NULL;
CREATE INDEX signals_subject ON signals (trigger, subject, at, n) WHERE subject IS NOT NULL;
CREATE INDEX signals_trigger ON signals (trigger, at, n);
CREATE INDEX signals_at ON signals (at, n);
CREATE INDEX signals_new ON signals (at, n) WHERE state = 1;
