-- From when on a schedule's failures are counted: since it was resumed, or its document applied.
ALTER TABLE schedules ADD COLUMN counted_from INTEGER;
