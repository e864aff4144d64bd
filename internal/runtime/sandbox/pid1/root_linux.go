package pid1

import "syscall"

const (
	quiet      = syscall.MS_NOSUID | syscall.MS_NODEV
	rootLayout = "mode=0755,size=1m,nr_inodes=1024"
)

// buildRoot creates the sandbox's file system and moves into it: a small tmpfs with the host's toolchains bound into it
// and the run's own tmpfs, which after finishRoot is the only writable place.
//
// In a copy of a base it creates only the run's own part.
func buildRoot(cfg *Config) *failure {
	if cfg.birth.OntoBase {
		if err := syscall.Chdir("/"); err != nil {
			return failed("enter the root", "/", err)
		}
		return eachStep(cfg, cfg.plan.steps, nil)
	}
	// Later mounts must not propagate to the host; the host's unmounts may still propagate here.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return failed("make mounts private to the sandbox", "/", err)
	}
	// Sources are opened before the new root can cover them.
	steps := append(cfg.plan.steps, cfg.Steps...)
	trees := make([]int, len(steps))
	for i, s := range steps {
		var f *failure
		if trees[i], f = source(s); f != nil {
			return f
		}
	}
	if err := syscall.Mount("tmpfs", cfg.plan.Cover, "tmpfs", quiet, rootLayout); err != nil {
		return failed("mount the new root", cfg.plan.Cover, err)
	}
	if err := syscall.Chdir(cfg.plan.Cover); err != nil {
		return failed("enter the new root", cfg.plan.Cover, err)
	}
	if f := eachStep(cfg, steps, trees); f != nil {
		return f
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return failed("pivot into the new root", cfg.plan.Cover, err)
	}
	// Both roots are now mounted on "."; the old one is on top.
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return failed("leave the host's root", "/", err)
	}
	if err := syscall.Chdir("/"); err != nil {
		return failed("enter the new root", "/", err)
	}
	return nil
}

// eachStep carries out the steps, relative to the current directory, which is or becomes the root. trees are the steps' mounts;
// nil on a base, where no step binds.
func eachStep(cfg *Config, steps []Step, trees []int) *failure {
	for i, s := range steps {
		tree := -1
		if trees != nil {
			tree = trees[i]
		} else if !s.Kind.ofRun() {
			continue
		}
		if f := step(cfg, s, tree); f != nil {
			return f
		}
	}
	return nil
}

// offerBase finishes a base, sends it to the host and waits for its end. Its /proc stays beneath the runs' own and shows no process once
// this one has ended; without it the kernel would not let a run mount its own.
func offerBase() *failure {
	order, f := receiveOrder()
	if f != nil {
		return f
	}
	if f := attachMounts(order); f != nil {
		return f
	}
	if f := sealRoot(); f != nil {
		return f
	}
	const name = "/proc/self/ns/mnt"
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return failed("open the namespace", name, err)
	}
	ready := Message{Kind: Ready}
	if err := syscall.Sendmsg(ControlFD, ready.encode(), syscall.UnixRights(fd), nil, 0); err != nil {
		return failed("hand over the namespace", name, err)
	}
	syscall.Read(ControlFD, make([]byte, 1))
	return nil
}

func attachMounts(order *Order) *failure {
	for i, target := range order.Mounts {
		if err := attach(order.trees[i], target); err != nil {
			return failed("bind", "/"+target, err)
		}
	}
	return nil
}

func sealRoot() *failure {
	if err := syscall.Mount("", "/", "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|quiet, ""); err != nil {
		return failed("make the root read-only", "/", err)
	}
	return nil
}

// finishRoot adds the order's parts, while no program has run yet that could have planted anything, and makes the root read-only.
func finishRoot(cfg *Config, order *Order) *failure {
	if f := attachMounts(order); f != nil {
		return f
	}
	if order.ScratchSize != cfg.ScratchSize || order.ScratchInodes != cfg.ScratchInodes {
		options := scratchOptions(order.ScratchSize, order.ScratchInodes)
		if err := syscall.Mount("", WorkDir, "", syscall.MS_REMOUNT|quiet, options); err != nil {
			return failed("resize the working directory", WorkDir, err)
		}
	}
	if !cfg.birth.OntoBase {
		if f := sealRoot(); f != nil {
			return f
		}
	}
	if err := syscall.Chdir(WorkDir); err != nil {
		return failed("enter the working directory", WorkDir, err)
	}
	return nil
}

func scratchOptions(size, inodes int64) string {
	return "mode=0755,size=" + decimal(size) + ",nr_inodes=" + decimal(inodes)
}

// source opens what a step binds, as a detached tree; -1 for a step that binds nothing.
func source(s Step) (int, *failure) {
	var set uint64
	switch s.Kind {
	case BindReadOnly:
		set = mountAttrReadOnly | mountAttrNoSuid | mountAttrNoDev
	case BindDevice:
		set = mountAttrNoSuid
	default:
		return -1, nil
	}
	tree, err := openTree(s.Source)
	if err != nil {
		return -1, failed("open for binding", s.Source, err)
	}
	if s.Kind == BindDevice {
		var st syscall.Stat_t
		if err := syscall.Fstat(tree, &st); err != nil {
			return -1, failed("inspect the device", s.Source, err)
		}
		if st.Mode&syscall.S_IFMT != syscall.S_IFCHR || int64(st.Rdev) != s.Number {
			return -1, failed("verify the device", s.Source, syscall.ENODEV)
		}
	}
	if err := setAttributes(tree, set); err != nil {
		return -1, failed("restrict the bind mount of", s.Source, err)
	}
	return tree, nil
}

func step(cfg *Config, s Step, tree int) *failure {
	var err error
	stage := ""
	switch s.Kind {
	case MakeDir:
		stage = "create directory"
		err = makeDir(s.Target, uint32(s.Number))
	case MakeLink:
		stage = "create link"
		if err = makeParents(s.Target); err == nil {
			err = syscall.Symlink(s.Source, s.Target)
		}
	case MakeFile:
		stage = "create file"
		if err = makeParents(s.Target); err == nil {
			err = writeFile(s.Target, s.Source)
		}
	case BindReadOnly, BindDevice:
		stage = "bind"
		err = attach(tree, s.Target)
	case MountProc:
		stage = "mount a fresh /proc at"
		if err = makeDir(s.Target, 0o555); err == nil {
			err = syscall.Mount("proc", s.Target, "proc", quiet|syscall.MS_NOEXEC, "")
		}
		if err == nil {
			forbidUserNamespaces(s.Target)
		}
	case Mask, Freeze:
		if cfg.Base { // the runs mount their own /proc
			return nil
		}
		if stage = "mask"; s.Kind == Mask {
			err = mask(s.Target)
			break
		}
		stage = "make read-only"
		err = freeze(s.Target)
	case MountScratch:
		stage = "mount the working directory"
		err = mountScratch(cfg)
	default:
		stage, err = "decode a step", syscall.EINVAL
	}
	if err != nil {
		return failed(stage, "/"+s.Target, err)
	}
	return nil
}

func makeDir(path string, mode uint32) error {
	if err := makeParents(path); err != nil {
		return err
	}
	if err := syscall.Mkdir(path, mode); err != nil && err != syscall.EEXIST {
		return err
	}
	return nil
}

func makeParents(path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if err := syscall.Mkdir(path[:i], 0o755); err != nil && err != syscall.EEXIST {
			return err
		}
	}
	return nil
}

func writeFile(path, content string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, []byte(content))
	return err
}

// attach mounts a detached tree at target, which is created as a directory or a file like the tree's root.
func attach(tree int, target string) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(tree, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		if err := makeDir(target, 0o755); err != nil {
			return err
		}
	} else {
		if err := makeParents(target); err != nil {
			return err
		}
		if err := writeFile(target, ""); err != nil && err != syscall.EEXIST {
			return err
		}
	}
	if err := moveMount(tree, target); err != nil {
		return err
	}
	return syscall.Close(tree)
}

// forbidUserNamespaces sets this user namespace's limit on nested namespaces to zero, before /proc/sys becomes
// read-only. The seccomp filter already forbids them; this is a second barrier, because every privilege that a program
// could gain starts with a user namespace. Where the kernel has no such limit only the filter remains.
func forbidUserNamespaces(proc string) {
	fd, err := syscall.Open(proc+"/sys/user/max_user_namespaces", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	syscall.Write(fd, []byte("0"))
	syscall.Close(fd)
}

// mask hides a file behind the sandbox's own /dev/null, which was verified when it was bound, and a directory behind an
// empty read-only directory.
func mask(target string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(target, &st); err == syscall.ENOENT {
		return nil
	} else if err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return syscall.Mount("tmpfs", target, "tmpfs", quiet|syscall.MS_RDONLY|syscall.MS_NOEXEC, "mode=0555,nr_inodes=2")
	}
	return syscall.Mount("dev/null", target, "", syscall.MS_BIND, "")
}

func freeze(target string) error {
	err := syscall.Mount(target, target, "", syscall.MS_BIND|syscall.MS_REC, "")
	if err == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	return syscall.Mount("", target, "",
		syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|syscall.MS_NOEXEC|quiet, "")
}

// mountScratch mounts one tmpfs and shows it in three places, so that one size limits all three. The tmpfs itself ends
// up below /work, covered by the part of it that is shown there: unmounting it would wait for the kernel's
// read-copy-update, on a busy machine the longest wait of the whole start.
func mountScratch(cfg *Config) error {
	const work = "work" // WorkDir, from the new root
	parts := [...]struct {
		source, target string
		mode           uint32
	}{{work + "/tmp", "tmp", 0o1777}, {work + "/shm", "dev/shm", 0o1777}, {work + "/work", work, 0o755}}
	for _, part := range parts {
		if err := makeDir(part.target, 0o755); err != nil {
			return err
		}
	}
	if cfg.Base { // a base has only the mount points
		return nil
	}
	if err := syscall.Mount("tmpfs", work, "tmpfs", quiet, scratchOptions(cfg.ScratchSize, cfg.ScratchInodes)); err != nil {
		return err
	}
	for _, part := range parts {
		if err := syscall.Mkdir(part.source, part.mode); err != nil {
			return err
		}
		if err := syscall.Mount(part.source, part.target, "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// decimal formats a positive number; strconv would be another package to initialize.
func decimal(n int64) string { return string(appendDecimal(nil, n)) }

func appendDecimal(b []byte, n int64) []byte {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return append(b, digits[i:]...)
		}
	}
}
