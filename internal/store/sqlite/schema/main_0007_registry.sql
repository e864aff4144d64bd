-- Queues, lanes and languages that the server knows of, and its settings, lay among the definitions under names with a
-- prefix: "queue:gpu", "lane:default@docker", "language:cobol", "key:workers".
CREATE TABLE queues (
  name       TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE lanes (
  name       TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE languages (
  name       TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE settings (
  name  TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL -- JSON
) WITHOUT ROWID;
INSERT INTO queues SELECT substr(name, 7), min(created_at) FROM definitions WHERE kind = 'queue' AND name LIKE 'queue:%' GROUP BY name;
INSERT INTO lanes SELECT substr(name, 6), min(created_at) FROM definitions WHERE kind = 'lane' AND name LIKE 'lane:%' GROUP BY name;
INSERT INTO languages SELECT substr(name, 10), min(created_at) FROM definitions WHERE kind = 'language' AND name LIKE 'language:%' GROUP BY name;
INSERT INTO settings SELECT 'worker_key', CAST(document AS TEXT) FROM definitions WHERE name = 'key:workers' AND version = 1;
DELETE FROM definitions WHERE kind IN ('queue', 'lane', 'language', 'key');
