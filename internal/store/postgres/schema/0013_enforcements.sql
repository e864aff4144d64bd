-- What rules have made of signals: at most one for each rule and signal.
CREATE TABLE {s}.enforcements (
  signal    bigint NOT NULL,
  at        bigint NOT NULL,
  execution uuid,
  version   integer NOT NULL,
  state     smallint NOT NULL CHECK (state BETWEEN 1 AND 5), -- 1 ran, 2 held, 3 folded, 4 refused, 5 failed
  rule      text COLLATE "C" NOT NULL CHECK (rule <> ''),
  reason    json,
  PRIMARY KEY (signal, rule),
  CHECK ((state IN (1, 3)) = (execution IS NOT NULL)),
  CHECK ((state > 3) = (reason IS NOT NULL))
);
CREATE UNIQUE INDEX enforcements_lead ON {s}.enforcements (execution) WHERE state = 1;
CREATE INDEX enforcements_rule ON {s}.enforcements (rule, signal);
CREATE INDEX enforcements_bad ON {s}.enforcements (state, signal) WHERE state > 3;

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
