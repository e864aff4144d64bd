-- Actions can be paused as well: "kind" 3.
ALTER TABLE {s}.pauses DROP CONSTRAINT pauses_kind_check;
ALTER TABLE {s}.pauses ADD CONSTRAINT pauses_kind_check CHECK (kind IN (1, 2, 3));
