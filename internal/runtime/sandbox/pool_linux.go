package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// pool keeps sandboxes that are built and wait, each for its only run. One goroutine refills it after starts; an idle
// pool does nothing. A nil pool is empty. It is safe for concurrent use.
type pool struct {
	runtime *Runtime
	size    int
	keep    time.Duration // time without a start after which it is emptied
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{}
	stopped chan struct{}
	expiry  *time.Timer

	mu    sync.Mutex
	stock []*warm // oldest first
	waste []*warm // to be destroyed
	off   bool    // emptied until the next start, or for good
}

// warm is a sandbox in the pool.
type warm struct {
	*box
	view []unix.Stat_t // the host's directories and files when it was built
}

// newPool returns a pool and starts to fill it.
func newPool(r *Runtime, size int, keep time.Duration) *pool {
	p := &pool{runtime: r, size: size, keep: keep, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.expiry = time.AfterFunc(keep, p.expire)
	go p.work()
	p.signal()
	return p
}

// take returns a sandbox, which then belongs to the run, or nil.
func (p *pool) take() *box {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var view []unix.Stat_t
	for len(p.stock) > 0 {
		w := p.stock[0]
		p.stock = slices.Delete(p.stock, 0, 1)
		if view == nil {
			view = hostView()
		}
		if slices.Equal(w.view, view) && w.alive() {
			return w.box
		}
		p.waste = append(p.waste, w)
	}
	return nil
}

// refill wakes the goroutine that fills the pool.
func (p *pool) refill() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	p.off = false
	p.expiry.Reset(p.keep)
	p.signal()
}

func (p *pool) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// expire empties a pool that has not been used for a while.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
	p.waste = append(p.waste, p.stock...)
	p.stock = nil
	p.signal()
}

// work builds and destroys until the pool is closed.
func (p *pool) work() {
	defer close(p.stopped)
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		}
		for p.step() {
		}
	}
}

// step destroys discarded sandboxes and builds one; it returns false when nothing is left to do. After a failure it
// rests until the next start, whose own sandbox will fail likewise and give the user the reason.
func (p *pool) step() bool {
	p.mu.Lock()
	waste := p.waste
	p.waste = nil
	wanted := !p.off && len(p.stock) < p.size
	p.mu.Unlock()
	for _, w := range waste {
		_ = w.destroy() // the next New sweeps what remains
	}
	if !wanted || p.ctx.Err() != nil {
		return false
	}
	w, err := p.build()
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		p.waste = append(p.waste, w)
	} else {
		p.stock = append(p.stock, w)
	}
	return true
}

func (p *pool) build() (*warm, error) {
	disk := runtime.DefaultLimits().Disk
	config := &pid1.Config{ScratchSize: disk, ScratchInodes: inodes(disk), Announce: true}
	w := &warm{box: p.runtime.newBox(), view: hostView()}
	_, err := w.box.build(config, nil)
	if err == nil {
		release := w.bound(p.ctx)
		_, err = w.await(p.ctx, pid1.Ready)
		if released := release(); err == nil && !released {
			err = p.ctx.Err()
		}
	}
	if err != nil {
		_ = w.destroy()
		return nil, err
	}
	return w, nil
}

// close destroys the pool and everything in it.
func (p *pool) close() {
	if p == nil {
		return
	}
	p.cancel()
	<-p.stopped
	p.expiry.Stop()
	p.expire() // a start that is still in progress gets none
	p.step()
}

// held returns the cgroups of the sandboxes in the pool, and whether it is full.
func (p *pool) held() (names []string, full bool) {
	if p == nil {
		return nil, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.stock {
		if w.cgroup != nil {
			names = append(names, w.cgroup.name)
		}
	}
	return names, len(p.stock) >= p.size
}

// hostView identifies the parts of the host that a sandbox built now shows, so that one built before an upgrade of the
// host is not used afterwards. Changes within these directories need no identification: every sandbox sees them.
func hostView() []unix.Stat_t {
	view := make([]unix.Stat_t, 0, len(systemDirs)+len(systemFiles))
	for _, paths := range [][]string{systemDirs, systemFiles} {
		for _, path := range paths {
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				st = unix.Stat_t{}
			}
			view = append(view, unix.Stat_t{Dev: st.Dev, Ino: st.Ino})
		}
	}
	return view
}
