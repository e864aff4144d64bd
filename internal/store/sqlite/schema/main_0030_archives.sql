-- Archives are opened in a store of their own. What an earlier version has brought here from one stays, and is kept as long as what ran here.
DROP TABLE imports;
DELETE FROM definitions WHERE kind = 'imported';
