-- When executions without a parent were brought here from an archive: retention counts from then. Where they ran is in their "detail".
CREATE TABLE {s}.imports (
  id uuid PRIMARY KEY,
  at bigint NOT NULL
);
