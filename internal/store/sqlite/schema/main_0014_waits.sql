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
