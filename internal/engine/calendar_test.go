package engine

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
)

// searches are the methods of package schedule that look for times, which can take 0.1 s of a core.
var searches = []string{"Next", "Count", "Passed", "Tick", "Holds", "Changes"}

// TestNoCalendarInATransaction reads the engine's source: functions of a transaction do not search a schedule for times, because all other
// requests wait for the transaction.
func TestNoCalendarInATransaction(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	set, functions := token.NewFileSet(), 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(set, f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			var body *ast.BlockStmt
			switch n := n.(type) {
			case *ast.FuncDecl:
				if isTransaction(n.Recv) || isTransaction(n.Type.Params) {
					body = n.Body
				}
			case *ast.FuncLit:
				if isTransaction(n.Type.Params) {
					body = n.Body
				}
			}
			if body == nil {
				return true
			}
			functions++
			ast.Inspect(body, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && slices.Contains(searches, call.Sel.Name) && ofSchedule(call.X) {
					t.Errorf("%s: %s looks for times inside a transaction; work it out before, as plan does", set.Position(call.Pos()), call.Sel.Name)
				}
				return true
			})
			return true
		})
	}
	if functions < 100 {
		t.Errorf("only %d functions with a transaction were read", functions)
	}
}

// isTransaction reports whether one of the fields is a *transaction.
func isTransaction(fields *ast.FieldList) bool {
	return fields != nil && slices.ContainsFunc(fields.List, func(f *ast.Field) bool {
		star, ok := f.Type.(*ast.StarExpr)
		if !ok {
			return false
		}
		name, ok := star.X.(*ast.Ident)
		return ok && name.Name == "transaction"
	})
}

// ofSchedule reports whether an expression selects the field Schedule of a document.
func ofSchedule(x ast.Expr) bool {
	field, ok := x.(*ast.SelectorExpr)
	return ok && field.Sel.Name == "Schedule"
}

// costlyDocument is a document that was stored before there were bounds of costs.
const costlyDocument = `{"kind":"schedule","name":"s","cron":["* * * * * *"],"except":[%],"run":{"action":"noop"}}`

// TestCostlyScheduleOfTheStore checks that a stored schedule whose times are too costly to find is missed once with the reason, and stops
// neither other schedules nor its next version.
func TestCostlyScheduleOfTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define(hourly + "---\n" + strings.Replace(hourly, "name: s\n", "name: other\n", 1))
	document := strings.Replace(costlyDocument, "%", strings.TrimSuffix(strings.Repeat(`"0-58 * * * * *",`, 1000), ","), 1)
	if _, err := definition.Parse("s.yaml", []byte(document)); err == nil || !strings.Contains(err.Error(), "s.yaml:1") || !strings.Contains(err.Error(), "steps") {
		t.Errorf("applied anew: %v", err)
	}
	d, err := definition.Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	store := func() {
		was := r.schedule("s")
		_, err := inBatch(r.ctx, r.e, nil, func(ctx context.Context, t *transaction) (int, error) {
			version, _, err := t.define(ctx, d)
			if err != nil {
				return 0, err
			}
			return version, t.beginSchedule(ctx, d, version, &passing{was: was, next: r.clock.now().Add(time.Second)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	store()
	r.tick(time.Minute)
	r.wantTicks("s", "missed refused")
	r.wantTicks("other", "on_time")
	rows, err := r.store.Ticks(r.ctx, "s", time.Time{}, 1)
	if err != nil || !strings.Contains(rows[0].Message, "except") {
		t.Errorf("the tick says %q (%v)", rows[0].Message, err)
	}
	if k := r.schedule("s"); !k.Next.IsZero() || !k.Due.IsZero() {
		t.Errorf("it goes on: %+v", k)
	}
	if _, err := r.e.Schedules(r.ctx, "", 10); err != nil {
		t.Errorf("schedules: %v", err)
	}
	r.define(strings.Replace(hourly, "every: 1h", "every: 2h", 1))
	if k := r.schedule("s"); k.Version != 3 || k.Next.IsZero() {
		t.Errorf("mended: %+v", k)
	}
}
