-- What people read with psql (docs/operations.md). Nothing of Pawl reads these views. "ref" joins them.
ALTER TABLE {s}.ended ADD COLUMN queue text COLLATE "C"; -- null in rows of an earlier version

-- An execution's id as Pawl writes it: base32 of the bits.
CREATE FUNCTION {s}.execution_id(id uuid) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT 'ex_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(b.bits FROM 1 + 5 * i FOR 5)::bit(5)::integer, 1), '' ORDER BY i)
  FROM (SELECT ('x' || replace(id::text, '-', ''))::bit(128) || B'00' AS bits) b, generate_series(0, 25) i
$$;

-- A number of package row's encodings: seven bits to a byte, the lowest first. "next" is where the one behind it begins.
CREATE FUNCTION {s}.number_at(b bytea, at integer, OUT number bigint, OUT next integer) LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  factor bigint := 1;
BEGIN
  number := 0;
  next := at;
  LOOP
    number := number + (get_byte(b, next) & 127) * factor;
    factor := factor * 128;
    next := next + 1;
    EXIT WHEN get_byte(b, next - 1) < 128;
  END LOOP;
END $$;

-- An error is its code and its message, each behind its length.
CREATE FUNCTION {s}.error_texts(error bytea, OUT code text, OUT message text) LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  size bigint;
  at integer;
BEGIN
  SELECT n.number, n.next INTO size, at FROM {s}.number_at(error, 0) n;
  code := convert_from(substring(error FROM at + 1 FOR size::integer), 'UTF8');
  SELECT n.number, n.next INTO size, at FROM {s}.number_at(error, at + size::integer) n;
  message := convert_from(substring(error FROM at + 1 FOR size::integer), 'UTF8');
END $$;

-- The events of a run (row/history.go), of which the first has number "first".
CREATE FUNCTION {s}.events_of(history bytea, first bigint, created bigint)
RETURNS TABLE (seq bigint, attempt integer, type text, at timestamptz, data text) LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  names text[] := '{requested,scheduling,scheduled,provisioning,running,completed,failed,cancelled,timed_out,waiting,lost,advanced,progress}';
  next integer := 0;
  head bigint;
  n bigint;
BEGIN
  seq := first - 1;
  WHILE next < octet_length(history) LOOP
    seq := seq + 1;
    SELECT v.number, v.next INTO head, next FROM {s}.number_at(history, next) v;
    IF head & 2 <> 0 THEN
      SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
      seq := (n >> 1) # -(n & 1);
    END IF;
    IF head >> 2 = 0 THEN
      SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
      type := convert_from(substring(history FROM next + 1 FOR n::integer), 'UTF8');
      next := next + n::integer;
    ELSE
      type := names[head >> 2];
    END IF;
    SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
    attempt := n;
    SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
    at := to_timestamp((created + ((n >> 1) # -(n & 1))) / 1000000.0);
    data := NULL;
    IF head & 1 <> 0 THEN
      SELECT v.number, v.next INTO n, next FROM {s}.number_at(history, next) v;
      data := convert_from(substring(history FROM next + 1 FOR n::integer), 'UTF8');
      next := next + n::integer;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

CREATE VIEW {s}.overview AS
SELECT x.id AS ref, {s}.execution_id(x.id) AS id,
  ('{requested,scheduling,scheduled,provisioning,running,completed,failed,cancelled,timed_out}'::text[])[x.stage] AS status,
  x.queue, x.action, x.key, x.attempts,
  to_timestamp(x.created_at / 1000000.0) AS created_at, to_timestamp(x.finished_at / 1000000.0) AS finished_at,
  e.code AS error_code, e.message AS error_message
FROM (
  SELECT id, stage, queue, action, key, attempt AS attempts, created_at, NULL::bigint AS finished_at, NULL::bytea AS error FROM {s}.live
  UNION ALL
  SELECT id, stage, queue, action, NULL, ({s}.number_at(state, 0)).number::integer, created_at, finished_at, error FROM {s}.ended
) x LEFT JOIN LATERAL {s}.error_texts(x.error) e ON true;

CREATE VIEW {s}.overview_labels AS SELECT id AS ref, name, value FROM {s}.labels;

CREATE VIEW {s}.history AS
SELECT x.id AS ref, e.seq, e.attempt, e.type, e.at, e.data
FROM (SELECT id, created_at, history_from, history FROM {s}.live UNION ALL SELECT id, created_at, history_from, history FROM {s}.ended) x
  CROSS JOIN LATERAL (SELECT r.first, r.history FROM {s}.events r WHERE r.id = x.id UNION ALL SELECT x.history_from, x.history) h
  CROSS JOIN LATERAL {s}.events_of(h.history, h.first, x.created_at) e;
