-- Signals and waits that a loop could not handle, and leaves alone until a moment. "kind" is what could not be done: 1 ask the rules about
-- signal "id", 2 ask open waits about it, 3 let the wait of execution "id" look at signals. "times" counts how often that was tried.
CREATE TABLE asides (
  kind   INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
  id     BLOB NOT NULL CHECK (length(id) = 16),
  until  INTEGER NOT NULL,
  times  INTEGER NOT NULL CHECK (times > 0),
  reason TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX asides_until ON asides (until);

-- What retention has left behind of signals that it removed.
DELETE FROM unmet WHERE signal NOT IN (SELECT n FROM signals);
