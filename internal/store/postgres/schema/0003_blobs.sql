-- What is too big for a row (blob/postgres). A content is written piece by piece and named when it is whole; readers find
-- it by its name, so nobody sees a part.
CREATE SEQUENCE {s}.blob_contents;

CREATE TABLE {s}.blobs (
  content  bigint NOT NULL,
  size     bigint NOT NULL,
  replaced bigint, -- the content that had the name before
  name     text COLLATE "C" PRIMARY KEY
);

CREATE TABLE {s}.blob_pieces (
  content bigint NOT NULL,
  number  integer NOT NULL, -- 0, 1, 2 …, all but the last of the same size
  data    bytea NOT NULL,
  PRIMARY KEY (content, number)
);
ALTER TABLE {s}.blob_pieces ALTER data SET STORAGE EXTERNAL; -- compressing it again would cost more than it saves

-- Contents without a name: still being written, or removed and perhaps still being read. Their pieces may go after a
-- moment that every piece written moves on.
CREATE TABLE {s}.blob_loose (
  content bigint PRIMARY KEY,
  until   timestamptz NOT NULL
) WITH (fillfactor = 50);
