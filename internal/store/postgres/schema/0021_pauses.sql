-- Who has paused or resumed what, when and why: "kind" is 1 a queue, 2 a worker. Rows are only added; the latest of a subject counts. A pause
-- ends by itself at "until"; 0: when it is resumed.
CREATE TABLE {s}.pauses (
  generation bigint NOT NULL PRIMARY KEY CHECK (generation > 0),
  at         bigint NOT NULL,
  until      bigint NOT NULL CHECK (until = 0 OR paused AND until > at),
  kind       smallint NOT NULL CHECK (kind IN (1, 2)),
  paused     boolean NOT NULL,
  name       text COLLATE "C" NOT NULL CHECK (name <> ''),
  who        text NOT NULL,
  reason     text NOT NULL
);
CREATE UNIQUE INDEX pauses_subject ON {s}.pauses (kind, name, generation);
