-- The questions to people that executions wait for: one for each purpose of an asking workflow. "execution" waits for the
-- answer, or was the last to do so. "revision" counts the changes of a row.
CREATE TABLE inquiries (
  id        BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  asker     BLOB NOT NULL CHECK (length(asker) = 16),
  purpose   TEXT NOT NULL CHECK (purpose <> ''),
  execution BLOB NOT NULL CHECK (length(execution) = 16),
  state     INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4), -- open, answered, expired, withdrawn
  revision  INTEGER NOT NULL CHECK (revision > 0),
  asked_at  INTEGER NOT NULL,
  due       INTEGER CHECK (due > asked_at),
  closed_at INTEGER CHECK ((closed_at IS NULL) = (state = 1)),
  question  TEXT NOT NULL CHECK (json_valid(question)),
  answer    TEXT CHECK (answer IS NULL OR json_valid(answer) AND state IN (2, 3)) CHECK (state <> 2 OR answer IS NOT NULL)
);
CREATE UNIQUE INDEX inquiries_purpose ON inquiries (asker, purpose);
CREATE UNIQUE INDEX inquiries_execution ON inquiries (execution);
CREATE INDEX inquiries_state ON inquiries (state, id);

-- To whom open inquiries were put by name.
CREATE TABLE assigned (
  who     TEXT NOT NULL,
  inquiry BLOB NOT NULL,
  PRIMARY KEY (who, inquiry)
) WITHOUT ROWID;
