-- Which executions are retries of another one. The other may be gone.
CREATE TABLE {s}.retries (
  original uuid NOT NULL,
  id       uuid NOT NULL,
  PRIMARY KEY (original, id)
);
