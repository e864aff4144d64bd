-- Outcomes that are kept for executions with the same to do. The execution that ran may be gone.
CREATE TABLE {s}.kept (
  hash    bytea PRIMARY KEY,
  origin  uuid NOT NULL,
  at      bigint NOT NULL,
  expires bigint NOT NULL,
  output  bytea
);
CREATE INDEX kept_expires ON {s}.kept (expires);
