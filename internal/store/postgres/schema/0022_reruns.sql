-- Which executions run another one again. The other may be gone.
CREATE TABLE {s}.reruns (
  original uuid NOT NULL,
  id       uuid NOT NULL,
  PRIMARY KEY (original, id)
);

-- What the items of a rerun that has not ended are to end with instead of running. "origin" ran to put the output out.
CREATE TABLE {s}.reuses (
  workflow uuid NOT NULL,
  origin   uuid NOT NULL,
  idx      integer NOT NULL,
  task     text COLLATE "C" NOT NULL,
  hash     bytea NOT NULL,
  output   bytea,
  PRIMARY KEY (workflow, task, idx)
);
