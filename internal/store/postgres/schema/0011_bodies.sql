-- The SHA-256 of what was signed of a request under an id that nobody signed: the same content under another id may be sent by anybody
-- who has seen it.
ALTER TABLE {s}.signals ADD COLUMN body bytea CHECK (octet_length(body) = 32);
CREATE INDEX signals_body ON {s}.signals (body, at) WHERE body IS NOT NULL;
