-- How far the rates of keys are used up: "tat" is when a key would be idle if all that has begun had come evenly spaced. A row whose tat has
-- passed says what no row says.
CREATE TABLE meters (
  key TEXT NOT NULL PRIMARY KEY CHECK (key <> ''),
  tat INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX meters_tat ON meters (tat);
