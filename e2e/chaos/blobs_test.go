package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
)

// elsewhere is two servers without workers on one database, and a worker that is connected to the second server.
type elsewhere struct {
	t        *testing.T
	clients  [2]*client.Client
	addrs    [2]string
	worker   *part
	toStore  *proxy // of both servers
	toServer *proxy // of the worker
	db       *pgx.Conn
	dsn, dir string
}

func startElsewhere(t *testing.T, settings ...string) *elsewhere {
	t.Helper()
	db := shared(t)
	if !strings.Contains(db.dsn, "@") {
		t.Skipf("NOT TESTED: %s is %q, which names no server", dsnVar, db.dsn)
	}
	dsn, dir := db.named(t), t.TempDir()
	e := &elsewhere{t: t, toStore: newProxy(t, hostOf(dsn)), dsn: dsn, dir: dir}
	for i := range e.clients {
		e.addrs[i] = "127.0.0.1:" + programtest.FreePort(t)
		run(t, dir, fmt.Sprintf("server-%d", i), append([]string{"server", "--listen", e.addrs[i], "--no-worker", "--lease", "10s",
			"--state-dir", filepath.Join(dir, fmt.Sprintf("state-%d", i)), "--store", through(dsn, e.toStore.address()), "--grace", "1s"}, settings...)...)
		e.clients[i] = connect(t, e.addrs[i])
		ready(t, e.clients[i])
	}
	e.toServer = newProxy(t, e.addrs[1])
	e.worker = run(t, dir, "worker", "worker", "--server", "http://"+e.toServer.address(), "--slots", "2", "--runtime", "process",
		"--state-dir", filepath.Join(dir, "work"), "--grace", "1s", "--queues", "default")
	var err error
	if e.db, err = pgx.Connect(context.Background(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.db.Close(context.Background()) })
	return e
}

// count counts the rows of a table.
func (e *elsewhere) count(table string) (n int) {
	e.t.Helper()
	if err := e.db.QueryRow(e.t.Context(), `SELECT count(*) FROM pawl.`+table).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

var roomy = api.CodeLimits{Wall: api.Duration(2 * time.Minute), Output: 16 << 20, Disk: 1 << 30}

// begin submits a program to the first server.
func (e *elsewhere) begin(c api.Code, attempts int) *api.Execution {
	e.t.Helper()
	c.Language, c.Limits = "bash", roomy
	x, err := e.clients[0].Evaluate(e.t.Context(), api.Evaluation{Code: c, Retry: &api.Retry{MaxAttempts: attempts}})
	if err != nil {
		e.t.Fatal(err)
	}
	return x
}

// end waits for a program's end and returns the name of the blob that holds its file.
func (e *elsewhere) end(id string, attempt int) (blob string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 2*time.Minute)
	defer cancel()
	var x *api.Execution
	until(e.t, "the evaluation has ended", func() (over bool) {
		var err error
		x, err = e.clients[0].Get(ctx, id)
		return err == nil && x.Status.Terminal()
	})
	var r api.CodeResult
	if err := json.Unmarshal(x.Output, &r); err != nil || x.Status != api.Completed || x.Attempt != attempt || len(r.Files) != 1 || len(r.Refused) > 0 {
		e.t.Fatalf("%s in attempt %d, want %d, files %d, refused %q: %+v, %v", x.Status, x.Attempt, attempt, len(r.Files), r.Refused, x.Error, err)
	}
	return r.Files[0].Blob
}

// file fetches the file from a server.
func (e *elsewhere) file(server int, id string) []byte {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	r, err := e.clients[server].File(ctx, id, "big.bin")
	if err != nil {
		e.t.Fatalf("fetch the file at server %d: %v", server, err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		e.t.Fatalf("fetch the file at server %d: %v", server, err)
	}
	return b
}

// cli returns the output of a command that asks a server.
func (e *elsewhere) cli(server int, args ...string) []byte {
	e.t.Helper()
	path, err := programtest.Pawl("failpoints")
	if err != nil {
		e.t.Fatal(err)
	}
	cmd := exec.CommandContext(e.t.Context(), path, append(args, "--server", "http://"+e.addrs[server])...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		e.t.Fatalf("pawl %s: %v\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return out
}

// numbers returns the output of seq 1 N, cut at a size.
func numbers(size int) []byte {
	var b bytes.Buffer
	for n := 1; b.Len() < size; n++ {
		fmt.Fprintln(&b, n)
	}
	return b.Bytes()[:size]
}

// The output and files of a remote worker come back byte for byte from the server that it never spoke to, and can be the input of the next
// program. Wherever blobs are stored, the worker reads them through its server.
func TestBlobsEverywhere(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{"in the database": nil, "in a directory": {"--blobs", t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			e := startElsewhere(t, settings...)
			large := numbers(5_000_000)
			first := e.begin(api.Code{Source: "seq 1 900000 | head -c 5000000 > big.bin", Collect: []string{"big.bin"}}, 1)
			blob := e.end(first.ID, 1)
			if in := e.count("blobs") == 1; in != (settings == nil) {
				t.Errorf("the database holds %d blobs", e.count("blobs"))
			}
			second := e.begin(api.Code{Source: "tr 0-9 a-j < in.bin > big.bin; seq 1 900000 | head -c 3000000", Collect: []string{"big.bin"},
				Files: map[string]api.Content{"in.bin": {Blob: blob}}}, 1)
			e.end(second.ID, 1)

			letters := bytes.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return r - '0' + 'a'
				}
				return r
			}, large)
			written := numbers(3_000_000)
			for server := range e.clients {
				if got := e.file(server, first.ID); !bytes.Equal(got, large) {
					t.Errorf("server %d gives a file of %d bytes, or others", server, len(got))
				}
				if got := e.file(server, second.ID); !bytes.Equal(got, letters) {
					t.Errorf("server %d gives the second file with %d bytes, or others", server, len(got))
				}
				r, err := e.clients[server].RawLog(t.Context(), second.ID, "stdout", 1, 0)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, written) {
					t.Errorf("server %d gives a log of %d bytes, or others: %v", server, len(got), err)
				}
			}
			if got := e.cli(0, "files", second.ID, "big.bin"); !bytes.Equal(got, letters) {
				t.Errorf("pawl files gives %d bytes, or others", len(got))
			}
			if got := e.cli(0, "logs", second.ID, "--stream", "stdout"); !bytes.Equal(got, written) {
				t.Errorf("pawl logs gives %d bytes, or others", len(got))
			}

			// A program that names a missing blob fails, and gets no other execution's blob.
			denied := e.begin(api.Code{Source: "cat in.bin", Files: map[string]api.Content{"in.bin": {Blob: "files/ex_00000000000000000000000010/1/0"}}}, 1)
			x, err := e.clients[0].Wait(t.Context(), denied.ID)
			if err != nil || x.Status != api.Failed || !strings.Contains(x.Error.Message, "there is none of that name") {
				t.Errorf("a blob that does not exist: %+v, %v", x, err)
			}
		})
	}
}

// The other servers show the output and files of one server's own worker, and a remote worker can use them as input; its state directory
// holds none of them.
func TestBlobsOfAServersWorker(t *testing.T) {
	t.Parallel()
	e := startElsewhere(t)
	state := filepath.Join(e.dir, "state-own")
	run(t, e.dir, "server-own", "server", "--listen", "127.0.0.1:"+programtest.FreePort(t), "--queues", "own", "--runtime", "process",
		"--state-dir", state, "--store", e.dsn, "--grace", "1s", "--slots", "1")
	var x *api.Execution
	until(t, "the queue is known", func() bool {
		var err error
		x, err = e.clients[0].Evaluate(t.Context(), api.Evaluation{Queue: "own", Code: api.Code{Language: "bash", Limits: roomy,
			Source: "seq 1 900000 | head -c 5000000 | tee big.bin", Collect: []string{"big.bin"}}})
		return err == nil
	})
	want := numbers(5_000_000)
	blob := e.end(x.ID, 1)
	for server := range e.clients {
		if got := e.file(server, x.ID); !bytes.Equal(got, want) {
			t.Errorf("server %d gives a file of %d bytes, or others", server, len(got))
		}
		if got := e.cli(server, "logs", x.ID, "--stream", "stdout"); !bytes.Equal(got, want) {
			t.Errorf("server %d gives a log of %d bytes, or others", server, len(got))
		}
	}
	next := e.begin(api.Code{Source: "cp in.bin big.bin", Collect: []string{"big.bin"}, Files: map[string]api.Content{"in.bin": {Blob: blob}}}, 1)
	e.end(next.ID, 1)
	if got := e.file(0, next.ID); !bytes.Equal(got, want) {
		t.Errorf("the next one's file has %d bytes, or others", len(got))
	}
	if _, err := os.Stat(filepath.Join(state, "blobs")); !os.IsNotExist(err) {
		t.Errorf("the server's state directory has blobs: %v", err)
	}
}

const (
	thirtyMegabytes = "seq 1 9000000 | head -c 30000000 > big.bin"
	// A pause of uploadPause before at most every 64 KB makes such an upload last at least two seconds.
	uploadPause = 5 * time.Millisecond
)

// underWay waits until an upload has begun.
func (e *elsewhere) underWay() {
	e.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for e.count("blob_pieces") < 5 {
		select {
		case <-tick.C:
		case <-deadline:
			e.t.Fatal("no upload has begun within a minute")
		}
	}
}

// After a worker is killed while it sends a file, a sweep removes everything that it left, and the next attempt's file is whole.
func TestUploadKilled(t *testing.T) {
	t.Parallel()
	e := startElsewhere(t)
	e.toServer.setDelay(uploadPause)
	x := e.begin(api.Code{Source: thirtyMegabytes, Collect: []string{"big.bin"}}, 3)
	e.underWay()
	e.worker.kill(0)
	e.toServer.setDelay(0)
	if named := e.count("blobs"); named != 0 {
		t.Fatal("the upload was over before the worker was killed")
	}
	blob := e.end(x.ID, 2)
	if want := fmt.Sprintf("files/%s/2/0", x.ID); blob != want {
		t.Errorf("the blob is %s, want %s", blob, want)
	}
	if got := e.file(0, x.ID); !bytes.Equal(got, numbers(30_000_000)) {
		t.Errorf("the file has %d bytes, or others", len(got))
	}
	pieces := e.count("blob_pieces")
	if _, err := e.db.Exec(t.Context(), `UPDATE pawl.blob_loose SET until = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(3 * time.Minute) // a sweep runs every minute
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for e.count("blob_loose") > 0 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d contents are loose", e.count("blob_loose"))
		}
	}
	if left, want := e.count("blob_pieces"), (30_000_000+1<<18-1)>>18; left != want || pieces <= want {
		t.Errorf("of %d pieces %d are left, want those of the one blob, %d", pieces, left, want)
	}
}

// An upload starts again when the database comes back after an outage, or when its connection to the server breaks: nothing is lost, and it
// is still the first attempt.
func TestUploadInterrupted(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]func(*elsewhere) *proxy{
		"the database": func(e *elsewhere) *proxy { return e.toStore }, "the server": func(e *elsewhere) *proxy { return e.toServer },
	} {
		t.Run(name, func(t *testing.T) {
			e := startElsewhere(t)
			e.toServer.setDelay(uploadPause)
			x := e.begin(api.Code{Source: thirtyMegabytes, Collect: []string{"big.bin"}}, 1)
			e.underWay()
			cut := line(e)
			cut.setCut(true)
			e.toServer.setDelay(0)
			if e.count("blobs") != 0 {
				t.Fatal("the upload was over before the line was cut")
			}
			<-time.After(time.Second)
			cut.setCut(false)
			e.end(x.ID, 1)
			until(t, "the servers are ready again", func() bool { return e.clients[0].Ready(t.Context()) == nil && e.clients[1].Ready(t.Context()) == nil })
			for server := range e.clients {
				if got := e.file(server, x.ID); !bytes.Equal(got, numbers(30_000_000)) {
					t.Errorf("server %d gives %d bytes, or others", server, len(got))
				}
			}
		})
	}
}
