-- How far turns in the lines of concurrency keys have come that are shared fairly: "tag" of each who is what the next one goes by, and of
-- the row with clock = 1 how far the line is. Turns are taken within a priority.
CREATE TABLE shares (
  key      TEXT NOT NULL,
  priority INTEGER NOT NULL,
  clock    INTEGER NOT NULL CHECK (clock IN (0, 1)), -- 1: the line's clock
  who      TEXT NOT NULL,
  tag      INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (key, priority, clock, who)
) WITHOUT ROWID;
CREATE INDEX shares_at ON shares (at);
