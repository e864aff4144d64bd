-- How far the rates of keys are used up: "tat" is when a key would be idle if all that has begun had come evenly spaced. A row whose tat has
-- passed says what no row says.
CREATE TABLE {s}.meters (
  tat bigint NOT NULL,
  key text COLLATE "C" NOT NULL PRIMARY KEY CHECK (key <> '')
) WITH (fillfactor = 50);
CREATE INDEX meters_tat ON {s}.meters (tat);
