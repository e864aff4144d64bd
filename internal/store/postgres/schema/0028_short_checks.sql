-- The same checks in fewer words. PostgreSQL reads the text of a table's checks anew for each statement that writes to the table: 6,500 bytes of
-- them took 57 µs of an UPDATE of one row that takes 118 µs without. These are 1,600. "place * 100 + stage" is one number for both columns: 303 is place 3, in its
-- queue, and stage 3, scheduled. 203 is new: what was put aside in its queue and finds its key full when it is tried again waits in the key's line. Attempts and numbers of events are checked by `pawl doctor --verify` only. NOT VALID as in step 26.
ALTER TABLE {s}.live
  DROP CONSTRAINT live_place,
  DROP CONSTRAINT live_numbers,
  ADD CONSTRAINT live_place CHECK (place * 100 + stage = ANY ('{1, 2, 101, 103, 201, 202, 203, 303, 404, 405}')) NOT VALID;
ALTER TABLE {s}.ended
  DROP CONSTRAINT ended_stage,
  ADD CONSTRAINT ended_stage CHECK (stage = ANY ('{6, 7, 8, 9}')) NOT VALID;
ALTER TABLE {s}.children
  DROP CONSTRAINT children_ended,
  DROP CONSTRAINT children_numbers,
  ADD CONSTRAINT children_ended CHECK (ended_as = ANY ('{0, 6, 7, 8, 9}')) NOT VALID;
