-- A list asks for the open question of each workflow that it shows, of which a workflow of 10,000 answered ones has none.
CREATE INDEX inquiries_open ON inquiries (asker, purpose) WHERE closed_at IS NULL;
