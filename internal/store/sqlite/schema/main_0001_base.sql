-- Every execution has a number n, drawn in order of submission: integer keys are SQLite's cheapest. Rows other than those
-- of "live" are written once. Times are microseconds since 1970 in UTC, except those called "after", which count from the
-- execution's creation: they take one to four bytes instead of eight.

CREATE TABLE ids (
  id BLOB NOT NULL PRIMARY KEY,
  n  INTEGER NOT NULL
) WITHOUT ROWID;

-- What was asked for. "detail" is the request's other fields (codec.go).
CREATE TABLE executions (
  n          INTEGER PRIMARY KEY,
  id         BLOB NOT NULL,
  parent     INTEGER,
  created_at INTEGER NOT NULL,
  action     TEXT NOT NULL,
  detail     BLOB NOT NULL,
  input      BLOB,
  payload    BLOB
);

-- Where an execution stands that has not ended. The rows are few and small however many have ended.
CREATE TABLE live (
  n         INTEGER PRIMARY KEY,
  place     INTEGER NOT NULL,
  stage     INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  next_seq  INTEGER NOT NULL,
  priority  INTEGER NOT NULL,
  ticket    INTEGER NOT NULL,
  queue     TEXT NOT NULL,
  key       TEXT,
  owner     BLOB,
  ordered   INTEGER, -- 1 while an order to end it is outstanding
  wake      INTEGER,
  queued_at INTEGER,
  state     BLOB
);
CREATE INDEX live_ready ON live (queue, priority DESC, ticket) WHERE place = 3;
CREATE INDEX live_key ON live (key, place, priority DESC, ticket) WHERE key IS NOT NULL;
CREATE INDEX live_owner ON live (owner) WHERE owner IS NOT NULL;
CREATE INDEX live_wake ON live (wake) WHERE wake IS NOT NULL;

-- What an execution ended with.
CREATE TABLE ended (
  n              INTEGER PRIMARY KEY,
  stage          INTEGER NOT NULL,
  finished_after INTEGER NOT NULL,
  state          BLOB NOT NULL,
  error          BLOB,
  output         BLOB
);
CREATE INDEX ended_badly ON ended (stage) WHERE stage > 6;

-- The history: k is n * 4194304 + seq.
CREATE TABLE events (
  k       INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL,
  type    NOT NULL, -- a number (codec.go), or the name of a type that has none
  after   INTEGER NOT NULL,
  data    BLOB
);

-- Events that came ahead of a gap.
CREATE TABLE inbox (
  n     INTEGER NOT NULL,
  seq   INTEGER NOT NULL,
  event BLOB NOT NULL,
  PRIMARY KEY (n, seq)
) WITHOUT ROWID;

-- The rows of workflows. "ended" is the stage that the child ended in, and 2 while it has not: a value of the same width,
-- so that the row is overwritten where it lies.
CREATE TABLE children (
  workflow INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  task     TEXT NOT NULL,
  idx      INTEGER NOT NULL,
  n        INTEGER NOT NULL,
  ended    INTEGER NOT NULL,
  PRIMARY KEY (workflow, attempt, task, idx)
) WITHOUT ROWID;

CREATE TABLE marks (
  workflow INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  task     TEXT NOT NULL,
  state    TEXT NOT NULL,
  total    INTEGER NOT NULL,
  error    BLOB,
  PRIMARY KEY (workflow, attempt, task)
) WITHOUT ROWID;

CREATE TABLE labels (
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  n     INTEGER NOT NULL,
  PRIMARY KEY (name, value, n)
) WITHOUT ROWID;

CREATE TABLE idempotency (
  key  TEXT NOT NULL PRIMARY KEY,
  n    INTEGER NOT NULL,
  hash BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions (
  id         BLOB NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  embedded   INTEGER NOT NULL,
  queues     TEXT NOT NULL, -- JSON
  kinds      TEXT NOT NULL, -- JSON
  slots      INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE definitions (
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  hash       BLOB NOT NULL,
  document   BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (name, version)
);

-- How far execution numbers and tickets have been reserved.
CREATE TABLE counters (
  name TEXT NOT NULL PRIMARY KEY,
  next INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, next) VALUES ('execution', 1), ('ticket', 1);
