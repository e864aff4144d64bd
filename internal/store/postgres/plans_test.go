package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
)

// A server may plan a statement at any time, even while the statistics say that the tables are empty: then a full scan seems to cost
// nothing, and the plan is kept when there are a million rows. So every table must be read by a condition on an index.
func TestPlansOfEmptyTables(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	s := open(t, server(t), schema)
	for _, kind := range []struct {
		name     string
		settings []setting
	}{{"writers", writing()}, {"readers", reading()}} {
		t.Run(kind.name, func(t *testing.T) {
			ctx := t.Context()
			c, err := pgx.Connect(ctx, server(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(ctx)
			var names []string
			if err := c.QueryRow(ctx, `SELECT array_agg(format('%I.%I', schemaname, tablename)) FROM pg_tables WHERE schemaname = $1`, schema).Scan(&names); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				execute(t, server(t), `VACUUM ANALYZE `+name)
			}
			for _, v := range kind.settings {
				if _, err := c.Exec(ctx, `SELECT set_config($1, $2, false)`, v.name, v.value); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Exec(ctx, `SET plan_cache_mode = force_generic_plan`); err != nil {
				t.Fatal(err)
			}
			first := firstColumns(t, schema)
			for _, q := range queries {
				if whole[q] || slices.ContainsFunc(relational.Statements, func(k *relational.Statement) bool { return k.Whole && sharedQueries[k.Slot] == q }) {
					continue
				}
				st := s.statements[q.slot]
				d, err := c.Prepare(ctx, st.name, st.text)
				if err != nil {
					t.Fatalf("%s: %v", st.text, err)
				}
				if !strings.Contains(st.text, s.schema+".") {
					continue
				}
				execute := `EXPLAIN (FORMAT JSON) EXECUTE ` + st.name
				if n := len(d.ParamOIDs); n > 0 {
					execute += `(` + strings.Join(slices.Repeat([]string{"NULL"}, n), ",") + `)`
				}
				var text []byte
				if err := c.QueryRow(ctx, execute, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
					t.Fatalf("%s: %v", st.text, err)
				}
				var plans []struct{ Plan plan }
				if err := json.Unmarshal(text, &plans); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				for _, p := range plans {
					if say := p.Plan.whole(first); say != "" {
						t.Errorf("%s\nin %s", say, strings.Join(strings.Fields(st.text), " "))
					}
				}
			}
		})
	}
}

// Counting executions with a label reads only those, and no whole table, both with plans for empty tables and for full ones.
func TestPlansOfTallies(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	s := open(t, server(t), schema)
	ctx := t.Context()
	c, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	for _, v := range reading() {
		if _, err := c.Exec(ctx, `SELECT set_config($1, $2, false)`, v.name, v.value); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Exec(ctx, `SET plan_cache_mode = force_generic_plan`); err != nil {
		t.Fatal(err)
	}
	label := map[string]string{"run": "x"}
	first := firstColumns(t, schema)
	check := func(state string) {
		for i, f := range []store.Filter{{Labels: label}, {Labels: map[string]string{"run": "x", "team": "red"}}, {Labels: label, Action: "code", TopLevel: true}, {Labels: label, Verdicts: []string{"oom", store.VerdictOK}},
			{Labels: label, Stages: []flow.Stage{flow.Requested, flow.Scheduled, flow.Provisioning, flow.Running}, Action: "code", TopLevel: true},
			{Labels: label, Stages: []flow.Stage{flow.Completed}, Reach: 5}} {
			text, params := s.tally(f, 0)
			name := fmt.Sprintf("tally_%s_%d", state, i)
			if _, err := c.Prepare(ctx, name, text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			var said []byte
			if err := c.QueryRow(ctx, `EXPLAIN (FORMAT JSON) EXECUTE `+name+`(`+strings.Join(slices.Repeat([]string{"NULL"}, len(params)), ",")+`)`,
				pgx.QueryExecModeSimpleProtocol).Scan(&said); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			var plans []struct{ Plan plan }
			if err := json.Unmarshal(said, &plans); err != nil {
				t.Fatal(err)
			}
			if say := plans[0].Plan.whole(first); say != "" {
				t.Errorf("%s: %s\nin %s", state, say, text)
			}
		}
	}
	execute(t, server(t), `VACUUM ANALYZE `+schema+`.live, `+schema+`.ended, `+schema+`.labels`)
	check("empty")
	execute(t, server(t), `INSERT INTO `+schema+`.ended SELECT gen_random_uuid(), 0, 0, 0, 6, true, false, 'code', '', '', '' FROM generate_series(1, 50000)`,
		`INSERT INTO `+schema+`.labels (id, name, value) SELECT id, 'run', 'y' FROM `+schema+`.ended LIMIT 30000`,
		`VACUUM ANALYZE `+schema+`.live, `+schema+`.ended, `+schema+`.labels`)
	check("full")
	execute(t, server(t), `TRUNCATE `+schema+`.ended, `+schema+`.labels`)
}

// A list asks for the open question of each workflow; it must not read through 5,000 answered questions of a workflow. The executions that
// ask are read from the index of open questions, which does not contain those 5,000.
func TestPlanOfAsking(t *testing.T) {
	t.Parallel()
	schema, asker := emptySchema(t), "01000000-0000-0000-0000-000000000000"
	s := open(t, server(t), schema)
	execute(t, server(t), `INSERT INTO `+schema+`.inquiries SELECT 1, NULL, 2, gen_random_uuid(), '`+asker+`', gen_random_uuid(), 1, 4, 'each[' || n || ']', '{}', NULL FROM generate_series(1, 5000) n`,
		`INSERT INTO `+schema+`.inquiries SELECT 1, NULL, NULL, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 1, 'ask', '{}', NULL FROM generate_series(1, 5000)`,
		`VACUUM ANALYZE `+schema+`.inquiries`)
	c, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for _, v := range append(reading(), setting{"plan_cache_mode", "force_generic_plan"}) {
		if _, err := c.Exec(t.Context(), `SELECT set_config($1, $2, false)`, v.name, v.value); err != nil {
			t.Fatal(err)
		}
	}
	for call, ask := range map[string]func(relational.Reader) (map[flow.ID]flow.ID, error){
		`asking('{` + asker + `}')`: func(r relational.Reader) (map[flow.ID]flow.ID, error) { return r.Asking(t.Context(), nil) },
		`askers(10000)`:             func(r relational.Reader) (map[flow.ID]flow.ID, error) { return r.Askers(t.Context(), 0) },
	} {
		var asked recorded
		if _, err := ask(relational.Reader{Querier: &asked}); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(call, "(")
		if _, err := c.Prepare(t.Context(), name, s.statements[sharedQueries[asked.Slot].slot].text); err != nil {
			t.Fatal(err)
		}
		var said []byte
		if err := c.QueryRow(t.Context(), `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE `+call, pgx.QueryExecModeSimpleProtocol).Scan(&said); err != nil {
			t.Fatal(err)
		}
		var plans []struct{ Plan plan }
		if err := json.Unmarshal(said, &plans); err != nil {
			t.Fatal(err)
		}
		if n := plans[0].Plan.passedOver(); n > 0 {
			t.Errorf("%s: %d rows were read and passed over: %s", name, n, said)
		}
		if !strings.Contains(string(said), `"Index Name": "inquiries_open"`) {
			t.Errorf("%s: the index of open questions is not used: %s", name, said)
		}
	}
}

// recorded is the statement of the latest call.
type recorded struct{ *relational.Statement }

func (r *recorded) Run(_ context.Context, calls ...relational.Call) error {
	r.Statement = calls[0].Statement
	return nil
}

// plan is a node in the output of EXPLAIN.
type plan struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	Filter   string
	Removed  int `json:"Rows Removed by Filter"`
	Alias    string
	Plans    []plan
}

// passedOver returns how many rows an execution of the plan has read and discarded.
func (p *plan) passedOver() int {
	n := p.Removed
	for i := range p.Plans {
		n += p.Plans[i].passedOver()
	}
	return n
}

// firstColumns returns the first column of each index of a schema. A condition on other columns of an index reads the whole index.
func firstColumns(t *testing.T, schema string) map[string]string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	rows, err := c.Query(t.Context(), `SELECT c.relname, pg_get_indexdef(c.oid, 1, false) FROM pg_class c WHERE c.relkind = 'i' AND c.relnamespace = $1::regnamespace`, schema)
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]string{}
	var index, column string
	if _, err := pgx.ForEachRow(rows, []any{&index, &column}, func() error {
		first[index] = column
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return first
}

// whole returns the name of a table that is read completely; "" if there is none.
func (p *plan) whole(first map[string]string) string {
	switch {
	case p.Type == "Seq Scan":
		return fmt.Sprintf("%s (%s) is read from end to end", p.Relation, p.Alias)
	case strings.HasPrefix(p.Type, "Index") && !strings.Contains(p.Cond, first[p.Index]), strings.HasPrefix(p.Type, "Index") && p.Cond == "":
		return fmt.Sprintf("%s (%s) is read from end to end, in the order of %s", p.Relation, p.Alias, p.Index)
	}
	if strings.Contains(p.Filter, "= ANY (ARRAY[") {
		return fmt.Sprintf("%s (%s) is looked up by a filter, in the order of %s", p.Relation, p.Alias, p.Index)
	}
	for i := range p.Plans {
		if say := p.Plans[i].whole(first); say != "" {
			return say
		}
	}
	return ""
}

// whole are the statements for whole tables, for the few rows of sessions, or for all open questions, which have their own index
// (TestPlanOfAsking).
var whole = func() map[*query]bool {
	all := map[*query]bool{
		qExpired: true, qLapsed: true, qLiveSessions: true, qExpireEmbedded: true, qRestartLeases: true,
	}
	for _, rule := range tableRules {
		all[rule.q] = true
	}
	return all
}()
