-- How far schedules are, by their names. "next" is the first nominal time that is not decided about, "due" when that is to be
-- done; both are null when there is none, and "due" is null while the schedule is paused.
CREATE TABLE {s}.schedules (
  version   bigint NOT NULL,
  next      bigint,
  due       bigint,
  last      bigint,
  paused_at bigint,
  execution uuid,
  name      text COLLATE "C" NOT NULL PRIMARY KEY,
  reason    text NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX schedules_due ON {s}.schedules (due) WHERE due IS NOT NULL;

-- What became of nominal times. The key is what lets a schedule fire once for each; "tag" is of what was fired by hand. A row
-- without an execution says that "count" times were missed, the last of them "last".
CREATE TABLE {s}.ticks (
  nominal   bigint NOT NULL,
  last      bigint NOT NULL,
  count     bigint NOT NULL,
  at        bigint NOT NULL,
  execution uuid,
  schedule  text COLLATE "C" NOT NULL,
  tag       text COLLATE "C" NOT NULL,
  why       text NOT NULL,
  message   text NOT NULL,
  PRIMARY KEY (schedule, nominal, tag)
);
CREATE INDEX ticks_at ON {s}.ticks (at);
