-- Who has paused or resumed what, when and why: "kind" is 1 a queue, 2 a worker. Rows are only added; the latest of a subject counts. A pause
-- ends by itself at "until"; 0: when it is resumed.
CREATE TABLE pauses (
  generation INTEGER PRIMARY KEY CHECK (generation > 0),
  kind       INTEGER NOT NULL CHECK (kind IN (1, 2)),
  name       TEXT NOT NULL CHECK (name <> ''),
  paused     INTEGER NOT NULL CHECK (paused IN (0, 1)),
  at         INTEGER NOT NULL,
  until      INTEGER NOT NULL CHECK (until = 0 OR paused AND until > at),
  who        TEXT NOT NULL,
  reason     TEXT NOT NULL
);
CREATE UNIQUE INDEX pauses_subject ON pauses (kind, name, generation);
