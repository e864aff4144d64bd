-- Contents that were sent ahead of the submissions that name them. The blob is named after "id". "sum" is null while the
-- content is on its way. It is kept until "until" and as long as a row of "holds" names it; what is dropped can be named by
-- nothing any more, and waits for its blob to be removed.
CREATE TABLE {s}.uploads (
  id      uuid NOT NULL PRIMARY KEY,
  sum     bytea,
  size    bigint NOT NULL,
  until   bigint NOT NULL,
  dropped boolean NOT NULL
);
CREATE UNIQUE INDEX uploads_sum ON {s}.uploads (sum) WHERE sum IS NOT NULL AND NOT dropped;
CREATE INDEX uploads_until ON {s}.uploads (dropped, until);

CREATE TABLE {s}.holds (
  id     uuid NOT NULL,
  upload uuid NOT NULL,
  PRIMARY KEY (id, upload)
);
CREATE INDEX holds_upload ON {s}.holds (upload);
