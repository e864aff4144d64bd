-- The schema of version 1. A later change is a file of its own, main_0002_*.sql: this file is never edited once it is released, as a database
-- is refused whose migrations are not those of the program.
--
-- Every execution has a number n, drawn in order of submission: integer keys are SQLite's cheapest. Rows other than those
-- of "live" are written once. Times are microseconds since 1970 in UTC, except those called "after", which count from the
-- execution's creation: they take one to four bytes instead of eight.

-- Executions.

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

-- Where an execution stands that has not ended. The rows are few and small however many have ended. What is put aside leaves its queue in
-- stage 3, and where it finds its key full when it is tried again, it waits in the key's line in that stage.
CREATE TABLE live (
  n         INTEGER PRIMARY KEY,
  place     INTEGER NOT NULL, -- 0 placed nowhere, 1 delayed, 2 in its key's line, 3 in its queue, 4 held
  stage     INTEGER NOT NULL, -- counted as in docs/states.md
  attempt   INTEGER NOT NULL,
  next_seq  INTEGER NOT NULL,
  priority  INTEGER NOT NULL,
  ticket    INTEGER NOT NULL,
  queue     TEXT NOT NULL,
  key       TEXT,
  owner     BLOB,
  cancel_requested INTEGER, -- 1 while an order to end it is outstanding
  wake      INTEGER,
  queued_at INTEGER,
  state     BLOB,
  CONSTRAINT live_place CHECK (CASE place WHEN 0 THEN stage IN (1, 2) WHEN 1 THEN stage IN (1, 3) WHEN 2 THEN stage IN (1, 2, 3)
    WHEN 3 THEN stage = 3 WHEN 4 THEN stage IN (4, 5) ELSE false END),
  CONSTRAINT live_owner CHECK (owner IS NULL OR place = 4 AND length(owner) = 16),
  CONSTRAINT live_numbers CHECK (attempt > 0 AND next_seq > 1)
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
  output         BLOB,
  queue          TEXT,
  CONSTRAINT ended_stage CHECK (stage BETWEEN 6 AND 9)
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

-- "number" is the order in which a reader of the outcomes of a label has been given them. It is drawn when the outcome is first read, so a
-- label that is never followed costs nothing. Numbers of one label grow in the order of their commits.
CREATE TABLE labels (
  name   TEXT NOT NULL,
  value  TEXT NOT NULL,
  n      INTEGER NOT NULL,
  number INTEGER,
  PRIMARY KEY (name, value, n)
) WITHOUT ROWID;
CREATE INDEX labels_number ON labels (name, value, number) WHERE number IS NOT NULL;

CREATE TABLE idempotency (
  key  TEXT NOT NULL PRIMARY KEY,
  n    INTEGER NOT NULL,
  hash BLOB NOT NULL
) WITHOUT ROWID;

-- How far the rates of keys are used up: "tat" is when a key would be idle if all that has begun had come evenly spaced. A row whose tat has
-- passed says what no row says.
CREATE TABLE meters (
  key TEXT NOT NULL PRIMARY KEY CHECK (key <> ''),
  tat INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX meters_tat ON meters (tat);

-- How far turns in the lines of concurrency keys have come that are shared fairly: "tag" of each who is what the next one goes by, and of
-- the row with clock = 1 how far the line is. Turns are taken within a priority.
CREATE TABLE shares (
  key      TEXT NOT NULL,
  priority INTEGER NOT NULL,
  clock    INTEGER NOT NULL CHECK (clock IN (0, 1)), -- 1: the line's clock
  who      TEXT NOT NULL,
  tag      INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (key, priority, clock, who)
) WITHOUT ROWID;
CREATE INDEX shares_at ON shares (at);

-- How far execution numbers and tickets have been reserved.
CREATE TABLE counters (
  name TEXT NOT NULL PRIMARY KEY,
  next INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, next) VALUES ('execution', 1), ('ticket', 1), ('outcome', 1);

-- Workflows.

-- "ended" is the stage that the child ended in, and 2 while it has not: a value of the same width,
-- so that the row is overwritten where it lies.
CREATE TABLE children (
  workflow INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  task     TEXT NOT NULL,
  idx      INTEGER NOT NULL,
  n        INTEGER NOT NULL,
  ended    INTEGER NOT NULL,
  PRIMARY KEY (workflow, attempt, task, idx),
  CONSTRAINT children_ended CHECK (ended = 2 OR ended BETWEEN 6 AND 9),
  CONSTRAINT children_numbers CHECK (attempt > 0 AND idx >= 0)
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

-- What each transaction made of the state of a workflow with many children: with the number of the last change that it knows, an
-- engine learns how far the workflow is without counting its children. "number" counts 1, 2, 3 … within an attempt. "change"
-- is package orchestration's.
CREATE TABLE changes (
  workflow INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  change   BLOB NOT NULL,
  PRIMARY KEY (workflow, attempt, number)
) WITHOUT ROWID;

-- Which executions run another one again. The other may be gone: it is named by its id.
CREATE TABLE reruns (
  original BLOB NOT NULL,
  n        INTEGER NOT NULL,
  PRIMARY KEY (original, n)
) WITHOUT ROWID;

-- What the items of a rerun that has not ended are to end with instead of running. "origin" ran to put the output out.
-- One tree instead of a table and its index: a rerun of 10,000 items writes, reads and deletes as many of these rows.
CREATE TABLE reuses (
  workflow INTEGER NOT NULL,
  task     TEXT NOT NULL,
  idx      INTEGER NOT NULL,
  origin   BLOB NOT NULL,
  hash     BLOB NOT NULL,
  output   BLOB,
  PRIMARY KEY (workflow, task, idx)
) WITHOUT ROWID;

-- Which executions are retries of another one. The other may be gone: it is named by its id.
CREATE TABLE retries (
  original BLOB NOT NULL,
  n        INTEGER NOT NULL,
  PRIMARY KEY (original, n)
) WITHOUT ROWID;

-- Outcomes that are kept for executions with the same to do. The execution that ran may be gone: it is named by its id.
CREATE TABLE kept (
  hash    BLOB PRIMARY KEY,
  origin  BLOB NOT NULL,
  at      INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  output  BLOB,
  CONSTRAINT kept_hash CHECK (length(hash) = 32)
);
CREATE INDEX kept_expires ON kept (expires);

-- Workers, and what executions read.

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

-- What interactive executions are given to read while they run: pieces, each at its offset.
CREATE TABLE inputs (
  n      INTEGER NOT NULL,
  start  INTEGER NOT NULL,
  number INTEGER NOT NULL, -- 1, 2, 3 …
  last   INTEGER NOT NULL, -- 1: nothing follows
  data   BLOB,
  PRIMARY KEY (n, start)
) WITHOUT ROWID;

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

-- What is registered, and what operators say.

CREATE TABLE definitions (
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  hash       BLOB NOT NULL,
  document   BLOB NOT NULL,
  defined_at INTEGER NOT NULL,
  PRIMARY KEY (name, version)
);

-- Queues, routing keys (lanes) and languages that the server knows of, and its settings.
CREATE TABLE queues (
  name       TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE lanes (
  name       TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE languages (
  name       TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE settings (
  name  TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL -- JSON
) WITHOUT ROWID;

-- Who has paused or resumed what, when and why: "kind" is 1 a queue, 2 a worker, 3 an action. Rows are only added; the latest of a subject
-- counts. A pause ends by itself at "until"; 0: when it is resumed.
CREATE TABLE pauses (
  generation INTEGER PRIMARY KEY CHECK (generation > 0),
  kind       INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
  name       TEXT NOT NULL CHECK (name <> ''),
  paused     INTEGER NOT NULL CHECK (paused IN (0, 1)),
  at         INTEGER NOT NULL,
  until      INTEGER NOT NULL CHECK (until = 0 OR paused AND until > at),
  who        TEXT NOT NULL,
  reason     TEXT NOT NULL
);
CREATE UNIQUE INDEX pauses_subject ON pauses (kind, name, generation);

-- How far schedules are, by their names. "next" is the first nominal time that is not decided about, "due" when that is to be
-- done; both are NULL when there is none, and "due" is NULL while the schedule is paused. From "counted_from" on its failures are counted:
-- since it was resumed, or its document applied.
CREATE TABLE schedules (
  name         TEXT NOT NULL PRIMARY KEY,
  version      INTEGER NOT NULL,
  next         INTEGER,
  due          INTEGER,
  last         INTEGER,
  paused_at    INTEGER,
  execution    BLOB,
  reason       TEXT NOT NULL,
  counted_from INTEGER
) WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (due) WHERE due IS NOT NULL;

-- What became of nominal times. The key is what lets a schedule fire once for each; "tag" is of what was fired by hand. A row
-- without an execution says that "count" times were missed, the last of them "last".
CREATE TABLE ticks (
  schedule  TEXT NOT NULL,
  nominal   INTEGER NOT NULL,
  tag       TEXT NOT NULL,
  last      INTEGER NOT NULL,
  count     INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  execution BLOB,
  why       TEXT NOT NULL,
  message   TEXT NOT NULL,
  PRIMARY KEY (schedule, nominal, tag)
) WITHOUT ROWID;
CREATE INDEX ticks_at ON ticks (at);

-- Signals, and what rules, waits and people make of them.

-- What was emitted, in the order of (at, n). "detail" and "data" are JSON. Of signals with a key there is one for each trigger.
-- "body" is the SHA-256 of what was signed of a request under an id that nobody signed: the same content under another id may be sent by
-- anybody who has seen it.
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
  data    TEXT NOT NULL,
  body    BLOB CHECK (length(body) = 32)
);
CREATE UNIQUE INDEX signals_id ON signals (id);
CREATE UNIQUE INDEX signals_key ON signals (trigger, key) WHERE key IS NOT NULL;
CREATE INDEX signals_subject ON signals (trigger, subject, at, n) WHERE subject IS NOT NULL;
CREATE INDEX signals_trigger ON signals (trigger, at, n);
CREATE INDEX signals_at ON signals (at, n);
CREATE INDEX signals_new ON signals (at, n) WHERE state = 1;
CREATE INDEX signals_body ON signals (body, at) WHERE body IS NOT NULL;

-- What rules have made of signals: at most one for each rule and signal. "reason" is JSON. "held_in" is the key of the
-- window in which the signal is, or was, held; held signals are read in the order in which they were held.
CREATE TABLE enforcements (
  signal    INTEGER NOT NULL,
  rule      TEXT NOT NULL CHECK (rule <> ''),
  version   INTEGER NOT NULL,
  state     INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5), -- 1 ran, 2 held, 3 folded, 4 refused, 5 failed
  at        INTEGER NOT NULL,
  execution BLOB CHECK (length(execution) = 16),
  reason    TEXT CHECK (json_valid(reason)),
  held_in   TEXT,
  PRIMARY KEY (signal, rule),
  CHECK ((state IN (1, 3)) = (execution IS NOT NULL)),
  CHECK ((state > 3) = (reason IS NOT NULL))
) WITHOUT ROWID;
CREATE UNIQUE INDEX enforcements_lead ON enforcements (execution) WHERE state = 1;
CREATE INDEX enforcements_rule ON enforcements (rule, signal);
CREATE INDEX enforcements_bad ON enforcements (state, signal) WHERE state > 3;
CREATE INDEX enforcements_held ON enforcements (rule, held_in, at, signal) WHERE state = 2;

-- Which version of a rule or trigger ("rule:NAME") was in force from a generation on, and whether it was paused. Rows are only added.
CREATE TABLE switches (
  generation INTEGER PRIMARY KEY CHECK (generation > 0),
  name       TEXT NOT NULL CHECK (name <> ''),
  version    INTEGER NOT NULL,
  paused     INTEGER NOT NULL CHECK (paused IN (0, 1)),
  at         INTEGER NOT NULL,
  reason     TEXT NOT NULL
);
CREATE UNIQUE INDEX switches_name ON switches (name, generation);

-- Signals that a rule holds for one execution: "wake" is when the window closes, "first" and "last" are numbers of signals, "bytes" counts
-- their data.
CREATE TABLE windows (
  rule   TEXT NOT NULL CHECK (rule <> ''),
  key    TEXT NOT NULL,
  opened INTEGER NOT NULL,
  wake   INTEGER NOT NULL,
  count  INTEGER NOT NULL CHECK (count > 0),
  first  INTEGER NOT NULL,
  last   INTEGER NOT NULL,
  bytes  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (rule, key)
) WITHOUT ROWID;
CREATE INDEX windows_wake ON windows (wake);

-- What executions wait for that wait for signals. "signal" is the number of the signal that one took; it is NULL while it waits.
-- "looked" is 1 once the signals that were there when it began have been looked at.
CREATE TABLE waits (
  execution BLOB NOT NULL PRIMARY KEY CHECK (length(execution) = 16),
  workflow  BLOB NOT NULL CHECK (length(workflow) = 16),
  attempt   INTEGER NOT NULL,
  trigger   TEXT NOT NULL CHECK (trigger <> ''),
  subject   TEXT NOT NULL CHECK (subject <> ''),
  since     INTEGER NOT NULL,
  looked    INTEGER NOT NULL CHECK (looked IN (0, 1)),
  signal    INTEGER,
  detail    TEXT NOT NULL CHECK (json_valid(detail))
) WITHOUT ROWID;
CREATE INDEX waits_open ON waits (trigger, subject, execution) WHERE signal IS NULL;
CREATE INDEX waits_unlooked ON waits (execution) WHERE looked = 0 AND signal IS NULL;
CREATE UNIQUE INDEX waits_taken ON waits (workflow, attempt, signal) WHERE signal IS NOT NULL;

-- Signals about which open waits are to be asked.
CREATE TABLE unmet (signal INTEGER PRIMARY KEY);

-- Signals and waits that a loop could not handle, and leaves alone until a moment. "kind" is what could not be done: 1 ask the rules about
-- signal "id", 2 ask open waits about it, 3 let the wait of execution "id" look at signals. "times" counts how often that was tried.
CREATE TABLE asides (
  kind   INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
  id     BLOB NOT NULL CHECK (length(id) = 16),
  until  INTEGER NOT NULL,
  times  INTEGER NOT NULL CHECK (times > 0),
  reason TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX asides_until ON asides (until);

-- The questions to people that executions wait for: one for each purpose of an asking workflow. "execution" waits for the
-- answer, or was the last to do so. "revision" counts the changes of a row. A list asks for the open question of each workflow that it
-- shows, of which a workflow of 10,000 answered ones has none: inquiries_open.
CREATE TABLE inquiries (
  id        BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  asker     BLOB NOT NULL CHECK (length(asker) = 16),
  purpose   TEXT NOT NULL CHECK (purpose <> ''),
  execution BLOB NOT NULL CHECK (length(execution) = 16),
  state     INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4), -- open, answered, expired, withdrawn
  revision  INTEGER NOT NULL CHECK (revision > 0),
  asked_at  INTEGER NOT NULL,
  due       INTEGER CHECK (due > asked_at),
  closed_at INTEGER CHECK ((closed_at IS NULL) = (state = 1)),
  question  TEXT NOT NULL CHECK (json_valid(question)),
  answer    TEXT CHECK (answer IS NULL OR json_valid(answer) AND state IN (2, 3)) CHECK (state <> 2 OR answer IS NOT NULL)
);
CREATE UNIQUE INDEX inquiries_purpose ON inquiries (asker, purpose);
CREATE UNIQUE INDEX inquiries_execution ON inquiries (execution);
CREATE INDEX inquiries_state ON inquiries (state, id);
CREATE INDEX inquiries_open ON inquiries (asker, purpose) WHERE closed_at IS NULL;

-- To whom open inquiries were put by name.
CREATE TABLE assigned (
  who     TEXT NOT NULL,
  inquiry BLOB NOT NULL,
  PRIMARY KEY (who, inquiry)
) WITHOUT ROWID;
CREATE INDEX assigned_inquiry ON assigned (inquiry);

-- What people read with sqlite3 (docs/operations.md). Nothing of Pawl reads these views. "ref" joins them.

CREATE VIEW overview AS
SELECT r.n AS ref,
  (WITH RECURSIVE t(i, text) AS (SELECT 0, 'ex_' UNION ALL SELECT i + 1, text || substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + (
      (4096 * instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 1, 1)) + 256 * instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 2, 1))
      + 16 * instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 3, 1)) + instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 4, 1)))
      >> (11 - i * 5 % 8) & 31), 1) FROM t WHERE i < 26) SELECT text FROM t WHERE i = 26) AS id,
  CASE r.stage WHEN 1 THEN 'requested' WHEN 2 THEN 'scheduling' WHEN 3 THEN 'scheduled' WHEN 4 THEN 'provisioning' WHEN 5 THEN 'running'
    WHEN 6 THEN 'completed' WHEN 7 THEN 'failed' WHEN 8 THEN 'cancelled' WHEN 9 THEN 'timed_out' END AS status,
  r.queue, r.action, r.key, r.attempts,
  strftime('%Y-%m-%d %H:%M:%f', r.created_at / 1000000.0, 'unixepoch') AS created_at,
  strftime('%Y-%m-%d %H:%M:%f', r.finished_at / 1000000.0, 'unixepoch') AS finished_at,
  CASE WHEN length(r.error) > 0 THEN CAST(substr(r.error, r.code_at, r.code_size) AS TEXT) END AS error_code,
  CASE WHEN length(r.error) > 0 THEN CAST(substr(r.error, r.code_at + r.code_size + CASE WHEN r.m1 < 128 THEN 1 WHEN r.m2 < 128 THEN 2 ELSE 3 END,
    CASE WHEN r.m1 < 128 THEN r.m1 WHEN r.m2 < 128 THEN r.m1 - 128 + 128 * r.m2 ELSE r.m1 - 128 + 128 * (r.m2 - 128) + 16384 * r.m3 END) AS TEXT) END AS error_message
FROM (
  -- The error is its code and its message, each behind its length: seven bits to a byte, the lowest first (package row).
  SELECT *,
    16 * instr('123456789ABCDEF', substr(message, 1, 1)) + instr('123456789ABCDEF', substr(message, 2, 1)) AS m1,
    16 * instr('123456789ABCDEF', substr(message, 3, 1)) + instr('123456789ABCDEF', substr(message, 4, 1)) AS m2,
    16 * instr('123456789ABCDEF', substr(message, 5, 1)) + instr('123456789ABCDEF', substr(message, 6, 1)) AS m3
  FROM (
    SELECT *, hex(substr(error, code_at + code_size, 3)) AS message FROM (
      SELECT *, CASE WHEN c1 < 128 THEN 2 ELSE 3 END AS code_at, CASE WHEN c1 < 128 THEN c1 ELSE c1 - 128 + 128 * c2 END AS code_size FROM (
        SELECT *, 16 * instr('123456789ABCDEF', substr(head, 1, 1)) + instr('123456789ABCDEF', substr(head, 2, 1)) AS c1,
          16 * instr('123456789ABCDEF', substr(head, 3, 1)) + instr('123456789ABCDEF', substr(head, 4, 1)) AS c2,
          CASE WHEN finished_at IS NULL THEN attempt WHEN a1 < 128 THEN a1 ELSE a1 - 128 + 128 * a2 END AS attempts
        FROM (
          SELECT e.n, e.id, l.stage, l.queue, e.action, l.key, l.attempt, e.created_at, NULL AS finished_at, NULL AS error, '' AS head, 0 AS a1, 0 AS a2
          FROM live l JOIN executions e ON e.n = l.n
          UNION ALL
          SELECT e.n, e.id, d.stage, d.queue, e.action, NULL, NULL, e.created_at, e.created_at + d.finished_after, d.error, hex(substr(d.error, 1, 2)),
            16 * instr('123456789ABCDEF', substr(hex(d.state), 1, 1)) + instr('123456789ABCDEF', substr(hex(d.state), 2, 1)),
            16 * instr('123456789ABCDEF', substr(hex(d.state), 3, 1)) + instr('123456789ABCDEF', substr(hex(d.state), 4, 1))
          FROM ended d JOIN executions e ON e.n = d.n
        )
      )
    )
  )
) r;

CREATE VIEW overview_labels AS SELECT n AS ref, name, value FROM labels;

CREATE VIEW history AS
SELECT v.k / 4194304 AS ref, v.k % 4194304 AS seq, v.attempt,
  CASE v.type WHEN 1 THEN 'requested' WHEN 2 THEN 'scheduling' WHEN 3 THEN 'scheduled' WHEN 4 THEN 'provisioning' WHEN 5 THEN 'running'
    WHEN 6 THEN 'completed' WHEN 7 THEN 'failed' WHEN 8 THEN 'cancelled' WHEN 9 THEN 'timed_out' WHEN 10 THEN 'waiting' WHEN 11 THEN 'lost'
    WHEN 12 THEN 'advanced' WHEN 13 THEN 'progress' ELSE v.type END AS type,
  strftime('%Y-%m-%d %H:%M:%f', (e.created_at + v.after) / 1000000.0, 'unixepoch') AS at,
  CAST(v.data AS TEXT) AS data
FROM executions e JOIN events v ON v.k >= e.n * 4194304 AND v.k < (e.n + 1) * 4194304;
