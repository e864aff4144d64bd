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
