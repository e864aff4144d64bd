-- What the server refuses, whoever writes it. "place" is 0 placed nowhere, 1 delayed, 2 in its key's line, 3 in its queue, 4 held; "stage" is
-- counted as in docs/states.md: what is put aside leaves its queue in stage 3. NOT VALID: rows of an earlier version are not read, so this takes as long on a million rows as on none, and one
-- that a disk has damaged does not keep a server from starting. `pawl doctor --verify` names such rows.
ALTER TABLE {s}.live
  ADD CONSTRAINT live_place CHECK (CASE place WHEN 0 THEN stage IN (1, 2) WHEN 1 THEN stage IN (1, 3) WHEN 2 THEN stage IN (1, 2)
    WHEN 3 THEN stage = 3 WHEN 4 THEN stage IN (4, 5) ELSE false END) NOT VALID,
  ADD CONSTRAINT live_owner CHECK (owner IS NULL OR place = 4) NOT VALID,
  ADD CONSTRAINT live_numbers CHECK (attempt > 0 AND next_seq > 1) NOT VALID;
ALTER TABLE {s}.ended ADD CONSTRAINT ended_stage CHECK (stage BETWEEN 6 AND 9) NOT VALID;
ALTER TABLE {s}.children
  ADD CONSTRAINT children_ended CHECK (ended_as = 0 OR ended_as BETWEEN 6 AND 9) NOT VALID,
  ADD CONSTRAINT children_numbers CHECK (attempt > 0 AND idx >= 0) NOT VALID;
ALTER TABLE {s}.kept ADD CONSTRAINT kept_hash CHECK (octet_length(hash) = 32) NOT VALID;
