package trial

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Meter measures processor time: of this process, and of the server's processes for this database while their connections
// exist. On a busy machine it is more reliable than wall time.
type Meter struct {
	database string
	own      time.Duration
	server   time.Duration
}

// NewMeter starts measuring.
func NewMeter(dsn string) *Meter {
	m := &Meter{}
	if cfg, err := pgx.ParseConfig(dsn); err == nil {
		m.database = cfg.Database
	}
	m.own, m.server = ownCPU(), serverCPU(m.database)
	return m
}

// Stop adds the processor time per item, for n items, in microseconds. The server's part is omitted where it cannot be seen:
// on another host, or on a system other than Linux.
func (m *Meter) Stop(r Result, n int) {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(max(n, 1)) }
	r[CPU] = each(ownCPU() - m.own)
	if s := serverCPU(m.database); s > m.server {
		r[ServerCPU] = each(s - m.server)
	}
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tick is the unit of /proc/*/stat on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// serverCPU adds up the server's processes for a database; their titles contain its name.
func serverCPU(database string) (sum time.Duration) {
	titles, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || database == "" {
		return 0
	}
	for _, path := range titles {
		title, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(title, []byte("postgres: ")) || !bytes.Contains(title, []byte(" "+database+" ")) {
			continue // ended meanwhile, or another program
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil {
			continue
		}
		// The name in parentheses may contain anything; user and system time are the 12th and 13th words after it.
		words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(words) < 13 {
			continue
		}
		for _, w := range words[11:13] {
			n, _ := strconv.ParseInt(w, 10, 64) // the kernel writes digits
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
