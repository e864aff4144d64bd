-- What interactive executions are given to read while they run: pieces, each at its offset.
CREATE TABLE {s}.inputs (
  id     uuid NOT NULL,
  start  bigint NOT NULL,
  number integer NOT NULL, -- 1, 2, 3 …
  last   boolean NOT NULL, -- nothing follows
  data   bytea NOT NULL,
  PRIMARY KEY (id, start)
);
