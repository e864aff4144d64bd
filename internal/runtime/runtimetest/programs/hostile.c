/*
 * The hostile programs of the conformance suite, one per command. They are dangerous outside of a sandbox, so each run
 * first makes sure that it is in one: the process must be in another pid namespace than the host's, whose inode number
 * the test driver passes, and must have been given the driver's token twice, as an argument and in the environment.
 *
 *   hostile TOKEN HOST_PID_NAMESPACE COMMAND [ARGUMENT]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void guard(const char *token, const char *host) {
	const char *given = getenv("PAWL_HOSTILE_TOKEN");
	struct stat ns;
	if (!given || strlen(token) < 16 || strcmp(given, token) != 0) {
		fprintf(stderr, "refusing to run: no token\n");
		_exit(99);
	}
	if (stat("/proc/self/ns/pid", &ns) != 0 || (unsigned long long)ns.st_ino == strtoull(host, NULL, 10)) {
		fprintf(stderr, "refusing to run: not in a pid namespace of its own\n");
		_exit(99);
	}
}

static void say(const char *text) {
	size_t n = strlen(text);
	if (write(1, text, n) != (ssize_t)n)
		_exit(98);
}

static void for_ever(void) {
	for (;;)
		pause();
}

static void eat_memory(void) {
	for (;;) {
		size_t size = 4 << 20;
		volatile char *p = malloc(size);
		if (!p)
			continue; /* an rlimit; keep what there is and keep trying */
		for (size_t i = 0; i < size; i += 4096)
			p[i] = (char)i;
	}
}

/* Fills a descriptor until the kernel refuses; the exit code is the reason. */
static int fill(int fd) {
	static char block[1 << 20];
	if (fd < 0)
		return errno;
	memset(block, 'x', sizeof block);
	for (;;)
		if (write(fd, block, sizeof block) < 0)
			return errno;
}

static long long bytes_read;

static int read_file(const char *path, const struct stat *st, int kind, struct FTW *where) {
	static char buffer[1 << 16];
	ssize_t n;
	(void)st, (void)where;
	if (kind != FTW_F)
		return 0;
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	while ((n = read(fd, buffer, sizeof buffer)) > 0)
		bytes_read += n;
	close(fd);
	return bytes_read > (192LL << 20);
}

static int fork_bomb(void) {
	for (int n = 0;; n++) {
		pid_t pid = fork();
		if (pid == 0)
			for_ever();
		if (pid < 0) {
			printf("%d %s\n", n, errno == EAGAIN ? "EAGAIN" : strerror(errno));
			return 0;
		}
		if (n > 100000)
			return 1;
	}
}

/* Every process forks as fast as it can until it is killed. */
static void wild_fork_bomb(void) {
	say("ready\n");
	for (;;)
		fork();
}

static int daemon_holding_stdout(void) {
	if (fork() == 0) {
		setsid();
		signal(SIGHUP, SIG_IGN);
		if (fork() == 0)
			for_ever();
		_exit(0);
	}
	wait(NULL);
	say("parent done\n");
	return 0;
}

static int flood(int fd) {
	static char block[1 << 16];
	memset(block, 'y', sizeof block);
	for (;;)
		if (write(fd, block, sizeof block) < 0)
			return errno;
}

static int print_bytes(long n) {
	static char block[1 << 16];
	memset(block, 'z', sizeof block);
	while (n > 0) {
		ssize_t done = write(1, block, n < (long)sizeof block ? (size_t)n : sizeof block);
		if (done < 0)
			return errno;
		n -= done;
	}
	return 0;
}

static int odd_bytes(void) {
	static const char odd[] = "a\0b\xff\xfe\xc3\x28\x1b[31mred\x1b[0m\r\n\ttail";
	return write(1, odd, sizeof odd - 1) == sizeof odd - 1 ? 0 : 1;
}

/* Opens each path in the arguments; prints those that could be opened. */
static int open_all(int n, char **paths) {
	for (int i = 0; i < n; i++) {
		int fd = open(paths[i], O_RDONLY | O_NONBLOCK);
		if (fd >= 0)
			printf("opened %s\n", paths[i]);
		DIR *d = opendir(paths[i]);
		if (d)
			printf("listed %s\n", paths[i]);
		if (access(paths[i], F_OK) == 0)
			printf("saw %s\n", paths[i]);
	}
	return 0;
}

static int list_descriptors(void) {
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	if (!d)
		return 1;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d))
			printf("%s\n", e->d_name);
	return 0;
}

static int reach(int type, const char *address, int port) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
	inet_pton(AF_INET, address, &to.sin_addr);
	int fd = socket(AF_INET, type, 0);
	if (fd < 0)
		return 0;
	int reached = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && send(fd, "x", 1, 0) == 1;
	close(fd);
	return reached;
}

static int network(int port) {
	static const char *const addresses[] = {"127.0.0.1", "169.254.169.254", "8.8.8.8", "10.0.0.1", "172.17.0.1"};
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		if (reach(SOCK_STREAM, addresses[i], i == 0 ? port : 80))
			printf("tcp %s\n", addresses[i]);
		if (reach(SOCK_DGRAM, addresses[i], i == 0 ? port : 53))
			printf("udp %s\n", addresses[i]);
	}
	return 0;
}

static void *idle_thread(void *unused) {
	for_ever();
	return unused;
}

static int thread_bomb(void) {
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int n = 0;; n++) {
		pthread_t id;
		int why = pthread_create(&id, &small, idle_thread, NULL);
		if (why) {
			printf("%d %s\n", n, why == EAGAIN ? "EAGAIN" : strerror(why));
			return 0;
		}
		if (n > 100000)
			return 1;
	}
}

/* Orphans a thousand children that end at once and that nobody here waits for. */
static int zombie_factory(void) {
	for (int i = 0; i < 1000; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (fork() == 0)
				_exit(0);
			_exit(0);
		}
		if (pid < 0)
			return 1; /* zombies were kept and count as processes */
		waitpid(pid, NULL, 0);
	}
	return 0;
}

static int fill_inodes(const char *dir) {
	char path[256];
	for (int i = 0;; i++) {
		snprintf(path, sizeof path, "%s/%d", dir, i);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0)
			return errno;
		close(fd);
	}
}

/* Does what it should not be able to; prints what it was able to do. */
static int probe(void) {
#define TRY(name, call) \
	do { \
		if ((long)(call) != -1) \
			printf("%s\n", name); \
	} while (0)
	static const struct {
		const char *name;
		long flags;
	} spaces[] = {{"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID}, {"net", CLONE_NEWNET},
	              {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}};
	char name[64], buffer[64];
	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
		snprintf(name, sizeof name, "unshare %s", spaces[i].name);
		TRY(name, unshare((int)spaces[i].flags));
		long pid = syscall(SYS_clone, spaces[i].flags | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		snprintf(name, sizeof name, "clone %s", spaces[i].name);
		TRY(name, pid);
	}
	TRY("clone3", syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS ? -1 : 0);
	TRY("setns", syscall(SYS_setns, open("/proc/self/ns/net", O_RDONLY), 0));
	TRY("mount", mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
	TRY("remount", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
	TRY("umount", umount2("/proc/sys", MNT_DETACH));
	TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
	TRY("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
	TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
	TRY("chroot", chroot("/"));
	TRY("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	struct iovec mine = {buffer, sizeof buffer};
	TRY("process_vm_readv", process_vm_readv(getppid(), &mine, 1, &mine, 1, 0));
	TRY("setuid 0", setuid(0));
	TRY("setgid 0", setgid(0));
	TRY("mknod", mknod("device", S_IFCHR | 0666, (1 << 8) | 1));
	struct timespec epoch = {0, 0};
	TRY("clock_settime", clock_settime(CLOCK_REALTIME, &epoch));
	TRY("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL));
	TRY("init_module", syscall(SYS_init_module, NULL, 0, ""));
	TRY("bpf", syscall(SYS_bpf, 0, NULL, 0));
	TRY("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	TRY("io_uring_setup", syscall(SYS_io_uring_setup, 1, buffer));
	TRY("userfaultfd", syscall(SYS_userfaultfd, 1));
	TRY("keyctl", syscall(SYS_keyctl, 0, -3, 1));
	TRY("add_key", syscall(SYS_add_key, "user", "k", "v", 1, -2));
	TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, buffer, 0) == -1 && errno == EPERM ? -1 : 0);
	TRY("netlink socket", socket(AF_NETLINK, SOCK_RAW, 0));
	TRY("packet socket", socket(AF_PACKET, SOCK_RAW, 0));
	TRY("vsock socket", socket(40, SOCK_STREAM, 0));
	TRY("crypto socket", socket(38, SOCK_SEQPACKET, 0));
	TRY("raw socket", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	struct rlimit more = {1 << 20, 1 << 20};
	TRY("core files", setrlimit(RLIMIT_CORE, &more));
	TRY("the init's limits", prlimit(1, RLIMIT_NOFILE, NULL, &more));
	struct sched_param fifo = {.sched_priority = 1};
	TRY("real-time priority", sched_setscheduler(0, SCHED_FIFO, &fifo));
	static const char *const writable[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory",
	                                       "/proc/1/oom_score_adj", "/proc/1/mem", "/usr/bin/env", "/etc/passwd", "/x"};
	for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
		snprintf(name, sizeof name, "write %s", writable[i]);
		TRY(name, open(writable[i], O_WRONLY | O_CREAT, 0600));
	}
	static const char *const readable[] = {"/proc/1/environ", "/proc/1/mem", "/proc/1/fd", "/proc/1/root/etc",
	                                       "/proc/1/cwd/", "/proc/1/exe"};
	for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
		snprintf(name, sizeof name, "read %s", readable[i]);
		TRY(name, open(readable[i], O_RDONLY));
	}
	static const char *const empty[] = {"/proc/kallsyms", "/proc/keys", "/proc/kcore", "/proc/kmsg", "/proc/timer_list"};
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
		int fd = open(empty[i], O_RDONLY | O_NONBLOCK);
		snprintf(name, sizeof name, "read %s", empty[i]);
		TRY(name, fd >= 0 && read(fd, buffer, 1) == 1 ? 0 : -1);
	}
	/* Last, because it may well work: process 1 must outlive all that it is sent. */
	for (int sig = 1; sig <= 64; sig++)
		kill(1, sig);
	printf("alive\n");
	return 0;
}

int main(int argc, char **argv) {
	if (argc < 4)
		return 99;
	guard(argv[1], argv[2]);
	const char *command = argv[3];
	const char *argument = argc > 4 ? argv[4] : "";
#define IS(name) (strcmp(command, name) == 0)
	if (IS("spin"))
		for (volatile unsigned n = 0;; n++)
			;
	if (IS("sleep")) {
		say(argument);
		for_ever();
	}
	if (IS("stubborn")) {
		signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN), signal(SIGINT, SIG_IGN);
		say("ready\n");
		for_ever();
	}
	if (IS("memory"))
		eat_memory();
	if (IS("child-memory")) {
		if (fork() == 0)
			eat_memory();
		wait(NULL);
		return 0;
	}
	if (IS("fill-memfd"))
		return fill(memfd_create("fill", 0));
	if (IS("fill-file"))
		return fill(open(argument, O_WRONLY | O_CREAT, 0600));
	if (IS("page-cache")) {
		nftw("/usr", read_file, 16, FTW_PHYS);
		return 0;
	}
	if (IS("signal")) {
		kill(getpid(), atoi(argument));
		return 1;
	}
	if (IS("segfault"))
		return *(volatile int *)8;
	if (IS("exit"))
		return atoi(argument);
	if (IS("forks"))
		return fork_bomb();
	if (IS("wild-forks"))
		wild_fork_bomb();
	if (IS("daemon"))
		return daemon_holding_stdout();
	if (IS("flood"))
		return flood(atoi(argument));
	if (IS("bytes"))
		return print_bytes(atol(argument));
	if (IS("odd"))
		return odd_bytes();
	if (IS("read")) {
		char c;
		return read(0, &c, 1) == 0 ? 0 : 1;
	}
	if (IS("open"))
		return open_all(argc - 4, argv + 4);
	if (IS("descriptors"))
		return list_descriptors();
	if (IS("threads"))
		return thread_bomb();
	if (IS("zombies"))
		return zombie_factory();
	if (IS("inodes"))
		return fill_inodes(argument);
	if (IS("deaf")) {
		close(1), close(2);
		for_ever();
	}
	if (IS("probe"))
		return probe();
#ifdef __x86_64__
	if (IS("int80")) {
		long result;
		__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory"); /* getpid of the 32-bit table */
		return result > 0 ? 0 : 1;
	}
#endif
	if (IS("network"))
		return network(atoi(argument));
	return 99;
}
