-- Held signals are read in the order in which they were held; a window counts the bytes of their data.
ALTER TABLE {s}.windows ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
UPDATE {s}.windows w SET bytes = (SELECT coalesce(sum(octet_length(s.data)), 0) FROM {s}.enforcements e JOIN {s}.signals s ON s.n = e.signal
  WHERE e.rule = w.rule AND e.held_in = w.key AND e.state = 2);
DROP INDEX {s}.enforcements_held;
CREATE INDEX enforcements_held ON {s}.enforcements (rule, held_in, at, signal) WHERE state = 2;
