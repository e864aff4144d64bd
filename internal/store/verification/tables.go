package verification

// TableRule is a query for rows that violate an invariant: it returns an execution's id (or null) and the error.
type TableRule struct {
	Invariant int
	SQL       string // with "{s}." before the name of each table
}

// TableRules check tables that have the same columns in every store.
var TableRules = []TableRule{
	{26, `SELECT CAST(NULL AS uuid), 'schedule ' || v.schedule || ' has decided twice about ' || v.nominal FROM (
		SELECT schedule, nominal, lag(last) OVER (PARTITION BY schedule ORDER BY nominal) >= nominal AS again FROM {s}.ticks WHERE tag = '') v
		WHERE v.again LIMIT 1000`},
	{26, `SELECT execution, 'it was started by ' || count(*) || ' ticks' FROM {s}.ticks WHERE execution IS NOT NULL
		GROUP BY execution HAVING count(*) > 1 LIMIT 1000`},
	{26, `SELECT CAST(NULL AS uuid), 'schedule ' || s.name || ' has decided about ' || k.last || ' and does so again from ' || s.next || ' on'
		FROM {s}.schedules s JOIN {s}.ticks k ON k.schedule = s.name AND k.tag = '' WHERE k.last >= s.next LIMIT 1000`},
	{33, `SELECT CAST(NULL AS uuid), 'schedule ' || name || ' is due when it should not be, or is never due' FROM {s}.schedules
		WHERE (due IS NULL) <> (next IS NULL OR paused_at IS NOT NULL) LIMIT 1000`},
	{42, `SELECT w.execution, 'it has taken signal ' || w.signal || ', which is not what it waits for' FROM {s}.waits w JOIN {s}.signals s ON s.n = w.signal
		WHERE s.trigger <> w.trigger OR s.subject IS DISTINCT FROM w.subject OR s.at < w.since LIMIT 1000`},
	{46, `SELECT execution, 'its question ' || CASE state WHEN 3 THEN 'expired at ' ELSE 'was answered at ' END || closed_at || ', and was due ' || coalesce(CAST(due AS text), 'never')
		FROM {s}.inquiries WHERE state = 3 AND (due IS NULL OR closed_at < due) OR state = 2 AND closed_at >= due LIMIT 1000`},
	{33, `SELECT i.execution, 'its question is put to ' || a.who || ', and is not open' FROM {s}.assigned a LEFT JOIN {s}.inquiries i ON i.id = a.inquiry
		WHERE i.state IS DISTINCT FROM 1 LIMIT 1000`},
	{48, `SELECT CAST(NULL AS uuid), 'window ' || w.key || ' of rule ' || w.rule || ' counts ' || w.count || ' signals and holds ' || count(e.signal) FROM {s}.windows w
		LEFT JOIN {s}.enforcements e ON e.rule = w.rule AND e.held_in = w.key AND e.state = 2 GROUP BY w.rule, w.key HAVING count(e.signal) <> w.count LIMIT 1000`},
	{48, `SELECT CAST(NULL AS uuid), 'window ' || w.key || ' of rule ' || w.rule || ' counts ' || w.bytes || ' bytes and holds ' || sum(octet_length(s.data)) FROM {s}.windows w
		JOIN {s}.enforcements e ON e.rule = w.rule AND e.held_in = w.key AND e.state = 2 JOIN {s}.signals s ON s.n = e.signal
		GROUP BY w.rule, w.key HAVING sum(octet_length(s.data)) <> w.bytes LIMIT 1000`},
	{48, `SELECT CAST(NULL AS uuid), 'rule ' || e.rule || ' holds a signal in window ' || e.held_in || ', which is not there' FROM {s}.enforcements e
		LEFT JOIN {s}.windows w ON w.rule = e.rule AND w.key = e.held_in WHERE e.state = 2 AND w.rule IS NULL LIMIT 1000`},
	{39, `SELECT e.execution, 'rule ' || e.rule || ' enforces a signal that does not exist' FROM {s}.enforcements e
		WHERE NOT EXISTS (SELECT 1 FROM {s}.signals s WHERE s.n = e.signal) LIMIT 1000`},
	{39, `SELECT e.execution, 'rule ' || e.rule || ' has folded a signal into what rule ' || l.rule || ' has started' FROM {s}.enforcements e
		JOIN {s}.enforcements l ON l.execution = e.execution AND l.state = 1 WHERE e.state = 3 AND l.rule <> e.rule LIMIT 1000`},
}
