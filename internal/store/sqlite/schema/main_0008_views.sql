-- What people read with sqlite3 (docs/operations.md). Nothing of Pawl reads these views. "ref" joins them.
ALTER TABLE ended ADD COLUMN queue TEXT; -- null in rows of an earlier version

CREATE VIEW overview AS
SELECT r.n AS ref,
  (WITH RECURSIVE t(i, text) AS (SELECT 0, 'ex_' UNION ALL SELECT i + 1, text || substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + (
      (4096 * instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 1, 1)) + 256 * instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 2, 1))
      + 16 * instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 3, 1)) + instr('123456789ABCDEF', substr(hex(r.id) || '00', i * 5 / 8 * 2 + 4, 1)))
      >> (11 - i * 5 % 8) & 31), 1) FROM t WHERE i < 26) SELECT text FROM t WHERE i = 26) AS id,
  CASE r.stage WHEN 1 THEN 'requested' WHEN 2 THEN 'scheduling' WHEN 3 THEN 'scheduled' WHEN 4 THEN 'provisioning' WHEN 5 THEN 'running'
    WHEN 6 THEN 'completed' WHEN 7 THEN 'failed' WHEN 8 THEN 'cancelled' WHEN 9 THEN 'timed_out' END AS status,
  r.queue, r.action, r.key, r.attempts,
  strftime('%Y-%m-%d %H:%M:%f', r.created_at / 1000000.0, 'unixepoch') AS created_at,
  strftime('%Y-%m-%d %H:%M:%f', r.finished_at / 1000000.0, 'unixepoch') AS finished_at,
  CASE WHEN length(r.error) > 0 THEN CAST(substr(r.error, r.code_at, r.code_size) AS TEXT) END AS error_code,
  CASE WHEN length(r.error) > 0 THEN CAST(substr(r.error, r.code_at + r.code_size + CASE WHEN r.m1 < 128 THEN 1 WHEN r.m2 < 128 THEN 2 ELSE 3 END,
    CASE WHEN r.m1 < 128 THEN r.m1 WHEN r.m2 < 128 THEN r.m1 - 128 + 128 * r.m2 ELSE r.m1 - 128 + 128 * (r.m2 - 128) + 16384 * r.m3 END) AS TEXT) END AS error_message
FROM (
  -- The error is its code and its message, each behind its length: seven bits to a byte, the lowest first (package row).
  SELECT *,
    16 * instr('123456789ABCDEF', substr(message, 1, 1)) + instr('123456789ABCDEF', substr(message, 2, 1)) AS m1,
    16 * instr('123456789ABCDEF', substr(message, 3, 1)) + instr('123456789ABCDEF', substr(message, 4, 1)) AS m2,
    16 * instr('123456789ABCDEF', substr(message, 5, 1)) + instr('123456789ABCDEF', substr(message, 6, 1)) AS m3
  FROM (
    SELECT *, hex(substr(error, code_at + code_size, 3)) AS message FROM (
      SELECT *, CASE WHEN c1 < 128 THEN 2 ELSE 3 END AS code_at, CASE WHEN c1 < 128 THEN c1 ELSE c1 - 128 + 128 * c2 END AS code_size FROM (
        SELECT *, 16 * instr('123456789ABCDEF', substr(head, 1, 1)) + instr('123456789ABCDEF', substr(head, 2, 1)) AS c1,
          16 * instr('123456789ABCDEF', substr(head, 3, 1)) + instr('123456789ABCDEF', substr(head, 4, 1)) AS c2,
          CASE WHEN finished_at IS NULL THEN attempt WHEN a1 < 128 THEN a1 ELSE a1 - 128 + 128 * a2 END AS attempts
        FROM (
          SELECT e.n, e.id, l.stage, l.queue, e.action, l.key, l.attempt, e.created_at, NULL AS finished_at, NULL AS error, '' AS head, 0 AS a1, 0 AS a2
          FROM live l JOIN executions e ON e.n = l.n
          UNION ALL
          SELECT e.n, e.id, d.stage, d.queue, e.action, NULL, NULL, e.created_at, e.created_at + d.finished_after, d.error, hex(substr(d.error, 1, 2)),
            16 * instr('123456789ABCDEF', substr(hex(d.state), 1, 1)) + instr('123456789ABCDEF', substr(hex(d.state), 2, 1)),
            16 * instr('123456789ABCDEF', substr(hex(d.state), 3, 1)) + instr('123456789ABCDEF', substr(hex(d.state), 4, 1))
          FROM ended d JOIN executions e ON e.n = d.n
        )
      )
    )
  )
) r;

CREATE VIEW overview_labels AS SELECT n AS ref, name, value FROM labels;

CREATE VIEW history AS
SELECT v.k / 4194304 AS ref, v.k % 4194304 AS seq, v.attempt,
  CASE v.type WHEN 1 THEN 'requested' WHEN 2 THEN 'scheduling' WHEN 3 THEN 'scheduled' WHEN 4 THEN 'provisioning' WHEN 5 THEN 'running'
    WHEN 6 THEN 'completed' WHEN 7 THEN 'failed' WHEN 8 THEN 'cancelled' WHEN 9 THEN 'timed_out' WHEN 10 THEN 'waiting' WHEN 11 THEN 'lost'
    WHEN 12 THEN 'advanced' WHEN 13 THEN 'progress' ELSE v.type END AS type,
  strftime('%Y-%m-%d %H:%M:%f', (e.created_at + v.after) / 1000000.0, 'unixepoch') AS at,
  CAST(v.data AS TEXT) AS data
FROM executions e JOIN events v ON v.k >= e.n * 4194304 AND v.k < (e.n + 1) * 4194304;
