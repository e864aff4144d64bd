package postgres

import "strings"

// statements are the texts of a store's statements.
type statements struct {
	putWhole, begin, lazily, add, name, drop, find, piece, remove, sweep string
}

// rename assigns a name to a content; the content that had the name before becomes loose.
const rename = ` ON CONFLICT (name) DO UPDATE SET content = EXCLUDED.content, size = EXCLUDED.size, replaced = b.content RETURNING replaced),
	loosened AS (INSERT INTO {s}.blob_loose (content, until) SELECT replaced, clock_timestamp() + make_interval(secs => `

func render(schema string) statements {
	sql := func(text string) string { return strings.ReplaceAll(text, "{s}", schema) }
	return statements{
		// A blob with a single piece need not be among the loose contents.
		putWhole: sql(`WITH fresh AS MATERIALIZED (SELECT nextval('{s}.blob_contents') AS content),
			piece AS (INSERT INTO {s}.blob_pieces (content, number, data) SELECT content, 0, $2::bytea FROM fresh),
			named AS (INSERT INTO {s}.blobs AS b (name, content, size) SELECT $1::text, content, length($2::bytea) FROM fresh` +
			rename + `$3) FROM named WHERE replaced IS NOT NULL)
			SELECT content FROM fresh`),
		begin:  sql(`INSERT INTO {s}.blob_loose (content, until) VALUES (nextval('{s}.blob_contents'), clock_timestamp() + make_interval(secs => $1)) RETURNING content`),
		lazily: `SELECT set_config('synchronous_commit', 'off', true)`,
		// A sweep locks the same row of blob_loose, so no piece is added after its content has been given up. A content has been given up when
		// its time has passed, because a sweep may have removed a part of it.
		add: sql(`WITH alive AS (UPDATE {s}.blob_loose SET until = clock_timestamp() + make_interval(secs => $4) WHERE content = $1 AND until > clock_timestamp() RETURNING content)
			INSERT INTO {s}.blob_pieces (content, number, data) SELECT content, $2::integer, $3::bytea FROM alive`),
		name: sql(`WITH alive AS (DELETE FROM {s}.blob_loose WHERE content = $2 AND until > clock_timestamp() RETURNING content),
			named AS (INSERT INTO {s}.blobs AS b (name, content, size) SELECT $1::text, content, $3::bigint FROM alive` +
			rename + `$4) FROM named WHERE replaced IS NOT NULL)
			SELECT count(*) FROM alive`),
		drop:  sql(`UPDATE {s}.blob_loose SET until = clock_timestamp() WHERE content = $1`),
		find:  sql(`SELECT content, size FROM {s}.blobs WHERE name = $1`),
		piece: sql(`SELECT data FROM {s}.blob_pieces WHERE content = $1 AND number = $2`),
		// There are two branches, because the planner has no index scan for "this name or that range": it would compare each prefix with each
		// row. With LATERAL its only plan is to look each prefix up. The names found are then removed by their primary key; a name that matches
		// two prefixes counts twice. '0' follows '/'.
		remove: sql(`WITH found AS MATERIALIZED (SELECT b.name FROM unnest($1::text[]) AS p (prefix) CROSS JOIN LATERAL (
				(SELECT name FROM {s}.blobs WHERE name = p.prefix)
				UNION ALL (SELECT name FROM {s}.blobs WHERE name >= p.prefix || '/' AND name < p.prefix || '0' ORDER BY name LIMIT $3)) AS b LIMIT $3),
			gone AS (DELETE FROM {s}.blobs WHERE name = ANY (ARRAY(SELECT name FROM found)) RETURNING content),
			loosened AS (INSERT INTO {s}.blob_loose (content, until) SELECT content, clock_timestamp() + make_interval(secs => $2) FROM gone)
			SELECT count(*) FROM found`),
		// The pieces in order, as many as the limits of rows ($2) and of bytes ($3) allow: a content before the last one among them is removed
		// completely, and so is the last one if no limit was reached. Contents that another sweep has removed meanwhile count, too.
		sweep: sql(`WITH due AS MATERIALIZED (SELECT content FROM {s}.blob_loose WHERE until < clock_timestamp() ORDER BY content LIMIT $1 FOR UPDATE SKIP LOCKED),
			next AS MATERIALIZED (SELECT content, number, sum(size) OVER (ORDER BY content, number) - size AS before FROM (
				SELECT p.content, p.number, octet_length(p.data) AS size FROM due CROSS JOIN LATERAL (
					SELECT content, number, data FROM {s}.blob_pieces WHERE content = due.content ORDER BY number LIMIT $2) AS p
				ORDER BY p.content, p.number LIMIT $2) AS page),
			few AS MATERIALIZED (SELECT content, number FROM next WHERE before < $3::bigint),
			gone AS (DELETE FROM {s}.blob_pieces p USING few WHERE p.content = ANY (ARRAY[few.content]) AND p.number = ANY (ARRAY[few.number])),
			over AS (DELETE FROM {s}.blob_loose l USING due WHERE l.content = ANY (ARRAY[due.content]) AND (
				due.content < (SELECT max(content) FROM few) OR
				(SELECT count(*) FROM few) = (SELECT count(*) FROM next) AND (SELECT count(*) FROM next) < $2))
			SELECT count(*) FROM due`),
	}
}
