-- What each transaction made of the state of a workflow with many children: with the number of the last change that it knows, an
-- engine learns how far the workflow is without counting its children. "number" counts 1, 2, 3 … within an attempt. "change"
-- is package orchestration's.
CREATE TABLE changes (
  workflow INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  change   BLOB NOT NULL,
  PRIMARY KEY (workflow, attempt, number)
) WITHOUT ROWID;
