package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/store"
)

// registry checks that names stay known, each among its own kind, and that a setting never changes.
func registry(b *bench) {
	add := func(of store.NameKind, name string) bool {
		return inTx(b, func(ctx context.Context, t store.Tx) (bool, error) { return t.AddName(ctx, of, name, b.now) })
	}
	for _, s := range []struct {
		of    store.NameKind
		name  string
		added bool
	}{{store.QueueNames, "gpu", true}, {store.QueueNames, "gpu", false}, {store.QueueNames, "Ä", true}, {store.QueueNames, "default", true},
		{store.LaneNames, "gpu", true}, {store.LaneNames, "default@docker,gpu=a100", true}, {store.LanguageNames, "cobol", true}} {
		equal(b, fmt.Sprint("added ", s.name), add(s.of, s.name), s.added)
	}
	for of, want := range map[store.NameKind][]string{store.QueueNames: {"default", "gpu", "Ä"},
		store.LaneNames: {"default@docker,gpu=a100", "gpu"}, store.LanguageNames: {"cobol"}} {
		var all []string
		for after := ""; ; {
			page, err := b.s.Names(b.ctx(), of, after, 2)
			must(b, err)
			if len(page) == 0 {
				break
			}
			all, after = append(all, page...), page[len(page)-1]
		}
		equal(b, "names", all, want)
		for name, has := range map[string]bool{want[0]: true, "none": false, "": false} {
			got, err := b.s.HasName(b.ctx(), of, name)
			must(b, err)
			equal(b, "has "+name, got, has)
		}
	}
	keep := func(name, value string) {
		b.update(func(ctx context.Context, t store.Tx) error { return t.KeepSetting(ctx, name, []byte(value)) })
	}
	_, err := b.s.Setting(b.ctx(), "key")
	wantErr(b, "an unknown setting", err, store.ErrNotFound)
	keep("key", `"first"`)
	keep("key", `"second"`)
	keep("other", `{}`)
	got, err := b.s.Setting(b.ctx(), "key")
	must(b, err)
	equal(b, "setting", string(got), `"first"`)
}

// Registered checks a store that was upgraded from a version that kept queues, lanes, languages and the workers' key among the
// definitions: "queue:gpu", "lane:default@docker", "language:cobol" and two versions of "key:workers", beside an action "kept".
func Registered(t *testing.T, s store.Store) {
	t.Helper()
	ctx := t.Context()
	for of, want := range map[store.NameKind]string{store.QueueNames: "gpu", store.LaneNames: "default@docker", store.LanguageNames: "cobol"} {
		if got, err := s.Names(ctx, of, "", 10); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("names moved: %v, %v, want %s", got, err, want)
		}
	}
	if key, err := s.Setting(ctx, "worker_key"); err != nil || string(key) != `"c2VjcmV0"` {
		t.Errorf("the workers' key: %s, %v: want its first version", key, err)
	}
	left, err := s.Definitions(ctx, "", 10)
	if err != nil || len(left) != 1 || left[0].Name != "kept" {
		t.Errorf("definitions left: %v, %v", left, err)
	}
}
