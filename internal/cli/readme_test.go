package cli

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/programtest"
)

var readmeBlock = regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```")

// Commands that a test runs before and after a block are in comments beside it, which a rendered page does not show: the start of a
// server, and its end.
var (
	hiddenFirst = regexp.MustCompile("(?s)<!-- first:\n```sh\n(.*?)```\n-->(.*?```sh\n)")
	hiddenLast  = regexp.MustCompile("(?s)```\n\n<!-- last:\n```sh\n(.*?)```\n-->")
)

// documented are the blocks of commands and documents in a file of docs, or in the section with this title; their number must be want.
func documented(t *testing.T, file, title string, want int) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + file)
	if err != nil {
		t.Fatal(err)
	}
	section := hiddenLast.ReplaceAllString(hiddenFirst.ReplaceAllString(string(text), "$2$1"), "$1```")
	if title != "" {
		_, section, _ = strings.Cut(section, "\n## "+title)
		section, _, _ = strings.Cut(section, "\n## ")
	}
	var blocks []string
	for _, m := range readmeBlock.FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[2])
	}
	if len(blocks) != want {
		t.Fatalf("docs/%s %s: %d blocks, want %d", file, title, len(blocks), want)
	}
	return blocks
}

// followed runs the commands of a document in a checkout, and returns their output. Files in /tmp go into scratch, and port replaces
// 7411.
func followed(t *testing.T, commands, scratch, port string) string {
	t.Helper()
	script := strings.NewReplacer("/tmp/", scratch+"/", "7411", port).Replace(commands)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -meuo pipefail\n"+script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = "../..", environment(t), 30*time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// The commands of the README work as documented, in order, in a checkout.
func TestReadmeCommands(t *testing.T) {
	need(t, "python3", "bash", "node", "curl")
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	port := programtest.FreePort(t)
	env := append(environment(t), "PAWL_LISTEN=127.0.0.1:"+port)
	ran := 0
	for _, m := range readmeBlock.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "yaml" {
			if example, err := os.ReadFile("../../examples/wordcount.yaml"); err != nil || string(example) != m[2] {
				t.Errorf("the workflow is not the one of examples/wordcount.yaml (%v)", err)
			}
			continue
		}
		script := strings.NewReplacer("make test", "true", "/tmp/", scratch+"/", "7411", port).Replace(m[2])
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -meuo pipefail\n"+script)
		var out bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "../..", env, &out, &out
		cmd.WaitDelay = 30 * time.Second
		if err := cmd.Run(); err != nil {
			t.Errorf("%v\n%s\n%s", err, script, out.String())
		}
		ran++
	}
	if ran < 5 {
		t.Errorf("only %d blocks of commands were found", ran)
	}
}
