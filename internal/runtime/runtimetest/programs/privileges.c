/* Programs that try to be more than they are. */
#include "hostile.h"
#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>

/* Looks into other processes: a child of its own, its parent, process 1. */
int trace(int count, char **arguments) {
	char mine[64] = "mine", name[64];
	struct iovec here = {mine, sizeof mine};
	(void)count, (void)arguments;
	pid_t child = fork();
	if (child == 0)
		for_ever();
	const pid_t targets[] = {child, getppid(), 1};
	static const char *const who[] = {"a child", "its parent", "process 1"};
	for (size_t i = 0; i < 3; i++) {
		if (targets[i] == getpid() || targets[i] == 0)
			continue; /* process 1 is this program */
		snprintf(name, sizeof name, "attach to %s", who[i]);
		refused(name, ptrace(PTRACE_ATTACH, targets[i], NULL, NULL));
		snprintf(name, sizeof name, "seize %s", who[i]);
		refused(name, ptrace(PTRACE_SEIZE, targets[i], NULL, NULL));
		snprintf(name, sizeof name, "read the memory of %s", who[i]);
		refused(name, process_vm_readv(targets[i], &here, 1, &here, 1, 0));
		snprintf(name, sizeof name, "write the memory of %s", who[i]);
		refused(name, process_vm_writev(targets[i], &here, 1, &here, 1, 0));
		snprintf(name, sizeof name, "compare with %s", who[i]);
		refused(name, syscall(SYS_kcmp, getpid(), targets[i], 0, 0, 0));
		int fd = (int)syscall(CALL_PIDFD_OPEN, targets[i], 0);
		snprintf(name, sizeof name, "take a descriptor of %s", who[i]);
		refused(name, syscall(CALL_PIDFD_GETFD, fd, 1, 0));
		snprintf(name, sizeof name, "advise the memory of %s", who[i]);
		refused(name, syscall(CALL_PROCESS_MADVISE, fd, &here, 1, MADV_COLD, 0));
		snprintf(name, sizeof name, "move the pages of %s", who[i]);
		void *page = mine;
		int node = 0, status;
		if (i > 0)
			refused(name, syscall(SYS_move_pages, targets[i], 1, &page, &node, &status, 0));
	}
	refused("be traced", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	kill(child, SIGKILL);
	return 0;
}

/* Sends everything that there is to everybody that there is. Whoever it may not harm is looked at by the driver. */
int massacre(int count, char **arguments) {
	(void)count, (void)arguments;
	int init = (int)syscall(CALL_PIDFD_OPEN, 1, 0);
	for (int sig = 1; sig <= 64; sig++) {
		if (getpid() != 1) {
			kill(1, sig);
			syscall(SYS_tkill, 1, sig);
			syscall(SYS_tgkill, 1, 1, sig);
			syscall(CALL_PIDFD_SEND_SIGNAL, init, sig, NULL, 0);
			siginfo_t info = {.si_code = SI_QUEUE};
			syscall(SYS_rt_sigqueueinfo, 1, sig, &info);
		}
	}
	for (pid_t pid = 2; pid < 70000; pid++) /* host pids are no pids here */
		if (pid != getpid())
			kill(pid, SIGKILL);
	kill(-1, SIGKILL);
	/* The init's priorities are those of the same user. It may be slowed down and must do its work. */
	setpriority(PRIO_PROCESS, 1, 19);
	setpriority(PRIO_USER, 0, 19);
	struct sched_param zero = {0};
	sched_setscheduler(1, SCHED_IDLE, &zero);
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(1, sizeof one, &one);
	say("alive\n");
	return 0;
}

/* Exits with 1 if it is root anywhere. */
int report_user(int count, char **arguments) {
	(void)count, (void)arguments;
	uid_t real, effective, saved;
	getresuid(&real, &effective, &saved);
	if (real != effective || effective != saved || effective == 0)
		printf("run as %d, %d, %d\n", (int)real, (int)effective, (int)saved);
	return 0;
}

static void run_file(const char *path, const char *token, const char *host) {
	pid_t pid = fork();
	if (pid == 0) {
		execl(path, path, token, host, "report-user", NULL);
		_exit(0); /* not executable here at all */
	}
	waitpid(pid, NULL, 0);
}

/* The arguments: token, host's namespace, and a copy of this program that belongs to root and is set-user-id. */
int become_root(int count, char **arguments) {
	char line[256];
	refused("setuid 0", setuid(0) == 0 ? 0 : (errno = errno == EINVAL ? EPERM : errno, -1)); /* no such user here */
	refused("setgid 0", setgid(0) == 0 ? 0 : (errno = errno == EINVAL ? EPERM : errno, -1));
	did("setreuid 0", setreuid(0, 0));
	did("setresuid 0", setresuid(0, 0, 0));
	did("setresgid 0", setresgid(0, 0, 0));
	gid_t zero = 0;
	did("setgroups 0", setgroups(1, &zero));
	setfsuid(0);
	if (setfsuid((uid_t)-1) == 0)
		printf("setfsuid 0\n");
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f)) {
		unsigned long long set;
		if (strncmp(line, "Cap", 3) == 0 && sscanf(line, "%*s %llx", &set) == 1 && set != 0)
			printf("have capabilities: %s", line);
		if (strncmp(line, "NoNewPrivs:", 11) == 0 && !strstr(line, "1"))
			printf("gain privileges\n");
		if (strncmp(line, "Seccomp:", 8) == 0 && !strstr(line, "2"))
			printf("run without a filter\n");
	}
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
	did("capset", syscall(SYS_capset, &header, all));
	for (unsigned long c = 0; c < 41; c++) {
		did("raise an ambient capability", prctl(47, 2, c, 0, 0));
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1)
			printf("keep capability %lu in the bounding set\n", c);
	}
	did("set securebits", prctl(PR_SET_SECUREBITS, 1, 0, 0, 0));
	int fd = open("mine", O_CREAT | O_WRONLY, 0755);
	did("give a file to root", fchown(fd, 0, 0));
	/* struct vfs_cap_data, revision 2: all capabilities, permitted and effective. */
	unsigned capabilities[5] = {0x02000001, ~0u, 0, ~0u, 0};
	did("set a file's capabilities", fsetxattr(fd, "security.capability", capabilities, sizeof capabilities, 0));
	did("set a trusted attribute", fsetxattr(fd, "trusted.x", "x", 1, 0));
	if (count >= 3)
		run_file(arguments[2], arguments[0], arguments[1]);
	/* Set-user-id on one's own program makes nobody root either. */
	static char buffer[1 << 16];
	int in = open("/proc/self/exe", O_RDONLY), out = open("/tmp/own", O_CREAT | O_WRONLY, 0755);
	ssize_t n;
	while ((n = read(in, buffer, sizeof buffer)) > 0)
		if (write(out, buffer, (size_t)n) != n)
			break;
	fchmod(out, 06755);
	close(out);
	fflush(stdout);
	if (count >= 2)
		run_file("/tmp/own", arguments[0], arguments[1]);
	return 0;
}

static void look_at_devices(const char *dir, int depth) {
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];
	while (d && depth < 4 && (e = readdir(d))) {
		struct stat st;
		snprintf(path, sizeof path, "%.200s/%.250s", dir, e->d_name);
		if (e->d_name[0] == '.' || lstat(path, &st) != 0)
			continue;
		if (S_ISDIR(st.st_mode))
			look_at_devices(path, depth + 1);
		if (S_ISBLK(st.st_mode))
			printf("see block device %s\n", path);
		/* Memory devices without memory, and terminals of its own. */
		unsigned which = major(st.st_rdev), minor_ = minor(st.st_rdev);
		int harmless = (which == 1 && (minor_ == 3 || minor_ == 5 || minor_ == 7 || minor_ == 8 || minor_ == 9)) || which == 5 ||
		               which == 136;
		if (S_ISCHR(st.st_mode) && !harmless)
			printf("see device %s\n", path);
	}
	if (d)
		closedir(d);
}

/* The argument, if any, is a directory with a device that a host put there. */
int devices(int count, char **arguments) {
	static const struct {
		const char *name;
		mode_t kind;
		unsigned major, minor;
	} wanted[] = {
		{"/dev/mem", S_IFCHR, 1, 1}, {"/dev/kmsg", S_IFCHR, 1, 11}, {"/dev/null", S_IFCHR, 1, 3}, {"a loop device", S_IFBLK, 7, 0},
		{"a SCSI disk", S_IFBLK, 8, 0}, {"a virtual disk", S_IFBLK, 254, 0}, {"/dev/kvm", S_IFCHR, 10, 232},
		{"/dev/fuse", S_IFCHR, 10, 229}, {"/dev/net/tun", S_IFCHR, 10, 200},
	};
	static const char *const dirs[] = {"/work", "/tmp", "/dev/shm", "/dev"};
	char path[64], name[128];
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		for (size_t k = 0; k < sizeof dirs / sizeof *dirs; k++) {
			snprintf(path, sizeof path, "%s/node%zu", dirs[k], i);
			snprintf(name, sizeof name, "make %s in %s", wanted[i].name, dirs[k]);
			did(name, mknod(path, wanted[i].kind | 0666, makedev(wanted[i].major, wanted[i].minor)));
		}
	look_at_devices("/dev", 0);
	if (count > 0) {
		snprintf(name, sizeof name, "open a device in a mounted directory");
		did(name, open(arguments[0], O_RDONLY));
	}
	return 0;
}

int administer(int count, char **arguments) {
	struct timespec now = {0, 0};
	struct timeval clock = {0, 0};
	struct timex skew = {.modes = ADJ_OFFSET};
	char image[16] = "";
	(void)count, (void)arguments;
	clock_gettime(CLOCK_REALTIME, &now); /* set to what it is: should it work, the host is no worse */
	clock.tv_sec = now.tv_sec;
	refused("clock_settime", clock_settime(CLOCK_REALTIME, &now));
	refused("settimeofday", settimeofday(&clock, NULL));
	refused("adjtimex", adjtimex(&skew));
	refused("clock_adjtime", clock_adjtime(CLOCK_REALTIME, &skew));
	refused("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL)); /* only switches Ctrl-Alt-Del off */
	refused("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
	refused("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, "", 0));
	refused("init_module", syscall(SYS_init_module, image, sizeof image, ""));
	refused("finit_module", syscall(SYS_finit_module, 0, "", 0));
	refused("delete_module", syscall(SYS_delete_module, "none", 0));
	refused("swapoff", swapoff("/none"));
	refused("sethostname", sethostname("taken", 5));
	refused("setdomainname", setdomainname("taken", 5));
	refused("acct", acct(NULL));
	refused("syslog", klogctl(3, image, sizeof image));
	refused("vhangup", vhangup());
	refused("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
	refused("quotactl_fd", syscall(CALL_QUOTACTL_FD, 0, 0, 0, NULL));
#ifdef __x86_64__
	refused("iopl", syscall(SYS_iopl, 3));
	refused("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
	refused("modify_ldt", syscall(SYS_modify_ldt, 0, image, sizeof image));
#endif
	refused("lookup_dcookie", syscall(SYS_lookup_dcookie, 0ULL, image, sizeof image));
	return 0;
}

/* Facilities of the kernel in which holes keep being found. */
int facilities(int count, char **arguments) {
	char buffer[256] = "";
	(void)count, (void)arguments;
	for (int command = 0; command < 40; command++) {
		snprintf(buffer, sizeof buffer, "bpf %d", command);
		refused(buffer, syscall(SYS_bpf, command, (char[128]){0}, 128));
	}
	refused("perf_event_open", syscall(SYS_perf_event_open, (char[128]){0}, 0, -1, -1, 0));
	refused("io_uring_setup", syscall(CALL_IO_URING_SETUP, 1, (char[128]){0}));
	refused("io_uring_enter", syscall(CALL_IO_URING_ENTER, 0, 0, 0, 0, NULL, 0));
	refused("io_uring_register", syscall(CALL_IO_URING_REGISTER, 0, 0, NULL, 0));
	refused("userfaultfd", syscall(SYS_userfaultfd, 1));
	refused("keyctl", syscall(SYS_keyctl, 0, -3, 1));
	refused("join a session keyring", syscall(SYS_keyctl, 1, "x"));
	refused("add_key", syscall(SYS_add_key, "user", "k", "v", 1, -2));
	refused("request_key", syscall(SYS_request_key, "user", "k", NULL, -2));
	struct {
		struct file_handle head;
		char room[128];
	} handle = {{.handle_bytes = 8, .handle_type = 1}, {2}};
	refused("open_by_handle_at", open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY));
	int id;
	refused("name_to_handle_at", name_to_handle_at(AT_FDCWD, "/usr", &handle.head, &id, 0));
	refused("fanotify_init", syscall(SYS_fanotify_init, 0x200, O_RDONLY));
	refused("fanotify_mark", syscall(SYS_fanotify_mark, 0, 1, 1, AT_FDCWD, "/"));
	refused("ask for another memory layout", syscall(SYS_personality, 0x0040000));
	did("inject into the terminal", open("/dev/tty", O_RDWR));
	return 0;
}

int raise_limits(int count, char **arguments) {
	char name[64];
	(void)count, (void)arguments;
	for (int what = 0; what < 16; what++) {
		struct rlimit limit, more;
		if (getrlimit(what, &limit) != 0 || limit.rlim_max == RLIM_INFINITY)
			continue;
		/* What counts is the limit afterwards, not what the call says. */
		more = (struct rlimit){limit.rlim_max + 1, limit.rlim_max + 1};
		setrlimit(what, &more);
		setrlimit(what, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
		if (getrlimit(what, &more) == 0 && (more.rlim_max > limit.rlim_max || more.rlim_cur > limit.rlim_max))
			printf("raise limit %d\n", what);
		snprintf(name, sizeof name, "raise limit %d of process 1", what);
		if (getpid() != 1)
			did(name, prlimit(1, what, &limit, NULL));
	}
	struct rlimit core;
	if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max > 1)
		printf("dump core\n");
	struct sched_param first = {.sched_priority = 1};
	did("run as real-time FIFO", sched_setscheduler(0, SCHED_FIFO, &first));
	did("run as real-time RR", sched_setscheduler(0, SCHED_RR, &first));
	struct {
		unsigned size, policy;
		unsigned long long flags;
		int nice;
		unsigned priority;
		unsigned long long runtime, deadline, period;
	} deadline = {48, 6, 0, 0, 0, 1000000, 10000000, 10000000};
	did("run by deadline", syscall(SYS_sched_setattr, 0, &deadline, 0));
	did("be nicer to itself", setpriority(PRIO_PROCESS, 0, -20));
	did("real-time input and output", syscall(SYS_ioprio_set, 1, 0, 1 << 13));
	void *much = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	did("lock 16 MiB of memory", mlock(much, 16 << 20));
	return 0;
}

/* Changes of its own state that must not make a difference to how it is watched and ended. */
int meddle(int count, char **arguments) {
	const char *how = count > 0 ? arguments[0] : "";
	if (strcmp(how, "hide") == 0) {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		prctl(PR_SET_NAME, "pawl-init", 0, 0, 0);
		prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		setsid();
		if (fork() == 0) {
			setsid();
			say("ready\n");
			for_ever();
		}
		for_ever();
	}
	if (strcmp(how, "stop") == 0) {
		if (fork() == 0)
			for_ever();
		say("ready\n");
		kill(0, SIGSTOP);
		for_ever();
	}
	if (strcmp(how, "vfork") == 0) {
		say("ready\n");
		if (vfork() == 0)
			for_ever(); /* the parent waits in the kernel */
	}
	if (strcmp(how, "nonblock") == 0) { /* on what the host's end might share */
		for (int fd = 0; fd < 3; fd++) {
			fcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND);
			fcntl(fd, F_SETOWN, 1);
			fcntl(fd, F_SETPIPE_SZ, 4096);
		}
		say("ready\n");
		return 0;
	}
	if (strcmp(how, "steal") == 0) { /* read the output back before the host does */
		char path[32];
		int fd[3];
		for (int i = 0; i < 3; i++) {
			snprintf(path, sizeof path, "/proc/self/fd/%d", i);
			fd[i] = open(path, O_RDWR | O_NONBLOCK);
		}
		say("ready\n");
		for (int i = 0; i < 3; i++)
			if (fd[i] >= 0)
				write(fd[i], "x", 0);
		return 0;
	}
	return 99;
}
