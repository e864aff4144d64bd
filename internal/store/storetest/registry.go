package storetest

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/store"
)

// registry checks that names are kept by kind, and that a setting never changes.
func registry(b *bench) {
	add := func(of store.NameKind, name string) bool {
		return inTx(b, func(ctx context.Context, t store.Tx) (bool, error) { return t.AddName(ctx, of, name, b.now) })
	}
	for _, s := range []struct {
		of    store.NameKind
		name  string
		added bool
	}{{store.QueueNames, "gpu", true}, {store.QueueNames, "gpu", false}, {store.QueueNames, "Ä", true}, {store.QueueNames, "default", true},
		{store.RoutingKeyNames, "gpu", true}, {store.RoutingKeyNames, "default@docker,gpu=a100", true}, {store.LanguageNames, "cobol", true}} {
		equal(b, fmt.Sprint("added ", s.name), add(s.of, s.name), s.added)
	}
	for of, want := range map[store.NameKind][]string{store.QueueNames: {"default", "gpu", "Ä"},
		store.RoutingKeyNames: {"default@docker,gpu=a100", "gpu"}, store.LanguageNames: {"cobol"}} {
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
