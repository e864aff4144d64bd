-- What rules have made of signals: at most one for each rule and signal. "reason" is JSON.
CREATE TABLE enforcements (
  signal    INTEGER NOT NULL,
  rule      TEXT NOT NULL CHECK (rule <> ''),
  version   INTEGER NOT NULL,
  state     INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5), -- 1 ran, 2 held, 3 folded, 4 refused, 5 failed
  at        INTEGER NOT NULL,
  execution BLOB CHECK (length(execution) = 16),
  reason    TEXT CHECK (json_valid(reason)),
  PRIMARY KEY (signal, rule),
  CHECK ((state IN (1, 3)) = (execution IS NOT NULL)),
  CHECK ((state > 3) = (reason IS NOT NULL))
) WITHOUT ROWID;
CREATE UNIQUE INDEX enforcements_lead ON enforcements (execution) WHERE state = 1;
CREATE INDEX enforcements_rule ON enforcements (rule, signal);
CREATE INDEX enforcements_bad ON enforcements (state, signal) WHERE state > 3;

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
