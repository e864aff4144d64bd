package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pawl-run/pawl/"

// arrow allows packages below From to import packages below To.
type arrow struct {
	from string
	to   []string
	why  string
}

// arrows lists every import that is allowed between rooms. A package may import itself, and its room's tests may import what is below it;
// any other import must be listed here. docs/architecture.md has the picture.
var arrows = []arrow{
	{"internal/flow", []string{"internal/wirejson"}, "the nouns know how their data are written, and nobody else"},
	{"internal/comparison", nil, "pure: what a program wrote and what was expected become a verdict"},
	{"internal/language", nil, "pure: the names of languages; it knows nobody"},
	{"internal/duration", nil, "pure: texts become durations; it imports nothing of Pawl"},
	{"internal/arrangement", nil, "pure: needs become a drawing; it imports nothing of Pawl"},
	{"internal/schedule", nil, "pure: expressions and zones become times; it imports nothing of Pawl"},
	{"internal/form", nil, "pure: schemas become fields, and what is filled in an answer; it imports nothing of Pawl"},
	{"internal/signature", nil, "pure: headers, bodies and secrets become deliveries; it imports nothing of Pawl"},
	{"internal/problem", nil, "pure: what is wrong with an input, and near names"},
	{"internal/strictjson", []string{"internal/problem"}, "pure: JSON becomes values and problems"},
	{"internal/jsonvalue", []string{"internal/strictjson"}, "pure: texts of JSON values become what is computed with, and one text of each"},
	{"internal/score", []string{"api"}, "pure: verdicts become accuracy and pass@k"},
	{"internal/payload", []string{"api", "internal/flow", "internal/problem", "internal/strictjson", "internal/jsonvalue", "internal/language", "internal/comparison", "internal/duration"}, "pure: what built-in kinds take, in the public wire types"},
	{"internal/definition/compute", []string{"internal/jsonvalue", "internal/strictjson"}, "pure: functions and prices of expressions; it knows no document"},
	{"internal/definition", []string{"internal/wirejson", "internal/definition/compute", "internal/jsonvalue", "internal/signature", "api", "internal/problem", "internal/strictjson", "internal/payload", "internal/flow", "internal/language", "internal/comparison", "internal/duration", "internal/schedule", "internal/query"}, "pure: documents become data"},
	{"internal/query", []string{"internal/flow", "internal/jsonvalue", "internal/problem", "internal/strictjson", "internal/duration"}, "pure: conditions on executions become verdicts"},
	{"internal/admission", []string{"internal/flow"}, "pure: counts become verdicts"},
	{"internal/orchestration", []string{"internal/flow", "internal/definition", "internal/strictjson"}, "pure: rows become a plan; the texts of changes are read without reflection"},
	{"internal/replay", []string{"api", "internal/flow", "internal/definition", "internal/jsonvalue", "internal/orchestration", "internal/strictjson"}, "pure: recorded histories become findings, by the rules; events are read without reflection"},
	{"internal/wirejson", nil, "pure: JSON as answers and archives have it"},
	{"internal/archive", []string{"internal/flow", "internal/wirejson", "internal/strictjson"}, "pure: streams become rows and rows streams"},
	{"internal/telemetry", nil, "names, spans and distributions; it knows nobody"},
	{"internal/telemetry/otlp", []string{"internal/telemetry"}, "where spans go"},
	{"internal/failpoint", nil, "marks moments; it knows nobody"},
	{"internal/crashloop", []string{"internal/failpoint", "internal/telemetry"}, "counts deaths in a file; it knows neither engine nor store"},
	{"internal/nobody", nil, "runs tests as another user; it imports nothing of Pawl"},
	{"internal/heap", nil, "tunes the process; it knows nobody"},
	{"internal/pgpool", nil, "connections to PostgreSQL; it knows nobody"},
	{"internal/pgpool/pgpooltest", nil, "breaks connections for tests"},
	{"internal/programtest", nil, "builds pawl for tests, gives what they start a port, and ends it; it imports nothing of Pawl"},
	{"internal/store", []string{"internal/flow", "internal/wirejson"}, "a port knows the nouns"},
	{"internal/store/storetest", []string{"internal/flow", "internal/store"}, "one suite for every store"},
	{"internal/store/sqlite", []string{"internal/flow", "internal/store"}, "a backend knows its port"},
	{"internal/store/postgres", []string{"internal/flow", "internal/store", "internal/pgpool"}, "a backend knows its port and what it connects with"},
	{"internal/blob/s3", []string{"internal/blob"}, "a backend knows its port"},
	{"internal/blob/s3/s3test", []string{"internal/blob/s3"}, "a place in a bucket for tests, read as the store reads it"},
	{"internal/blob", nil, "a port"},
	{"internal/blob/blobtest", []string{"internal/blob"}, "one suite for every blob store"},
	{"internal/blob/file", []string{"internal/blob"}, "a backend knows its port"},
	{"internal/blob/postgres", []string{"internal/blob", "internal/pgpool"}, "a backend knows its port and what it connects with"},
	{"internal/runtime", nil, "a port"},
	{"internal/runtime/runtimetest", []string{"internal/runtime"}, "one suite for every runtime"},
	{"internal/runtime/process", []string{"internal/runtime"}, "a backend knows its port"},
	{"internal/runtime/sandbox", []string{"internal/runtime"}, "a backend knows its port"},
	{"internal/runtime/docker", []string{"internal/runtime"}, "a backend knows its port"},
	{"internal/runtime/kubernetes", []string{"internal/runtime", "internal/runtime/kubernetes/wire"}, "a backend knows its port and what its pods say"},
	{"internal/runtime/kubernetes/kubernetestest", nil, "gives tests a cluster"},
	{"internal/runtime/kubernetes/pod", []string{"internal/runtime", "internal/runtime/kubernetes/wire"}, "what runs in pods: it collects by the rules of all runtimes, and has nothing of the cluster's client"},
	{"internal/runtime/kubernetes/wire", nil, "what workers and pods say to each other"},
	{"internal/handoff", []string{"internal/flow"}, "a port knows the nouns"},
	{"internal/handoff/direct", []string{"internal/flow", "internal/handoff"}, "a backend knows its port"},
	{"internal/handoff/wire", []string{"internal/flow", "internal/handoff"}, "what workers and servers say to each other, whichever way it travels"},
	{"internal/handoff/remote", []string{"internal/flow", "internal/handoff", "internal/handoff/wire", "internal/failpoint", "internal/blob"}, "a backend knows its port, carries the wire, and cuts blobs as their stores do"},
	{"internal/handoff/brokerrpc", []string{"internal/flow", "internal/handoff", "internal/handoff/wire", "internal/failpoint",
		"internal/blob"}, "the hand-off through a broker, whichever it is, which cuts blobs as their stores do"},
	{"internal/handoff/brokerrpc/brokerrpctest", []string{"internal/handoff/brokerrpc"},
		"one suite for every broker, and one that misbehaves"},
	{"internal/handoff/redis", []string{"internal/handoff/brokerrpc"}, "a broker implements the transport"},
	{"internal/handoff/rabbitmq", []string{"internal/handoff/brokerrpc"}, "a broker implements the transport"},
	{"internal/handoff/redis/redistest", []string{"internal/handoff/brokerrpc/brokerrpctest", "internal/programtest"},
		"starts a broker for tests, as the suite of brokers wants it"},
	{"internal/handoff/rabbitmq/rabbitmqtest", []string{"internal/handoff/brokerrpc/brokerrpctest", "internal/programtest"},
		"starts a broker for tests, as the suite of brokers wants it"},
	{"internal/handoff/handofftest", []string{"internal/flow", "internal/store", "internal/handoff"}, "one suite for every hand-off"},
	{"internal/secret", nil, "secrets that the operator has named; it imports nothing of Pawl"},
	{"internal/task", []string{"internal/flow", "internal/runtime", "internal/blob", "api", "internal/telemetry", "internal/language", "internal/comparison", "internal/payload", "internal/strictjson", "internal/task/java"}, "handlers run code through the runtime and speak the public wire types"},
	{"internal/task/java", nil, "sources and class files, read without I/O"},
	{"internal/task/outgoing", []string{"api", "internal/flow", "internal/payload", "internal/secret", "internal/signature", "internal/strictjson", "internal/task"}, "handlers that call others over HTTP; they are tasks and run nothing"},
	{"internal/worker", []string{"internal/flow", "internal/handoff", "internal/blob", "internal/task", "internal/telemetry", "internal/failpoint", "internal/strictjson"}, "a shell"},
	{"internal/automation", []string{"api", "internal/flow", "internal/definition"}, "pure: signals and rules become verdicts; parts of conditions are in the public wire types"},
	{"internal/engine/fault", []string{"internal/problem", "internal/store"}, "how the engine and what stands beside it refuse requests; a missing subject is the store's ErrNotFound"},
	{"internal/engine/catalog", []string{"api", "internal/engine/fault", "internal/definition", "internal/flow", "internal/language", "internal/problem", "internal/store"}, "reads from the store what it knows by name; it knows no decision"},
	{"internal/engine/why", []string{"api", "internal/engine/catalog", "internal/engine/fault", "internal/definition", "internal/flow", "internal/schedule", "internal/store"}, "explains what is in the store; what only the engine knows comes through an interface of two methods"},
	{"internal/engine/txn", []string{"internal/flow", "internal/store"}, "the transaction as capabilities see it; it knows neither the engine nor any of them"},
	{"internal/engine/loop", []string{"internal/engine/catalog", "internal/telemetry"}, "how the engine's loops pause and take turns; of the catalog it knows how many documents there may be"},
	{"internal/engine/inquiries", []string{"internal/engine/catalog", "internal/engine/fault", "internal/engine/requests", "internal/engine/txn", "internal/definition", "internal/failpoint", "internal/flow", "internal/jsonvalue", "internal/store"}, "a capability: it knows the transaction and the store, and no other capability"},
	{"internal/engine/waits", []string{"internal/engine/fault", "internal/engine/loop", "internal/engine/requests", "internal/engine/txn", "internal/automation", "internal/crashloop", "internal/definition", "internal/failpoint", "internal/flow", "internal/store"}, "a capability, as inquiries; of the rules it knows which triggers may be waited for"},
	{"internal/engine/uploads", []string{"internal/engine/fault", "internal/blob", "internal/flow", "internal/problem", "internal/store"}, "keeps what clients have sent in the store and its blobs"},
	{"internal/engine/archives", []string{"internal/archive", "internal/engine/catalog", "internal/engine/fault", "internal/engine/requests", "internal/engine/uploads", "internal/blob", "internal/definition", "internal/flow", "internal/orchestration", "internal/replay", "internal/store", "internal/telemetry"}, "writes and reads archives; what only the engine knows comes through an interface of three methods, and the bounds of what was asked for are those of requests"},
	{"internal/engine/requests", []string{"internal/engine/catalog", "internal/engine/fault", "internal/definition", "internal/duration", "internal/flow", "internal/orchestration", "internal/problem"}, "makes requests; definitions come from a catalog's loader"},
	{"internal/engine/find", []string{"internal/engine/catalog", "internal/definition", "internal/flow", "internal/query", "internal/store"}, "searches a store; the catalog says which members may be searched by"},
	{"internal/engine/histories", []string{"internal/engine/catalog", "internal/engine/fault", "internal/engine/requests", "internal/definition", "internal/flow", "internal/orchestration", "internal/replay", "internal/store"}, "reads what was recorded and lets replay judge it"},
	{"internal/engine/enginetest", []string{"internal/engine", "internal/blob", "internal/blob/file", "internal/definition", "internal/flow", "internal/handoff", "internal/store", "internal/store/postgres", "internal/store/sqlite"}, "an engine on each store, for the tests of the packages beside the engine"},
	{"internal/engine", []string{"api", "internal/engine/txn", "internal/engine/loop", "internal/engine/inquiries", "internal/engine/waits", "internal/wirejson", "internal/engine/requests", "internal/engine/find", "internal/engine/histories", "internal/engine/fault", "internal/engine/catalog", "internal/engine/why", "internal/engine/uploads", "internal/engine/archives", "internal/archive", "internal/automation", "internal/signature", "internal/flow", "internal/store", "internal/blob", "internal/handoff", "internal/definition", "internal/jsonvalue", "internal/admission", "internal/crashloop", "internal/orchestration", "internal/replay", "internal/telemetry", "internal/failpoint", "internal/language", "internal/duration", "internal/schedule", "internal/problem", "internal/query"}, "the server's shell: ports and rules"},
	{"internal/server/compat", []string{"api", "internal/language", "internal/problem", "internal/strictjson"}, "protocols of other evaluators become evaluations; the server comes through an interface of seven methods, which the client has"},
	{"internal/server/metrics", []string{"internal/engine", "internal/flow", "internal/store", "internal/telemetry"}, "figures of an engine for Prometheus; of HTTP it knows what one request costs"},
	{"internal/server", []string{"internal/score", "internal/wirejson", "internal/server/metrics", "internal/archive", "internal/automation", "internal/signature", "api", "internal/arrangement", "internal/problem", "internal/strictjson", "internal/payload", "internal/engine", "internal/engine/fault", "internal/engine/catalog", "internal/engine/uploads", "internal/engine/inquiries", "internal/engine/archives", "internal/form", "internal/flow", "internal/orchestration", "internal/replay", "internal/definition", "internal/duration", "internal/store", "internal/blob", "internal/handoff", "internal/telemetry", "internal/query"}, "the engine's face"},
	{"web", nil, "the page's files and their handler; it speaks to the API from the browser and knows nobody here"},
	{"internal/terminal", nil, "draws what it is given"},
	{"api", []string{"internal/language", "internal/comparison", "internal/duration", "internal/problem"}, "wire types; the names of languages and comparisons, how durations are read and how problems are written are written down once"},
	{"client", []string{"api"}, "speaks the wire types"},
	{"handler", []string{"internal/flow", "internal/handoff", "internal/handoff/remote", "internal/task", "internal/worker"}, "a worker for other people's Go programs"},
	{"handler/redis", []string{"handler", "internal/handoff", "internal/handoff/brokerrpc", "internal/handoff/redis"},
		"a broker for such programs, apart, so that only those that use it carry its library"},
	{"handler/rabbitmq", []string{"handler", "internal/handoff", "internal/handoff/brokerrpc", "internal/handoff/rabbitmq"},
		"the other broker"},
	{"handler/internal/brokertest", []string{"handler", "internal/definition", "internal/engine", "internal/flow",
		"internal/handoff/brokerrpc", "internal/store", "internal/store/sqlite"}, "what such programs do behind any broker"},
	{"cmd/pawl", []string{"internal/cli", "internal/heap"}, "a main: it tunes the process and runs the command line"},
	{"cmd/pawl-kubernetes", []string{"internal/cli", "internal/cli/config", "internal/cli/instance", "internal/heap", "internal/runtime", "internal/runtime/kubernetes"}, "the same main with a runtime more: the only one that links the client of a cluster"},
	{"cmd/pawl-pod", []string{"internal/runtime/kubernetes/pod", "internal/runtime/kubernetes/wire"}, "a main for pods"},
	{"internal/cli", []string{"internal/cli/app", "internal/cli/automate", "internal/cli/config", "internal/cli/debug", "internal/cli/define", "internal/cli/exit", "internal/cli/grade", "internal/cli/observe", "internal/cli/operate", "internal/cli/output", "internal/cli/steer", "internal/cli/submit"},
		"assembles the commands; its tests run the whole command line"},
	{"internal/cli/app", []string{"api", "client", "internal/cli/config", "internal/cli/exit", "internal/cli/instance", "internal/cli/output", "internal/duration", "internal/language", "internal/problem", "internal/strictjson"},
		"one call of the command line, which opens the engine that its command works with or connects to one"},
	{"internal/cli/listing", []string{"api", "client", "internal/cli/app", "internal/cli/exit", "internal/cli/output"},
		"the flags that select executions, in the words of the client"},
	{"internal/cli/local", []string{"internal/cli/app", "internal/cli/config", "internal/cli/exit", "internal/definition", "internal/flow", "internal/payload", "internal/runtime/docker"},
		"looks at definitions for what workers here lack"},
	{"internal/cli/submit", []string{"api", "client", "internal/cli/app", "internal/cli/config", "internal/cli/exit", "internal/cli/instance", "internal/cli/local", "internal/cli/output", "internal/definition", "internal/duration", "internal/flow", "internal/language", "internal/problem", "internal/task", "internal/terminal"},
		"reads what is submitted, and follows it through client"},
	{"internal/cli/observe", []string{"api", "client", "internal/archive", "internal/cli/app", "internal/cli/automate", "internal/cli/debug", "internal/cli/define", "internal/cli/exit", "internal/cli/instance", "internal/cli/listing", "internal/cli/output", "internal/cli/steer", "internal/flow", "internal/terminal"},
		"shows what client reads, and checks archives"},
	{"internal/cli/steer", []string{"api", "client", "internal/cli/app", "internal/cli/exit", "internal/cli/listing", "internal/cli/output", "internal/cli/submit"},
		"orders through client"},
	{"internal/cli/grade", []string{"api", "client", "internal/score", "internal/cli/app", "internal/cli/config", "internal/cli/exit",
		"internal/cli/output", "internal/problem", "internal/strictjson", "internal/terminal"},
		"commands that grade samples; they speak through the client"},
	{"internal/cli/debug", []string{"api", "client", "internal/cli/app", "internal/cli/attempt", "internal/cli/config", "internal/cli/exit", "internal/cli/instance", "internal/cli/output", "internal/flow", "internal/handoff", "internal/payload", "internal/secret", "internal/task"},
		"runs a recorded attempt here"},
	{"internal/cli/define", []string{"api", "client", "internal/automation", "internal/problem", "internal/cli/app", "internal/cli/exit", "internal/cli/listing", "internal/cli/output", "internal/definition", "internal/engine", "internal/flow"},
		"checks documents before it sends them"},
	{"internal/cli/automate", []string{"api", "client", "internal/cli/app", "internal/cli/exit", "internal/cli/listing", "internal/cli/output", "internal/definition", "internal/flow", "internal/form", "internal/secret", "internal/signature"},
		"reads documents and fires through client"},
	{"internal/cli/operate", []string{"api", "client", "internal/archive", "internal/blob", "internal/blob/file", "internal/cli/app",
		"internal/cli/config", "internal/cli/exit", "internal/cli/instance", "internal/cli/loadtest", "internal/cli/local",
		"internal/cli/output", "internal/definition", "internal/engine", "internal/engine/catalog", "internal/engine/histories", "internal/flow",
		"internal/handoff", "internal/handoff/brokerrpc", "internal/handoff/remote", "internal/pgpool", "internal/runtime",
		"internal/runtime/sandbox", "internal/store", "internal/store/postgres", "internal/store/sqlite", "internal/task",
		"internal/telemetry/otlp", "internal/terminal", "internal/worker", "web"},
		"starts processes, and backup, migrate, verify and doctor look at stores and runtimes themselves; open prints the definitions of an archive"},
	{"internal/cli/attempt", []string{"internal/flow", "internal/handoff", "internal/task", "internal/worker"}, "a worker runs one attempt, handed to it by a hand-off of its own, which reports nothing"},
	{"internal/cli/exit", []string{"api"}, "exit codes; each final status has one"},
	{"internal/cli/output", []string{"api", "internal/strictjson", "internal/terminal", "internal/wirejson"}, "writes what it is given"},
	{"internal/cli/config", []string{"api", "internal/duration", "internal/flow", "internal/language", "internal/payload", "internal/problem", "internal/runtime/docker", "internal/runtime/process", "internal/runtime/sandbox", "internal/task"},
		"settings are checked by those that know their forms: labels, durations, sizes, profiles of languages, names of runtimes"},
	{"internal/cli/instance", []string{"api", "client", "internal/cli/config", "internal/cli/exit", "internal/cli/output", "internal/blob", "internal/blob/file", "internal/blob/postgres", "internal/blob/s3", "internal/crashloop", "internal/engine", "internal/flow", "internal/language",
		"internal/handoff/direct", "internal/handoff/remote", "internal/handoff/brokerrpc", "internal/handoff/rabbitmq",
		"internal/handoff/redis", "internal/payload", "internal/pgpool", "internal/runtime", "internal/runtime/docker",
		"internal/runtime/process", "internal/runtime/sandbox", "internal/secret", "internal/server", "internal/server/compat",
		"internal/server/metrics", "internal/store",
		"internal/store/postgres", "internal/store/sqlite", "internal/task", "internal/task/outgoing", "internal/telemetry", "internal/telemetry/otlp", "internal/worker"}, "opens what the settings name and wires it: it knows every backend"},
	{"internal/cli/loadtest", []string{"internal/cli/config", "internal/cli/exit", "internal/cli/instance", "internal/cli/output", "internal/blob/file", "internal/definition", "internal/engine", "internal/flow", "internal/handoff/direct",
		"internal/payload", "internal/runtime", "internal/runtime/sandbox", "internal/store", "internal/store/postgres", "internal/task", "internal/terminal", "internal/worker"}, "drives an engine without HTTP and reads its store back"},
	{"pawltest", []string{"api", "client", "handler", "internal/engine", "internal/server", "internal/store/sqlite", "internal/blob/file", "internal/worker", "internal/task", "internal/task/outgoing", "internal/runtime",
		"internal/runtime/process", "internal/handoff/direct", "internal/handoff/remote", "internal/flow", "internal/payload"}, "a whole Pawl in a test's process: it wires, as internal/cli/instance does, and only tests import it (decision 22)"},
	{"scripts/testreport", nil, "reads go test -json; it imports nothing of Pawl"},
	{"internal/exampletest", nil, "stands for the test of an example"},
	{"examples", []string{"client", "handler", "api"}, "what a user would import"},
}

// free rooms may import anything: they test the whole.
var free = []string{"e2e"}

// Packages for tests link the engine: a program that imported one outside its tests would contain all of Pawl.
func TestPackagesForTestsAreForTests(t *testing.T) {
	for _, p := range []string{"client", "handler", "handler/redis", "handler/rabbitmq", "api"} {
		out, err := exec.Command("go", "list", "-deps", module+p).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, banned := range []string{"pawltest", "internal/engine", "internal/server", "internal/store/sqlite"} {
			if slices.Contains(strings.Fields(string(out)), module+banned) {
				t.Errorf("%s depends on %s: a program that uses it would carry a server", p, banned)
			}
		}
		if !strings.HasPrefix(p, "handler/") && slices.Contains(strings.Fields(string(out)), module+"internal/handoff/redis") {
			t.Errorf("%s depends on a broker: programs that use none would carry its library", p)
		}
	}
}

// The client of a cluster is larger than all of pawl's own code, so only one program contains it.
func TestOneProgramHasTheClusterClient(t *testing.T) {
	for _, p := range []string{"cmd/pawl", "cmd/pawl-pod", "handler", "client", "pawltest"} {
		out, err := exec.Command("go", "list", "-deps", module+p).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if strings.Contains(string(out), "k8s.io/") {
			t.Errorf("%s depends on the client of Kubernetes", p)
		}
	}
}

// Each pod has the helper in memory twice: see maxPod.
func TestHelperIsSmall(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"cmd/pawl-pod").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, banned := range []string{"net", "encoding/json"} {
		if slices.Contains(strings.Fields(string(out)), banned) {
			t.Errorf("cmd/pawl-pod depends on %s", banned)
		}
	}
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestArrows(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	seen := 0
	for {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read go list: %v", err)
		}
		seen++
		from := strings.TrimPrefix(p.ImportPath, module)
		if slices.ContainsFunc(free, func(f string) bool { return below(from, f) }) {
			continue
		}
		room, rule := ruleFor(from)
		if rule == nil {
			t.Errorf("%s stands in no room: add it to the arrows, with a reason, and to docs/architecture.md", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours || below(to, room) && !otherRoom(to, room) {
				continue
			}
			if toRoom, _ := ruleFor(to); !slices.Contains(rule.to, toRoom) {
				t.Errorf("%s imports %s, but %s may import only %v (%s)", from, to, room, rule.to, rule.why)
			}
		}
	}
	if seen < 10 {
		t.Fatalf("go list named %d packages: the test did not look at the tree", seen)
	}
}

func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// otherRoom reports whether p, which lies below room, is a room of its own.
func otherRoom(p, room string) bool {
	r, _ := ruleFor(p)
	return r != room
}

// ruleFor finds the innermost room that a package lies in.
func ruleFor(p string) (string, *arrow) {
	var best *arrow
	for i := range arrows {
		if below(p, arrows[i].from) && (best == nil || len(arrows[i].from) > len(best.from)) {
			best = &arrows[i]
		}
	}
	if best == nil {
		return "", nil
	}
	return best.from, best
}

// The packages of the rules are pure: no clock, no randomness, no I/O.
func TestRulesArePure(t *testing.T) {
	banned := map[string]string{
		"os": "I/O", "net": "I/O", "net/http": "I/O", "os/exec": "I/O", "math/rand": "randomness", "math/rand/v2": "randomness",
		"crypto/rand": "randomness", "github.com/google/uuid": "ids are arguments", "database/sql": "I/O", "log/slog": "I/O", "log": "I/O",
	}
	for _, room := range []string{"flow", "problem", "strictjson", "jsonvalue", "definition", "definition/compute", "admission", "orchestration", "signature", "query"} {
		out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"internal/"+room).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		var p goPackage
		if err := json.Unmarshal(out, &p); err != nil {
			t.Fatal(err)
		}
		for _, imp := range p.Imports {
			if why, bad := banned[imp]; bad {
				t.Errorf("internal/%s imports %s: rules have none of it (%s)", room, imp, why)
			}
		}
		grep := exec.Command("grep", "-nE", `time\.(Now|Since|Until|After|Sleep|NewTimer|Tick)\(`, "-r", "--include=*.go", "--exclude=*_test.go", "../internal/"+room)
		if hits, _ := grep.Output(); len(hits) > 0 {
			t.Errorf("internal/%s asks the clock; the time is an argument:\n%s", room, hits)
		}
	}
}
