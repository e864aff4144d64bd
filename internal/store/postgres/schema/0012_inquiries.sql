-- The questions to people that executions wait for: one for each purpose of an asking workflow. "execution" waits for the
-- answer, or was the last to do so. "revision" counts the changes of a row.
CREATE TABLE {s}.inquiries (
  asked_at  bigint NOT NULL,
  due       bigint CHECK (due > asked_at),
  closed_at bigint,
  id        uuid NOT NULL PRIMARY KEY,
  asker     uuid NOT NULL,
  execution uuid NOT NULL,
  revision  integer NOT NULL CHECK (revision > 0),
  state     smallint NOT NULL CHECK (state BETWEEN 1 AND 4), -- open, answered, expired, withdrawn
  purpose   text COLLATE "C" NOT NULL CHECK (purpose <> ''),
  question  json NOT NULL,
  answer    json,
  CHECK ((closed_at IS NULL) = (state = 1)),
  CHECK (answer IS NULL OR state IN (2, 3)),
  CHECK (state <> 2 OR answer IS NOT NULL)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX inquiries_purpose ON {s}.inquiries (asker, purpose);
CREATE UNIQUE INDEX inquiries_execution ON {s}.inquiries (execution);
CREATE INDEX inquiries_state ON {s}.inquiries (state, id);

-- To whom open inquiries were put by name.
CREATE TABLE {s}.assigned (
  inquiry uuid NOT NULL,
  who     text COLLATE "C" NOT NULL,
  PRIMARY KEY (who, inquiry)
);
CREATE INDEX assigned_inquiry ON {s}.assigned (inquiry);
