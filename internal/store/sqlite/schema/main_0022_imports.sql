-- When executions without a parent were brought here from an archive: retention counts from then. Where they ran is in their "detail".
CREATE TABLE imports (
  n  INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
);
