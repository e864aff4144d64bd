-- What was emitted, in the order of (at, n). "data" is JSON. Of signals with a key there is one for each trigger.
CREATE TABLE {s}.signals (
  n       bigint NOT NULL PRIMARY KEY,
  at      bigint NOT NULL,
  id      uuid NOT NULL,
  state   smallint NOT NULL CHECK (state IN (1, 2)), -- 1 new, 2 matched
  trigger text COLLATE "C" NOT NULL CHECK (trigger <> ''),
  key     text COLLATE "C" CHECK (key <> ''),
  subject text COLLATE "C" CHECK (subject <> ''),
  source  text COLLATE "C" NOT NULL CHECK (source <> ''),
  hash    bytea NOT NULL CHECK (octet_length(hash) = 32),
  detail  json NOT NULL,
  data    text NOT NULL
);
CREATE UNIQUE INDEX signals_id ON {s}.signals (id);
CREATE UNIQUE INDEX signals_key ON {s}.signals (trigger, key) WHERE key IS NOT NULL;
CREATE INDEX signals_subject ON {s}.signals (trigger, subject, at, n) WHERE subject IS NOT NULL;
CREATE INDEX signals_trigger ON {s}.signals (trigger, at, n);
CREATE INDEX signals_at ON {s}.signals (at, n);
CREATE INDEX signals_new ON {s}.signals (at, n) WHERE state = 1;
