-- Queues, lanes and languages that servers know of, and settings that they share, lay among the definitions under names with
-- a prefix: "queue:gpu", "lane:default@docker", "language:cobol", "key:workers".
CREATE TABLE {s}.queues (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL
);
CREATE TABLE {s}.lanes (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL
);
CREATE TABLE {s}.languages (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL
);
CREATE TABLE {s}.settings (
  name  text COLLATE "C" NOT NULL PRIMARY KEY,
  value text NOT NULL -- JSON
);
INSERT INTO {s}.queues SELECT substr(name, 7), min(created_at) FROM {s}.definitions WHERE kind = 'queue' AND name LIKE 'queue:%' GROUP BY name;
INSERT INTO {s}.lanes SELECT substr(name, 6), min(created_at) FROM {s}.definitions WHERE kind = 'lane' AND name LIKE 'lane:%' GROUP BY name;
INSERT INTO {s}.languages SELECT substr(name, 10), min(created_at) FROM {s}.definitions WHERE kind = 'language' AND name LIKE 'language:%' GROUP BY name;
INSERT INTO {s}.settings SELECT 'worker_key', convert_from(document, 'UTF8') FROM {s}.definitions WHERE name = 'key:workers' AND version = 1;
DELETE FROM {s}.definitions WHERE kind IN ('queue', 'lane', 'language', 'key');

-- A server of an earlier version would look for them there, and make a new key. It finds its column gone: it answers 503
-- until it is replaced.
ALTER TABLE {s}.definitions RENAME COLUMN created_at TO defined_at;
