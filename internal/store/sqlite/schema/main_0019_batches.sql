-- Held signals are read in the order in which they were held; a window counts the bytes of their data.
ALTER TABLE windows ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE windows SET bytes = (SELECT coalesce(sum(length(CAST(s.data AS BLOB))), 0) FROM enforcements e JOIN signals s ON s.n = e.signal
  WHERE e.rule = windows.rule AND e.held_in = windows.key AND e.state = 2);
DROP INDEX enforcements_held;
CREATE INDEX enforcements_held ON enforcements (rule, held_in, at, signal) WHERE state = 2;
