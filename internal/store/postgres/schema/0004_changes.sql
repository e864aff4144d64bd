-- What each transaction made of the state of a workflow with many children: with the number of the last change that it knows, a
-- server learns how far the workflow is without counting its children. "number" counts 1, 2, 3 … within an attempt, and is
-- drawn under the lock of the workflow's row. "change" is package orchestration's.
CREATE TABLE {s}.changes (
  workflow uuid NOT NULL,
  number   bigint NOT NULL,
  attempt  integer NOT NULL,
  change   bytea NOT NULL,
  PRIMARY KEY (workflow, attempt, number)
);

-- A server of an earlier version ends children without writing changes. It finds its column gone and can write nothing more:
-- it answers 503 until it is replaced.
ALTER TABLE {s}.children RENAME COLUMN ended TO ended_as;
