-- How far turns in the lines of concurrency keys have come that are shared fairly: "tag" of each who is what the next one goes by, and of
-- the row with clock = 1 how far the line is. Turns are taken within a priority.
CREATE TABLE {s}.shares (
  tag      bigint NOT NULL,
  at       bigint NOT NULL,
  priority integer NOT NULL,
  clock    smallint NOT NULL CHECK (clock IN (0, 1)), -- 1: the line's clock
  key      text COLLATE "C" NOT NULL,
  who      text COLLATE "C" NOT NULL,
  PRIMARY KEY (key, priority, clock, who)
) WITH (fillfactor = 50);
CREATE INDEX shares_at ON {s}.shares (at);
