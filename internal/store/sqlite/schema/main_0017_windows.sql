-- Signals that a rule holds for one execution: "wake" is when the window closes, "first" and "last" are numbers of signals.
CREATE TABLE windows (
  rule   TEXT NOT NULL CHECK (rule <> ''),
  key    TEXT NOT NULL,
  opened INTEGER NOT NULL,
  wake   INTEGER NOT NULL,
  count  INTEGER NOT NULL CHECK (count > 0),
  first  INTEGER NOT NULL,
  last   INTEGER NOT NULL,
  PRIMARY KEY (rule, key)
) WITHOUT ROWID;
CREATE INDEX windows_wake ON windows (wake);
ALTER TABLE enforcements ADD COLUMN held_in TEXT; -- key of the window in which the signal is, or was, held
CREATE INDEX enforcements_held ON enforcements (rule, held_in, signal) WHERE state = 2;
