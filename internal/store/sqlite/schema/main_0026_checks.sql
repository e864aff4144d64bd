-- What SQLite refuses, whoever writes it. "place" is 0 placed nowhere, 1 delayed, 2 in its key's line, 3 in its queue, 4 held; "stage" is
-- counted as in docs/states.md: what is put aside leaves its queue in stage 3. ALTER TABLE … ADD CONSTRAINT would read every row and fail at the first that breaks it: a row that a disk has
-- damaged would keep the program from starting. So the texts of the tables are changed instead, which changes no row and reads none.
-- `pawl doctor --verify` names rows of an earlier version that break a promise.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || CASE name
  WHEN 'live' THEN ', CONSTRAINT live_place CHECK (CASE place WHEN 0 THEN stage IN (1, 2) WHEN 1 THEN stage IN (1, 3) WHEN 2 THEN stage IN (1, 2)
    WHEN 3 THEN stage = 3 WHEN 4 THEN stage IN (4, 5) ELSE false END),
  CONSTRAINT live_owner CHECK (owner IS NULL OR place = 4 AND length(owner) = 16),
  CONSTRAINT live_numbers CHECK (attempt > 0 AND next_seq > 1))'
  WHEN 'ended' THEN ', CONSTRAINT ended_stage CHECK (stage BETWEEN 6 AND 9))'
  WHEN 'kept' THEN ', CONSTRAINT kept_hash CHECK (length(hash) = 32))'
  END
WHERE type = 'table' AND name IN ('live', 'ended', 'kept');
-- "WITHOUT ROWID" stands behind the columns of this one.
UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - length(') WITHOUT ROWID')) || ', CONSTRAINT children_ended CHECK (ended = 2 OR ended BETWEEN 6 AND 9),
  CONSTRAINT children_numbers CHECK (attempt > 0 AND idx >= 0)) WITHOUT ROWID'
WHERE type = 'table' AND name = 'children';
PRAGMA writable_schema = RESET;
