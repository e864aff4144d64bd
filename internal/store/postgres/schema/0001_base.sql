-- The schema of version 1. A later change is a file of its own, 0002_*.sql: this file is never edited once it is released, as a database
-- is refused whose migrations are not those of the program.
--
-- {s} is the schema's quoted name. Times are microseconds since 1970 in UTC. Identifiers sort by their bytes, whatever the
-- database's locale. Columns of fixed width come first in a table, so that rows have no padding.
--
-- Of indexes that cost the same, as all of a table do while it is empty, the planner takes the one that was made last. So the order
-- of indexes matters below where it says so.

-- Executions.

-- What has not ended: one row, with everything that changes and what a claim hands out. Rows are few however many have
-- ended. "history" is the latest run of events (package row), which begins with number history_from; older ones are in
-- "events". "detail" and "state" are package row's, too. "payload_external" says that the payload is in "payloads".
CREATE TABLE {s}.live (
  id           uuid NOT NULL,
  created_at   bigint NOT NULL,
  next_seq     bigint NOT NULL,
  history_from bigint NOT NULL,
  ticket       bigint NOT NULL,
  priority     bigint NOT NULL,
  queued_at    bigint NOT NULL,
  wake         bigint,
  owner        uuid,
  attempt      integer NOT NULL,
  place        smallint NOT NULL, -- 0 placed nowhere, 1 delayed, 2 in its key's line, 3 in its queue, 4 held
  stage        smallint NOT NULL, -- counted as in docs/states.md
  cancel_requested boolean NOT NULL, -- an order to end it is outstanding
  is_root      boolean NOT NULL, -- it has no parent
  payload_external boolean NOT NULL,
  queue        text COLLATE "C" NOT NULL,
  key          text COLLATE "C",
  action       text COLLATE "C" NOT NULL,
  detail       bytea NOT NULL,
  state        bytea NOT NULL,
  history      bytea NOT NULL,
  input        bytea,
  payload      bytea,
  CONSTRAINT live_pkey PRIMARY KEY (id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 20000);
CREATE INDEX live_ready ON {s}.live (queue, priority DESC, ticket) WHERE place = 3;
CREATE INDEX live_key ON {s}.live (key, place, priority DESC, ticket) WHERE key IS NOT NULL;
CREATE INDEX live_owner ON {s}.live (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX live_cancel_requested ON {s}.live (owner) WHERE cancel_requested;
CREATE INDEX live_wake ON {s}.live (wake) WHERE wake IS NOT NULL;

-- What has ended. Rows are written once, when the live row goes.
CREATE TABLE {s}.ended (
  id           uuid NOT NULL,
  created_at   bigint NOT NULL,
  history_from bigint NOT NULL,
  finished_at  bigint NOT NULL,
  stage        smallint NOT NULL,
  is_root      boolean NOT NULL,
  payload_external boolean NOT NULL,
  action       text COLLATE "C" NOT NULL,
  detail       bytea NOT NULL,
  state        bytea NOT NULL,
  history      bytea NOT NULL,
  error        bytea,
  input        bytea,
  payload      bytea,
  output       bytea,
  queue        text COLLATE "C",
  CONSTRAINT ended_pkey PRIMARY KEY (id)
);
CREATE INDEX ended_badly ON {s}.ended (id) WHERE stage > 6;

-- Payloads too large to be carried along in a row that changes.
CREATE TABLE {s}.payloads (
  id      uuid NOT NULL PRIMARY KEY,
  input   bytea,
  payload bytea
);

-- Earlier runs of long histories; "first" is the number of the first event.
CREATE TABLE {s}.events (
  id      uuid NOT NULL,
  first   bigint NOT NULL,
  history bytea NOT NULL,
  PRIMARY KEY (id, first)
);

-- Events that came ahead of a gap.
CREATE TABLE {s}.inbox (
  id    uuid NOT NULL,
  seq   bigint NOT NULL,
  event bytea NOT NULL,
  PRIMARY KEY (id, seq)
);

-- "number" is the order in which a reader of the outcomes of a label has been given them. It is drawn when the outcome is first read, so a
-- label that is never followed costs nothing. Numbers of one label are drawn under a lock that is held until the commit, so they grow in
-- the order of their commits.
CREATE TABLE {s}.labels (
  id     uuid NOT NULL,
  name   text COLLATE "C" NOT NULL,
  value  text COLLATE "C" NOT NULL,
  number bigint,
  PRIMARY KEY (name, value, id)
);
CREATE INDEX labels_number ON {s}.labels (name, value, number) WHERE number IS NOT NULL;
CREATE SEQUENCE {s}.outcomes;

CREATE TABLE {s}.idempotency (
  id   uuid NOT NULL,
  key  text COLLATE "C" NOT NULL PRIMARY KEY,
  hash bytea NOT NULL
);

-- What LockKeys locks.
CREATE TABLE {s}.keys (
  key text COLLATE "C" NOT NULL PRIMARY KEY
);

-- How far the rates of keys are used up: "tat" is when a key would be idle if all that has begun had come evenly spaced. A row whose tat has
-- passed says what no row says.
CREATE TABLE {s}.meters (
  tat bigint NOT NULL,
  key text COLLATE "C" NOT NULL PRIMARY KEY CHECK (key <> '')
) WITH (fillfactor = 50);
CREATE INDEX meters_tat ON {s}.meters (tat);

-- How far turns in the lines of concurrency keys have come that are shared fairly: "tag" of each who is what the next one goes by, and of
-- the row with clock = 1 how far the line is. Turns are taken within a priority.
CREATE TABLE {s}.shares (
  tag      bigint NOT NULL,
  at       bigint NOT NULL,
  priority integer NOT NULL,
  clock    smallint NOT NULL CHECK (clock IN (0, 1)), -- 1: the line's clock
  key      text COLLATE "C" NOT NULL,
  who      text COLLATE "C" NOT NULL,
  PRIMARY KEY (key, priority, clock, who)
) WITH (fillfactor = 50);
CREATE INDEX shares_at ON {s}.shares (at);

-- One number of the sequence stands for a block of tickets (tx.go).
CREATE SEQUENCE {s}.tickets;

-- Workflows.

-- "ended_as" is the stage that the child ended in, and 0 while it has not.
CREATE TABLE {s}.children (
  workflow uuid NOT NULL,
  id       uuid NOT NULL,
  attempt  integer NOT NULL,
  idx      integer NOT NULL,
  ended_as smallint NOT NULL,
  task     text COLLATE "C" NOT NULL,
  PRIMARY KEY (workflow, attempt, task, idx)
) WITH (fillfactor = 80);

CREATE TABLE {s}.marks (
  workflow uuid NOT NULL,
  attempt  integer NOT NULL,
  total    bigint NOT NULL,
  task     text COLLATE "C" NOT NULL,
  state    text COLLATE "C" NOT NULL,
  error    bytea,
  PRIMARY KEY (workflow, attempt, task)
);

-- What each transaction made of the state of a workflow with many children: with the number of the last change that it knows, a
-- server learns how far the workflow is without counting its children. "number" counts 1, 2, 3 … within an attempt, and is
-- drawn under the lock of the workflow's row. "change" is package orchestration's.
CREATE TABLE {s}.changes (
  workflow uuid NOT NULL,
  number   bigint NOT NULL,
  attempt  integer NOT NULL,
  change   bytea NOT NULL,
  PRIMARY KEY (workflow, attempt, number)
);

-- Which executions run another one again. The other may be gone.
CREATE TABLE {s}.reruns (
  original uuid NOT NULL,
  id       uuid NOT NULL,
  PRIMARY KEY (original, id)
);

-- What the items of a rerun that has not ended are to end with instead of running. "origin" ran to put the output out.
CREATE TABLE {s}.reuses (
  workflow uuid NOT NULL,
  origin   uuid NOT NULL,
  idx      integer NOT NULL,
  task     text COLLATE "C" NOT NULL,
  hash     bytea NOT NULL,
  output   bytea,
  PRIMARY KEY (workflow, task, idx)
);

-- Which executions are retries of another one. The other may be gone.
CREATE TABLE {s}.retries (
  original uuid NOT NULL,
  id       uuid NOT NULL,
  PRIMARY KEY (original, id)
);

-- Outcomes that are kept for executions with the same to do. The execution that ran may be gone.
CREATE TABLE {s}.kept (
  hash    bytea PRIMARY KEY,
  origin  uuid NOT NULL,
  at      bigint NOT NULL,
  expires bigint NOT NULL,
  output  bytea
);
CREATE INDEX kept_expires ON {s}.kept (expires);

-- What the server refuses, whoever writes it. "place * 100 + stage" is one number for both columns: 303 is place 3, in its queue, and
-- stage 3, scheduled. What is put aside leaves its queue in stage 3 (103), and where it finds its key full when it is tried again, it waits
-- in the key's line (203). The texts are short because PostgreSQL reads the checks of a table anew for each statement that writes to it:
-- 6,500 bytes of them took 57 µs of an UPDATE of one row that takes 118 µs without; these are 1,600. Attempts and numbers of events
-- are checked by `pawl doctor --verify` only. NOT VALID: pg_dump writes such checks after the rows, so a copy that contains a row that a
-- disk has damaged can be restored; `pawl doctor --verify` names the row.
ALTER TABLE {s}.live
  ADD CONSTRAINT live_place CHECK (place * 100 + stage = ANY ('{1, 2, 101, 103, 201, 202, 203, 303, 404, 405}')) NOT VALID,
  ADD CONSTRAINT live_owner CHECK (owner IS NULL OR place = 4) NOT VALID;
ALTER TABLE {s}.ended ADD CONSTRAINT ended_stage CHECK (stage = ANY ('{6, 7, 8, 9}')) NOT VALID;
ALTER TABLE {s}.children ADD CONSTRAINT children_ended CHECK (ended_as = ANY ('{0, 6, 7, 8, 9}')) NOT VALID;
ALTER TABLE {s}.kept ADD CONSTRAINT kept_hash CHECK (octet_length(hash) = 32) NOT VALID;

-- Workers, and what executions write and read.

-- Few rows, changed all the time: no index but the key, so that a renewal touches nothing but its row.
CREATE TABLE {s}.sessions (
  id         uuid NOT NULL PRIMARY KEY,
  started_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  slots      bigint NOT NULL,
  embedded   boolean NOT NULL,
  name       text COLLATE "C" NOT NULL,
  queues     text[] NOT NULL,
  kinds      text[] NOT NULL
) WITH (fillfactor = 50);

-- What executions write. The data do not compress well in small pieces and are read whole.
CREATE TABLE {s}.chunks (
  id       uuid NOT NULL,
  seq      bigint NOT NULL,
  start    bigint NOT NULL,
  at       bigint NOT NULL,
  size     bigint NOT NULL,
  attempt  integer NOT NULL,
  stream   text COLLATE "C" NOT NULL,
  blob     text COLLATE "C",
  data     bytea,
  PRIMARY KEY (id, attempt, seq)
);

-- What interactive executions are given to read while they run: pieces, each at its offset.
CREATE TABLE {s}.inputs (
  id     uuid NOT NULL,
  start  bigint NOT NULL,
  number integer NOT NULL, -- 1, 2, 3 …
  last   boolean NOT NULL, -- nothing follows
  data   bytea NOT NULL,
  PRIMARY KEY (id, start)
);

-- What is too big for a row (blob/postgres). A content is written piece by piece and named when it is whole; readers find
-- it by its name, so nobody sees a part.
CREATE SEQUENCE {s}.blob_contents;

CREATE TABLE {s}.blobs (
  content  bigint NOT NULL,
  size     bigint NOT NULL,
  replaced bigint, -- the content that had the name before
  name     text COLLATE "C" PRIMARY KEY
);

CREATE TABLE {s}.blob_pieces (
  content bigint NOT NULL,
  number  integer NOT NULL, -- 0, 1, 2 …, all but the last of the same size
  data    bytea NOT NULL,
  PRIMARY KEY (content, number)
);
ALTER TABLE {s}.blob_pieces ALTER data SET STORAGE EXTERNAL; -- compressing it again would cost more than it saves

-- Contents without a name: still being written, or removed and perhaps still being read. Their pieces may go after a
-- moment that every piece written moves on.
CREATE TABLE {s}.blob_loose (
  content bigint PRIMARY KEY,
  until   timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Contents that were sent ahead of the submissions that name them. The blob is named after "id". "sum" is null while the
-- content is on its way. It is kept until "until" and as long as a row of "holds" names it; what is dropped can be named by
-- nothing any more, and waits for its blob to be removed.
CREATE TABLE {s}.uploads (
  id      uuid NOT NULL PRIMARY KEY,
  sum     bytea,
  size    bigint NOT NULL,
  until   bigint NOT NULL,
  dropped boolean NOT NULL
);
CREATE UNIQUE INDEX uploads_sum ON {s}.uploads (sum) WHERE sum IS NOT NULL AND NOT dropped;
CREATE INDEX uploads_until ON {s}.uploads (dropped, until);

CREATE TABLE {s}.holds (
  id     uuid NOT NULL,
  upload uuid NOT NULL,
  PRIMARY KEY (id, upload)
);
CREATE INDEX holds_upload ON {s}.holds (upload);

-- What is registered, and what operators say.

CREATE TABLE {s}.definitions (
  version    integer NOT NULL,
  defined_at bigint NOT NULL,
  name       text COLLATE "C" NOT NULL,
  kind       text COLLATE "C" NOT NULL,
  hash       bytea NOT NULL,
  document   bytea NOT NULL,
  PRIMARY KEY (name, version)
);

-- Queues, routing keys (lanes) and languages that servers know of, and settings that they share.
CREATE TABLE {s}.queues (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL
);
CREATE TABLE {s}.lanes (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL
);
CREATE TABLE {s}.languages (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL
);
CREATE TABLE {s}.settings (
  name  text COLLATE "C" NOT NULL PRIMARY KEY,
  value text NOT NULL -- JSON
);

-- Who has paused or resumed what, when and why: "kind" is 1 a queue, 2 a worker, 3 an action. Rows are only added; the latest of a subject
-- counts. A pause ends by itself at "until"; 0: when it is resumed.
CREATE TABLE {s}.pauses (
  generation bigint NOT NULL PRIMARY KEY CHECK (generation > 0),
  at         bigint NOT NULL,
  until      bigint NOT NULL CHECK (until = 0 OR paused AND until > at),
  kind       smallint NOT NULL CHECK (kind IN (1, 2, 3)),
  paused     boolean NOT NULL,
  name       text COLLATE "C" NOT NULL CHECK (name <> ''),
  who        text NOT NULL,
  reason     text NOT NULL
);
CREATE UNIQUE INDEX pauses_subject ON {s}.pauses (kind, name, generation);

-- How far schedules are, by their names. "next" is the first nominal time that is not decided about, "due" when that is to be
-- done; both are null when there is none, and "due" is null while the schedule is paused. From "counted_from" on its failures are counted:
-- since it was resumed, or its document applied.
CREATE TABLE {s}.schedules (
  version      bigint NOT NULL,
  next         bigint,
  due          bigint,
  last         bigint,
  paused_at    bigint,
  execution    uuid,
  name         text COLLATE "C" NOT NULL PRIMARY KEY,
  reason       text NOT NULL,
  counted_from bigint
) WITH (fillfactor = 50);
CREATE INDEX schedules_due ON {s}.schedules (due) WHERE due IS NOT NULL;

-- What became of nominal times. The key is what lets a schedule fire once for each; "tag" is of what was fired by hand. A row
-- without an execution says that "count" times were missed, the last of them "last".
CREATE TABLE {s}.ticks (
  nominal   bigint NOT NULL,
  last      bigint NOT NULL,
  count     bigint NOT NULL,
  at        bigint NOT NULL,
  execution uuid,
  schedule  text COLLATE "C" NOT NULL,
  tag       text COLLATE "C" NOT NULL,
  why       text NOT NULL,
  message   text NOT NULL,
  PRIMARY KEY (schedule, nominal, tag)
);
CREATE INDEX ticks_at ON {s}.ticks (at);

-- Signals, and what rules, waits and people make of them.

-- What was emitted, in the order of (at, n). "data" is JSON. Of signals with a key there is one for each trigger. "body" is the SHA-256 of
-- what was signed of a request under an id that nobody signed: the same content under another id may be sent by anybody who has seen it.
-- The primary key is made after the other indexes: signals are looked up by their numbers, which are the second column of signals_at, and
-- among 60,000 signals 100 look-ups by signals_at take 450 ms, and 5 by the primary key.
CREATE TABLE {s}.signals (
  n       bigint NOT NULL,
  at      bigint NOT NULL,
  id      uuid NOT NULL,
  state   smallint NOT NULL CHECK (state IN (1, 2)), -- 1 new, 2 matched
  trigger text COLLATE "C" NOT NULL CHECK (trigger <> ''),
  key     text COLLATE "C" CHECK (key <> ''),
  subject text COLLATE "C" CHECK (subject <> ''),
  source  text COLLATE "C" NOT NULL CHECK (source <> ''),
  hash    bytea NOT NULL CHECK (octet_length(hash) = 32),
  detail  json NOT NULL,
  data    text NOT NULL,
  body    bytea CHECK (octet_length(body) = 32)
);
CREATE UNIQUE INDEX signals_id ON {s}.signals (id);
CREATE UNIQUE INDEX signals_key ON {s}.signals (trigger, key) WHERE key IS NOT NULL;
CREATE INDEX signals_subject ON {s}.signals (trigger, subject, at, n) WHERE subject IS NOT NULL;
CREATE INDEX signals_trigger ON {s}.signals (trigger, at, n);
CREATE INDEX signals_at ON {s}.signals (at, n);
CREATE INDEX signals_new ON {s}.signals (at, n) WHERE state = 1;
CREATE INDEX signals_body ON {s}.signals (body, at) WHERE body IS NOT NULL;
ALTER TABLE {s}.signals ADD CONSTRAINT signals_pkey PRIMARY KEY (n);

-- What rules have made of signals: at most one for each rule and signal. "held_in" is the key of the window in which the signal is, or was,
-- held; held signals are read in the order in which they were held. Enforcements are looked up by the signal alone, which is the second
-- column of enforcements_rule: so the primary key is made after it, as that of signals is.
CREATE TABLE {s}.enforcements (
  signal    bigint NOT NULL,
  at        bigint NOT NULL,
  execution uuid,
  version   integer NOT NULL,
  state     smallint NOT NULL CHECK (state BETWEEN 1 AND 5), -- 1 ran, 2 held, 3 folded, 4 refused, 5 failed
  rule      text COLLATE "C" NOT NULL CHECK (rule <> ''),
  reason    json,
  held_in   text COLLATE "C",
  CHECK ((state IN (1, 3)) = (execution IS NOT NULL)),
  CHECK ((state > 3) = (reason IS NOT NULL))
);
CREATE UNIQUE INDEX enforcements_lead ON {s}.enforcements (execution) WHERE state = 1;
CREATE INDEX enforcements_rule ON {s}.enforcements (rule, signal);
CREATE INDEX enforcements_bad ON {s}.enforcements (state, signal) WHERE state > 3;
ALTER TABLE {s}.enforcements ADD CONSTRAINT enforcements_pkey PRIMARY KEY (signal, rule);
CREATE INDEX enforcements_held ON {s}.enforcements (rule, held_in, at, signal) WHERE state = 2;

-- Which version of a rule or trigger ("rule:NAME") was in force from a generation on, and whether it was paused. Rows are only added.
CREATE TABLE {s}.switches (
  generation bigint NOT NULL PRIMARY KEY CHECK (generation > 0),
  at         bigint NOT NULL,
  version    integer NOT NULL,
  paused     boolean NOT NULL,
  name       text COLLATE "C" NOT NULL CHECK (name <> ''),
  reason     text NOT NULL
);
CREATE UNIQUE INDEX switches_name ON {s}.switches (name, generation);

-- Signals that a rule holds for one execution: "wake" is when the window closes, "first" and "last" are numbers of signals, "bytes" counts
-- their data.
CREATE TABLE {s}.windows (
  opened bigint NOT NULL,
  wake   bigint NOT NULL,
  first  bigint NOT NULL,
  last   bigint NOT NULL,
  count  integer NOT NULL CHECK (count > 0),
  rule   text COLLATE "C" NOT NULL CHECK (rule <> ''),
  key    text COLLATE "C" NOT NULL,
  bytes  bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (rule, key)
);
CREATE INDEX windows_wake ON {s}.windows (wake);

-- What executions wait for that wait for signals. "signal" is the number of the signal that one took; it is null while it waits.
-- "looked" says that the signals that were there when it began have been looked at.
CREATE TABLE {s}.waits (
  since     bigint NOT NULL,
  signal    bigint,
  execution uuid NOT NULL PRIMARY KEY,
  workflow  uuid NOT NULL,
  attempt   integer NOT NULL,
  looked    boolean NOT NULL,
  trigger   text COLLATE "C" NOT NULL CHECK (trigger <> ''),
  subject   text COLLATE "C" NOT NULL CHECK (subject <> ''),
  detail    json NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX waits_open ON {s}.waits (trigger, subject, execution) WHERE signal IS NULL;
CREATE INDEX waits_unlooked ON {s}.waits (execution) WHERE NOT looked AND signal IS NULL;
CREATE UNIQUE INDEX waits_taken ON {s}.waits (workflow, attempt, signal) WHERE signal IS NOT NULL;

-- Signals about which open waits are to be asked.
CREATE TABLE {s}.unmet (signal bigint NOT NULL PRIMARY KEY);

-- Signals and waits that a loop could not handle, and leaves alone until a moment. "kind" is what could not be done: 1 ask the rules about
-- signal "id", 2 ask open waits about it, 3 let the wait of execution "id" look at signals. "times" counts how often that was tried.
CREATE TABLE {s}.asides (
  until  bigint NOT NULL,
  id     uuid NOT NULL,
  times  integer NOT NULL CHECK (times > 0),
  kind   smallint NOT NULL CHECK (kind IN (1, 2, 3)),
  reason text NOT NULL,
  PRIMARY KEY (kind, id)
);
CREATE INDEX asides_until ON {s}.asides (until);

-- The questions to people that executions wait for: one for each purpose of an asking workflow. "execution" waits for the
-- answer, or was the last to do so. "revision" counts the changes of a row. A list asks for the open question of each workflow that it
-- shows, of which a workflow of 10,000 answered ones has none: inquiries_open.
CREATE TABLE {s}.inquiries (
  asked_at  bigint NOT NULL,
  due       bigint CHECK (due > asked_at),
  closed_at bigint,
  id        uuid NOT NULL PRIMARY KEY,
  asker     uuid NOT NULL,
  execution uuid NOT NULL,
  revision  integer NOT NULL CHECK (revision > 0),
  state     smallint NOT NULL CHECK (state BETWEEN 1 AND 4), -- open, answered, expired, withdrawn
  purpose   text COLLATE "C" NOT NULL CHECK (purpose <> ''),
  question  json NOT NULL,
  answer    json,
  CHECK ((closed_at IS NULL) = (state = 1)),
  CHECK (answer IS NULL OR state IN (2, 3)),
  CHECK (state <> 2 OR answer IS NOT NULL)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX inquiries_purpose ON {s}.inquiries (asker, purpose);
CREATE UNIQUE INDEX inquiries_execution ON {s}.inquiries (execution);
CREATE INDEX inquiries_state ON {s}.inquiries (state, id);
CREATE INDEX inquiries_open ON {s}.inquiries (asker, purpose) WHERE closed_at IS NULL;

-- To whom open inquiries were put by name.
CREATE TABLE {s}.assigned (
  inquiry uuid NOT NULL,
  who     text COLLATE "C" NOT NULL,
  PRIMARY KEY (who, inquiry)
);
CREATE INDEX assigned_inquiry ON {s}.assigned (inquiry);

-- Ends a transaction whose rows are not as its decision saw them, before a commit that was sent along is reached.
CREATE FUNCTION {s}.expect(got bigint, want bigint, code text, say text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF got <> want THEN
    RAISE EXCEPTION '%: % of % rows', say, got, want USING ERRCODE = code;
  END IF;
END $$;

-- What people read with psql (docs/operations.md). Nothing of Pawl reads these views. "ref" joins them.

-- An execution's id as Pawl writes it: base32 of the bits.
CREATE FUNCTION {s}.execution_id(id uuid) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT 'ex_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(b.bits FROM 1 + 5 * i FOR 5)::bit(5)::integer, 1), '' ORDER BY i)
  FROM (SELECT ('x' || replace(id::text, '-', ''))::bit(128) || B'00' AS bits) b, generate_series(0, 25) i
$$;

-- A number of package row's encodings: seven bits to a byte, the lowest first. "next" is where the one behind it begins.
CREATE FUNCTION {s}.number_at(b bytea, at integer, OUT number bigint, OUT next integer) LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  factor bigint := 1;
BEGIN
  number := 0;
  next := at;
  LOOP
    number := number + (get_byte(b, next) & 127) * factor;
    factor := factor * 128;
    next := next + 1;
    EXIT WHEN get_byte(b, next - 1) < 128;
  END LOOP;
END $$;

-- An error is its code and its message, each behind its length.
CREATE FUNCTION {s}.error_texts(error bytea, OUT code text, OUT message text) LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  size bigint;
  at integer;
BEGIN
  SELECT n.number, n.next INTO size, at FROM {s}.number_at(error, 0) n;
  code := convert_from(substring(error FROM at + 1 FOR size::integer), 'UTF8');
  SELECT n.number, n.next INTO size, at FROM {s}.number_at(error, at + size::integer) n;
  message := convert_from(substring(error FROM at + 1 FOR size::integer), 'UTF8');
END $$;

-- The events of a run (row/history.go), of which the first has number "first".
CREATE FUNCTION {s}.events_of(history bytea, first bigint, created bigint)
RETURNS TABLE (seq bigint, attempt integer, type text, at timestamptz, data text) LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  names text[] := '{requested,scheduling,scheduled,provisioning,running,completed,failed,cancelled,timed_out,waiting,lost,advanced,progress}';
  next integer := 0;
  head bigint;
  n bigint;
BEGIN
  seq := first - 1;
  WHILE next < octet_length(history) LOOP
    seq := seq + 1;
    SELECT v.number, v.next INTO head, next FROM {s}.number_at(history, next) v;
    IF head & 2 <> 0 THEN
      SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
      seq := (n >> 1) # -(n & 1);
    END IF;
    IF head >> 2 = 0 THEN
      SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
      type := convert_from(substring(history FROM next + 1 FOR n::integer), 'UTF8');
      next := next + n::integer;
    ELSE
      type := names[head >> 2];
    END IF;
    SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
    attempt := n;
    SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
    at := to_timestamp((created + ((n >> 1) # -(n & 1))) / 1000000.0);
    data := NULL;
    IF head & 1 <> 0 THEN
      SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
      data := convert_from(substring(history FROM next + 1 FOR n::integer), 'UTF8');
      next := next + n::integer;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

CREATE VIEW {s}.overview AS
SELECT x.id AS ref, {s}.execution_id(x.id) AS id,
  ('{requested,scheduling,scheduled,provisioning,running,completed,failed,cancelled,timed_out}'::text[])[x.stage] AS status,
  x.queue, x.action, x.key, x.attempts,
  to_timestamp(x.created_at / 1000000.0) AS created_at, to_timestamp(x.finished_at / 1000000.0) AS finished_at,
  e.code AS error_code, e.message AS error_message
FROM (
  SELECT id, stage, queue, action, key, attempt AS attempts, created_at, NULL::bigint AS finished_at, NULL::bytea AS error FROM {s}.live
  UNION ALL
  SELECT id, stage, queue, action, NULL, ({s}.number_at(state, 0)).number::integer, created_at, finished_at, error FROM {s}.ended
) x LEFT JOIN LATERAL {s}.error_texts(x.error) e ON true;

CREATE VIEW {s}.overview_labels AS SELECT id AS ref, name, value FROM {s}.labels;

CREATE VIEW {s}.history AS
SELECT x.id AS ref, e.seq, e.attempt, e.type, e.at, e.data
FROM (SELECT id, created_at, history_from, history FROM {s}.live UNION ALL SELECT id, created_at, history_from, history FROM {s}.ended) x
  CROSS JOIN LATERAL (SELECT r.first, r.history FROM {s}.events r WHERE r.id = x.id UNION ALL SELECT x.history_from, x.history) h
  CROSS JOIN LATERAL {s}.events_of(h.history, h.first, x.created_at) e;
