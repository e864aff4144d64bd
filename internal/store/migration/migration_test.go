package migration_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pawl-run/pawl/internal/store/migration"
)

func TestSteps(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"schema/main_0010_b.sql": {Data: []byte("b")}, "schema/main_0002_a.sql": {Data: []byte("a")}, "schema/logs_0001_c.sql": {Data: []byte("c")}}
	all, err := migration.Steps(files, "main_")
	if err != nil || len(all) != 2 || all[0].Version != 2 || all[0].Name != "0002_a" || all[0].Script != "a" || all[1].Version != 10 {
		t.Fatalf("steps %+v, %v", all, err)
	}
	for _, c := range []struct {
		had  map[int64]string
		want string
	}{
		{nil, ""}, {map[int64]string{2: all[0].Sum}, ""},
		{map[int64]string{2: all[1].Sum}, "migration 0002_a is not the one"},
		{map[int64]string{11: all[0].Sum}, "version 11 and this program knows versions up to 10: use a newer pawl"},
	} {
		if err := migration.Compare(all, c.had); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("of %v: %v, want %q", c.had, err, c.want)
		}
	}
	files["schema/main_x.sql"] = &fstest.MapFile{}
	if _, err := migration.Steps(files, "main_"); err == nil || !strings.Contains(err.Error(), "does not begin with a version") {
		t.Errorf("of a file without a version: %v", err)
	}
}
