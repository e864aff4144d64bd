-- How far schedules are, by their names. "next" is the first nominal time that is not decided about, "due" when that is to be
-- done; both are NULL when there is none, and "due" is NULL while the schedule is paused.
CREATE TABLE schedules (
  name      TEXT NOT NULL PRIMARY KEY,
  version   INTEGER NOT NULL,
  next      INTEGER,
  due       INTEGER,
  last      INTEGER,
  paused_at INTEGER,
  execution BLOB,
  reason    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (due) WHERE due IS NOT NULL;

-- What became of nominal times. The key is what lets a schedule fire once for each; "tag" is of what was fired by hand. A row
-- without an execution says that "count" times were missed, the last of them "last".
CREATE TABLE ticks (
  schedule  TEXT NOT NULL,
  nominal   INTEGER NOT NULL,
  tag       TEXT NOT NULL,
  last      INTEGER NOT NULL,
  count     INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  execution BLOB,
  why       TEXT NOT NULL,
  message   TEXT NOT NULL,
  PRIMARY KEY (schedule, nominal, tag)
) WITHOUT ROWID;
CREATE INDEX ticks_at ON ticks (at);
