-- The order in which a reader of the outcomes of a label has been given them: the number is drawn when the outcome is first read,
-- so a label that is never followed costs nothing. Numbers of one label grow in the order of their commits.
ALTER TABLE labels ADD COLUMN number INTEGER;
CREATE INDEX labels_number ON labels (name, value, number) WHERE number IS NOT NULL;
INSERT INTO counters (name, next) VALUES ('outcome', 1);
