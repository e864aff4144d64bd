-- Signals that a rule holds for one execution: "wake" is when the window closes, "first" and "last" are numbers of signals.
CREATE TABLE {s}.windows (
  opened bigint NOT NULL,
  wake   bigint NOT NULL,
  first  bigint NOT NULL,
  last   bigint NOT NULL,
  count  integer NOT NULL CHECK (count > 0),
  rule   text COLLATE "C" NOT NULL CHECK (rule <> ''),
  key    text COLLATE "C" NOT NULL,
  PRIMARY KEY (rule, key)
);
CREATE INDEX windows_wake ON {s}.windows (wake);
ALTER TABLE {s}.enforcements ADD COLUMN held_in text COLLATE "C"; -- key of the window in which the signal is, or was, held
CREATE INDEX enforcements_held ON {s}.enforcements (rule, held_in, signal) WHERE state = 2;
