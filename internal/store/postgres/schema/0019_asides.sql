-- Signals and waits that a loop could not handle, and leaves alone until a moment. "kind" is what could not be done: 1 ask the rules about
-- signal "id", 2 ask open waits about it, 3 let the wait of execution "id" look at signals. "times" counts how often that was tried.
CREATE TABLE {s}.asides (
  until  bigint NOT NULL,
  id     uuid NOT NULL,
  times  integer NOT NULL CHECK (times > 0),
  kind   smallint NOT NULL CHECK (kind IN (1, 2, 3)),
  reason text NOT NULL,
  PRIMARY KEY (kind, id)
);
CREATE INDEX asides_until ON {s}.asides (until);

-- What retention has left behind of signals that it removed.
DELETE FROM {s}.unmet u WHERE NOT EXISTS (SELECT 1 FROM {s}.signals s WHERE s.n = u.signal);
