-- The order in which a reader of the outcomes of a label has been given them: the number is drawn when the outcome is first read,
-- so a label that is never followed costs nothing. Numbers of one label are drawn under a lock that is held until the commit, so
-- they grow in the order of their commits.
ALTER TABLE {s}.labels ADD COLUMN number bigint;
CREATE INDEX labels_number ON {s}.labels (name, value, number) WHERE number IS NOT NULL;
CREATE SEQUENCE {s}.outcomes;
