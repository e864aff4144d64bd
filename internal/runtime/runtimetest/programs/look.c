/* Programs that look where they must not, and write to what is not theirs. */
#include "hostile.h"
#include <dirent.h>
#include <sys/klog.h>

/* Opens each path in the arguments; prints those that could be opened. */
int open_all(int count, char **arguments) {
	for (int i = 0; i < count; i++) {
		int fd = open(arguments[i], O_RDONLY | O_NONBLOCK);
		if (fd >= 0)
			printf("open %s\n", arguments[i]);
		else if (access(arguments[i], F_OK) == 0)
			printf("see %s\n", arguments[i]);
	}
	return 0;
}

int list_descriptors(int count, char **arguments) {
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	(void)count, (void)arguments;
	if (!d)
		return 1;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d))
			printf("%s\n", e->d_name);
	return 0;
}

static void try_paths(const char *verb, int flags, const char *const *paths, size_t n) {
	char name[256];
	for (size_t i = 0; i < n; i++) {
		int fd = open(paths[i], flags);
		snprintf(name, sizeof name, "%s %s", verb, paths[i]);
		did(name, fd);
		if (fd >= 0)
			close(fd);
	}
}
#define TRY_PATHS(verb, flags, paths) try_paths(verb, flags, paths, sizeof paths / sizeof *paths)

/* Process 1 runs as the same user and must still be a closed book. */
int peek_init(int count, char **arguments) {
	static const char *const readable[] = {
		"/proc/1/environ", "/proc/1/mem", "/proc/1/fd", "/proc/1/fdinfo", "/proc/1/root/etc", "/proc/1/cwd/", "/proc/1/exe",
		"/proc/1/maps", "/proc/1/smaps", "/proc/1/auxv", "/proc/1/stack", "/proc/1/syscall", "/proc/1/pagemap",
		"/proc/1/map_files", "/proc/1/ns/net", "/proc/1/ns/user", "/proc/1/personality", "/proc/1/io",
		"/proc/1/task/1/environ", "/proc/1/task/1/mem", "/proc/1/timers",
	};
	static const char *const writable[] = {
		"/proc/1/mem", "/proc/1/oom_score_adj", "/proc/1/clear_refs", "/proc/1/comm", "/proc/1/coredump_filter",
		"/proc/1/uid_map", "/proc/1/setgroups", "/proc/1/timerslack_ns", "/proc/1/attr/current", "/proc/self/uid_map",
	};
	static const char *const links[] = {"/proc/1/exe", "/proc/1/cwd", "/proc/1/root", "/proc/1/ns/mnt", "/proc/1/fd/3"};
	char text[256];
	(void)count, (void)arguments;
	if (getpid() == 1)
		return 0; /* process 1 is this program */
	for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
		int fd = open(readable[i], O_RDONLY);
		/* Some files say who may read them only when they are read. */
		if (fd >= 0 && (read(fd, text, 1) == 1 || errno == EISDIR))
			printf("read %s\n", readable[i]);
		if (fd >= 0)
			close(fd);
	}
	for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
		int fd = open(writable[i], O_WRONLY);
		if (fd >= 0 && write(fd, "0", 1) == 1)
			printf("write %s\n", writable[i]);
		if (fd >= 0)
			close(fd);
	}
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		snprintf(text, sizeof text, "follow %s", links[i]);
		did(text, readlink(links[i], (char[64]){0}, 64));
	}
	return 0;
}

/* Executable files that are shared with others, and the one that it runs from. */
int write_executables(int count, char **arguments) {
	static const char *const paths[] = {
		"/proc/self/exe", "/proc/thread-self/exe", "/usr/bin/env", "/usr/bin/python3", "/bin/sh", "/sbin/ldconfig",
		"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/etc/ld.so.cache", "/etc/passwd", "/etc/hosts", "/x",
		"/usr/x", "/etc/x", "/dev/x", "/proc/x",
	};
	(void)count, (void)arguments;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		char name[256];
		/* Without O_TRUNC: a success would be a defect of the sandbox, not a reason to break the host. */
		snprintf(name, sizeof name, "write %s", paths[i]);
		did(name, open(paths[i], O_WRONLY | (strlen(paths[i]) < 8 ? O_CREAT : 0), 0600));
		snprintf(name, sizeof name, "remove %s", paths[i]);
		if (access(paths[i], F_OK) == 0 && strncmp(paths[i], "/proc", 5) != 0)
			did(name, rename(paths[i], "/work/taken"));
	}
	return 0;
}

/* What in /proc and /sys configures the host. */
int write_settings(int count, char **arguments) {
	static const char *const paths[] = {
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/core_pipe_limit", "/proc/sys/kernel/modprobe",
		"/proc/sys/kernel/sysrq", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname",
		"/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/yama/ptrace_scope",
		"/proc/sys/kernel/unprivileged_bpf_disabled", "/proc/sys/kernel/usermodehelper/bset", "/proc/sys/vm/overcommit_memory",
		"/proc/sys/vm/panic_on_oom", "/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/suid_dumpable",
		"/proc/sys/fs/file-max", "/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/net/core/somaxconn", "/proc/irq/default_smp_affinity", "/proc/bus/pci/devices", "/proc/fs/nfsd/threads",
		"/proc/acpi/wakeup", "/proc/scsi/scsi", "/proc/mtrr", "/sys/kernel/uevent_helper", "/sys/power/state",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/release_agent", "/sys/module/kernel/parameters/panic",
		"/proc/1/oom_score_adj", "/proc/pressure/memory",
	};
	(void)count, (void)arguments;
	if (getpid() == 1) { /* process 1 is this program: its score is its own to raise */
		try_paths("write", O_WRONLY, paths, sizeof paths / sizeof *paths - 2);
	} else {
		TRY_PATHS("write", O_WRONLY, paths);
	}
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	did("escape the memory killer", fd >= 0 ? write(fd, "-1000", 5) : -1);
	return 0;
}

/* What the kernel knows. An empty or masked file is as good as none. */
int read_kernel(int count, char **arguments) {
	static const char *const paths[] = {
		"/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/key-users", "/proc/kallsyms", "/proc/modules", "/proc/slabinfo",
		"/proc/timer_list", "/proc/sched_debug", "/proc/vmallocinfo", "/proc/kpagecount", "/proc/kpageflags",
		"/proc/kpagecgroup", "/proc/latency_stats", "/proc/interrupts", "/proc/pagetypeinfo", "/dev/kmsg", "/dev/mem",
		"/dev/port", "/sys/kernel/debug/tracing/trace", "/sys/kernel/security/lsm", "/sys/firmware/acpi/tables/DSDT",
		"/sys/kernel/notes", "/sys/kernel/slab/dentry/alloc_calls", "/proc/vmcore", "/proc/lockdep", "/proc/self/stack",
	};
	char text[64];
	(void)count, (void)arguments;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		int fd = open(paths[i], O_RDONLY | O_NONBLOCK);
		if (fd >= 0 && read(fd, text, 1) == 1)
			printf("read %s\n", paths[i]);
		if (fd >= 0)
			close(fd);
	}
	/* Addresses in these are zero for those who may not know them. */
	FILE *iomem = fopen("/proc/iomem", "r");
	unsigned long from, to;
	while (iomem && fgets(text, sizeof text, iomem))
		if (sscanf(text, "%lx-%lx", &from, &to) == 2 && to != 0) {
			printf("read addresses in /proc/iomem\n");
			break;
		}
	unsigned long long entry = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (pagemap >= 0 && pread(pagemap, &entry, sizeof entry, (off_t)((unsigned long)text / 4096 * 8)) == sizeof entry &&
	    (entry & ((1ULL << 55) - 1)))
		printf("read page frames in /proc/self/pagemap\n");
	did("read the kernel log", klogctl(3, text, sizeof text));
	return 0;
}
