package payload

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Limits above the operator's ceilings are refused with place, value, ceiling and setting, at every place in the code.
func TestCeilings(t *testing.T) {
	o := Operator{Most: Ceilings{Memory: 1e9, Disk: 500e6, Output: 10e6, Stack: 64e6, Pids: 100, Interactive: time.Hour}}
	code := func(rest string) string { return `{"language":"bash","source":"true",` + rest + `}` }
	for _, tt := range []struct {
		kind          flow.Kind
		payload, want string
	}{
		{flow.KindCode, code(`"limits":{"memory":"1GB","disk":"500MB","output":"10MB","pids":100}`), ""},
		{flow.KindCode, code(`"limits":{}`), ""},
		{flow.KindCode, code(`"limits":{"memory":"1TB"}`), "limits.memory: 1000GB is more than one program is given here: 1GB (ask for 1GB at most, or raise the setting max_memory where the worker runs)"},
		{flow.KindCode, code(`"limits":{"memory":1000000001}`), "limits.memory: 1000000001B is more than one program is given here: 1GB (ask for 1GB at most, or raise the setting max_memory where the worker runs)"},
		{flow.KindCode, code(`"limits":{"disk":"501MB","pids":101}`), "limits.disk: 501MB is more than one program is given here: 500MB (ask for 500MB at most, or raise the setting max_disk where the worker runs)\n" +
			"limits.pids: 101 is more than one program is given here: 100 (ask for 100 at most, or raise the setting max_pids where the worker runs)"},
		{flow.KindCode, code(`"compile_limits":{"memory":"2GB"}`), "compile_limits.memory: 2GB is more than one program is given here: 1GB (ask for 1GB at most, or raise the setting max_memory where the worker runs)"},
		{flow.KindCode, code(`"cases":[{"stdin":"1"},{"stdin":"2","limits":{"output":"11MB"}}]`),
			"cases[1].limits.output: 11MB is more than one program is given here: 10MB (ask for 10MB at most, or raise the setting max_output where the worker runs)"},
		{flow.KindCode, code(`"cases":[{}],"compare":{"interactor":{"language":"bash","source":"true","limits":{"pids":200}}}`),
			"compare.interactor.limits.pids: 200 is more than one program is given here: 100 (ask for 100 at most, or raise the setting max_pids where the worker runs)"},
		{flow.KindCode, code(`"cases":[{"stdin":"1","expect":"1"}],"compare":{"checker":{"language":"bash","source":"true","limits":{"memory":"2GB"}}}`),
			"compare.checker.limits.memory: 2GB is more than one program is given here: 1GB (ask for 1GB at most, or raise the setting max_memory where the worker runs)"},
		{flow.KindCode, code(`"limits":{"stack":"64MB"}`), ""},
		{flow.KindCode, code(`"limits":{"wall":"2h"}`), ""},
		{flow.KindCode, code(`"interactive":true,"limits":{"wall":"1h","cpu":"1h"}`), ""},
		{flow.KindCode, code(`"interactive":true,"limits":{"wall":"2h","cpu":"61m"}`),
			"limits.wall: 2h0m0s is more than one program is given here: 1h0m0s (ask for 1h0m0s at most, or raise the setting max_interactive where the worker runs)\n" +
				"limits.cpu: 1h1m0s is more than one program is given here: 1h0m0s (ask for 1h0m0s at most, or raise the setting max_interactive where the worker runs)"},
		{flow.KindCode, code(`"limits":{"stack":"65MB"}`),
			"limits.stack: 65MB is more than one program is given here: 64MB (ask for 64MB at most, or raise the setting max_stack where the worker runs)"},
		{flow.KindContainer, `{"image":"a","limits":{"memory":"2GB"}}`, "limits.memory: 2GB is more than one program is given here: 1GB (ask for 1GB at most, or raise the setting max_memory where the worker runs)"},
	} {
		got := ""
		if err := o.Validate(tt.kind, []byte(tt.payload)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.kind, tt.payload, got, tt.want)
		}
		if err := Validate(tt.kind, []byte(tt.payload)); err != nil {
			t.Errorf("%s without ceilings: %v", tt.payload, err)
		}
	}
}
