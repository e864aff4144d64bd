-- Times are microseconds since 1970 in UTC. Identifiers sort by their bytes, whatever the database's locale.

-- What has not ended: one row, with everything that changes and what a claim hands out. Rows are few however many have
-- ended. "history" is the latest run of events (package row), which begins with number history_from; older ones are in
-- "events". "detail" and "state" are package row's, too. "apart" says that the payload is in "payloads".
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
  place        smallint NOT NULL,
  stage        smallint NOT NULL,
  ordered      boolean NOT NULL, -- an order to end it is outstanding
  top          boolean NOT NULL, -- it has no parent
  apart        boolean NOT NULL,
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
CREATE INDEX live_ordered ON {s}.live (owner) WHERE ordered;
CREATE INDEX live_wake ON {s}.live (wake) WHERE wake IS NOT NULL;

-- What has ended. Rows are written once, when the live row goes.
CREATE TABLE {s}.ended (
  id           uuid NOT NULL,
  created_at   bigint NOT NULL,
  history_from bigint NOT NULL,
  finished_at  bigint NOT NULL,
  stage        smallint NOT NULL,
  top          boolean NOT NULL,
  apart        boolean NOT NULL,
  action       text COLLATE "C" NOT NULL,
  detail       bytea NOT NULL,
  state        bytea NOT NULL,
  history      bytea NOT NULL,
  error        bytea,
  input        bytea,
  payload      bytea,
  output       bytea,
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

-- The rows of workflows. "ended" is the stage that the child ended in, and 0 while it has not.
CREATE TABLE {s}.children (
  workflow uuid NOT NULL,
  id       uuid NOT NULL,
  attempt  integer NOT NULL,
  idx      integer NOT NULL,
  ended    smallint NOT NULL,
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

CREATE TABLE {s}.labels (
  id    uuid NOT NULL,
  name  text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (name, value, id)
);

CREATE TABLE {s}.idempotency (
  id   uuid NOT NULL,
  key  text COLLATE "C" NOT NULL PRIMARY KEY,
  hash bytea NOT NULL
);

-- What LockKeys locks.
CREATE TABLE {s}.keys (
  key text COLLATE "C" NOT NULL PRIMARY KEY
);

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

CREATE TABLE {s}.definitions (
  version    integer NOT NULL,
  created_at bigint NOT NULL,
  name       text COLLATE "C" NOT NULL,
  kind       text COLLATE "C" NOT NULL,
  hash       bytea NOT NULL,
  document   bytea NOT NULL,
  PRIMARY KEY (name, version)
);

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

-- One number of the sequence stands for a block of tickets (tickets.go).
CREATE SEQUENCE {s}.tickets;

-- Ends a transaction whose rows are not as its decision saw them, before a commit that was sent along is reached.
CREATE FUNCTION {s}.expect(got bigint, want bigint, code text, say text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF got <> want THEN
    RAISE EXCEPTION '%: % of % rows', say, got, want USING ERRCODE = code;
  END IF;
END $$;
