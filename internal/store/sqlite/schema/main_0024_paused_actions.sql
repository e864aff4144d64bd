-- Actions can be paused as well: "kind" 3.
CREATE TABLE pauses_next (
  generation INTEGER PRIMARY KEY CHECK (generation > 0),
  kind       INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
  name       TEXT NOT NULL CHECK (name <> ''),
  paused     INTEGER NOT NULL CHECK (paused IN (0, 1)),
  at         INTEGER NOT NULL,
  until      INTEGER NOT NULL CHECK (until = 0 OR paused AND until > at),
  who        TEXT NOT NULL,
  reason     TEXT NOT NULL
);
INSERT INTO pauses_next (generation, kind, name, paused, at, until, who, reason)
  SELECT generation, kind, name, paused, at, until, who, reason FROM pauses;
DROP TABLE pauses;
ALTER TABLE pauses_next RENAME TO pauses;
CREATE UNIQUE INDEX pauses_subject ON pauses (kind, name, generation);
