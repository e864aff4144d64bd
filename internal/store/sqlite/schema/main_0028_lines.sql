-- What was put aside in its queue and finds its key full when it is tried again waits in the key's line, in stage 3. The text of the table is changed, as
-- in main_0026_checks.sql: no row is read.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'WHEN 2 THEN stage IN (1, 2)', 'WHEN 2 THEN stage IN (1, 2, 3)') WHERE type = 'table' AND name = 'live';
PRAGMA writable_schema = RESET;
