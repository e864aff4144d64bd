package submit

import (
	"encoding/json"
	"testing"
)

func TestSetField(t *testing.T) {
	t.Parallel()
	fields := map[string]any{"keep": 1}
	for _, s := range []string{"n=5", "text=five", "user.name=ada", "user.tags=[1,2]", "empty=", "eq=a=b", "quoted=\"5\""} {
		if err := setField(fields, s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	got, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"empty":"","eq":"a=b","keep":1,"n":5,"quoted":"5","text":"five","user":{"name":"ada","tags":[1,2]}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, s := range []string{"", "n", "=5", "n.x=5"} {
		if err := setField(fields, s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}
