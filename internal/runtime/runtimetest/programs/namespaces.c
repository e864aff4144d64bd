/* Programs that try to leave: by new namespaces, by mounts, by cgroups. */
#include "hostile.h"
#include <sched.h>
#include <sys/mount.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static const struct {
	const char *name, *file;
	long flag;
} spaces[] = {
	{"user", "user", CLONE_NEWUSER}, {"mount", "mnt", CLONE_NEWNS}, {"pid", "pid", CLONE_NEWPID}, {"net", "net", CLONE_NEWNET},
	{"ipc", "ipc", CLONE_NEWIPC}, {"uts", "uts", CLONE_NEWUTS}, {"cgroup", "cgroup", CLONE_NEWCGROUP}, {"time", "time", CLONE_NEWTIME},
};

static void reap_clone(const char *name, long pid) {
	if (pid == 0)
		_exit(0);
	refused(name, pid);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
}

int namespaces(int count, char **arguments) {
	char name[64], path[64];
	(void)count, (void)arguments;
	int init = (int)syscall(CALL_PIDFD_OPEN, 1, 0), self = (int)syscall(CALL_PIDFD_OPEN, getpid(), 0);
	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
		snprintf(name, sizeof name, "unshare %s", spaces[i].name);
		refused(name, unshare((int)spaces[i].flag));
		snprintf(name, sizeof name, "unshare user and %s", spaces[i].name);
		refused(name, unshare((int)(spaces[i].flag | CLONE_NEWUSER)));
		if (spaces[i].flag != CLONE_NEWTIME) { /* in clone that bit is part of the signal */
			snprintf(name, sizeof name, "clone %s", spaces[i].name);
			reap_clone(name, syscall(SYS_clone, spaces[i].flag | SIGCHLD, 0, 0, 0, 0));
			snprintf(name, sizeof name, "clone user and %s", spaces[i].name);
			reap_clone(name, syscall(SYS_clone, spaces[i].flag | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
		}
		struct {
			unsigned long long flags, rest[10];
		} arguments3 = {(unsigned long long)spaces[i].flag, {0, 0, 0, SIGCHLD}};
		snprintf(name, sizeof name, "clone3 %s", spaces[i].name);
		reap_clone(name, syscall(CALL_CLONE3, &arguments3, sizeof arguments3));
		snprintf(path, sizeof path, "/proc/self/ns/%s", spaces[i].file);
		snprintf(name, sizeof name, "setns %s", spaces[i].name);
		refused(name, setns(open(path, O_RDONLY), 0));
		snprintf(name, sizeof name, "setns %s of process 1", spaces[i].name);
		refused(name, setns(init, (int)spaces[i].flag));
		snprintf(name, sizeof name, "setns %s of itself", spaces[i].name);
		refused(name, setns(self, (int)spaces[i].flag));
	}
	/* Where clone3 is let through, a process can be born in a cgroup of its choice. */
	struct {
		unsigned long long flags, rest[10];
	} plain = {0, {0, 0, 0, SIGCHLD}};
	reap_clone("clone3", syscall(CALL_CLONE3, &plain, sizeof plain));
	return 0;
}

int mounts(int count, char **arguments) {
	(void)count, (void)arguments;
	mkdir("/tmp/m", 0700);
	refused("mount a tmpfs", mount("tmpfs", "/tmp/m", "tmpfs", 0, NULL));
	refused("mount proc", mount("proc", "/tmp/m", "proc", 0, NULL));
	refused("mount sysfs", mount("sysfs", "/tmp/m", "sysfs", 0, NULL));
	refused("mount cgroup", mount("cgroup", "/tmp/m", "cgroup", 0, "memory"));
	refused("mount cgroup2", mount("cgroup2", "/tmp/m", "cgroup2", 0, NULL));
	refused("mount an overlay", mount("overlay", "/tmp/m", "overlay", 0, "lowerdir=/usr,upperdir=/tmp,workdir=/tmp/m"));
	refused("mount by fuse", mount("x", "/tmp/m", "fuse", 0, "fd=0,rootmode=40000,user_id=0,group_id=0"));
	refused("bind", mount("/", "/tmp/m", NULL, MS_BIND | MS_REC, NULL));
	refused("bind /dev/null over a file", mount("/dev/null", "/etc/passwd", NULL, MS_BIND, NULL));
	refused("remount /usr", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
	refused("remount /", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
	refused("change propagation", mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL));
	refused("move a mount", mount("/proc", "/tmp/m", NULL, MS_MOVE, NULL));
	refused("unmount /proc/sys", umount2("/proc/sys", MNT_DETACH));
	refused("unmount /proc/kcore", umount2("/proc/kcore", MNT_DETACH));
	refused("unmount /work", umount2("/work", MNT_DETACH));
	refused("unmount /", umount2("/", MNT_DETACH));
	refused("fsopen", syscall(CALL_FSOPEN, "tmpfs", 0));
	refused("fspick", syscall(CALL_FSPICK, AT_FDCWD, "/", 0));
	refused("fsconfig", syscall(CALL_FSCONFIG, 0, 0, NULL, NULL, 0));
	refused("fsmount", syscall(CALL_FSMOUNT, 0, 0, 0));
	refused("open_tree", syscall(CALL_OPEN_TREE, AT_FDCWD, "/", 1));
	refused("open_tree without a copy", syscall(CALL_OPEN_TREE, AT_FDCWD, "/", 0));
	refused("open_tree_attr", syscall(CALL_OPEN_TREE_ATTR, AT_FDCWD, "/", 1, NULL, 0));
	refused("move_mount", syscall(CALL_MOVE_MOUNT, AT_FDCWD, "/proc", AT_FDCWD, "/tmp/m", 0));
	unsigned long long attributes[4] = {0, 1, 0, 0}; /* clear read-only */
	refused("mount_setattr", syscall(CALL_MOUNT_SETATTR, AT_FDCWD, "/usr", 0, attributes, sizeof attributes));
	refused("pivot_root", syscall(SYS_pivot_root, ".", "."));
	refused("chroot", chroot("/"));
	refused("chroot to /tmp", chroot("/tmp"));
	refused("swapon", syscall(SYS_swapon, "/tmp/m", 0));
	return 0;
}

/* Writes nothing, even where it could: opening for writing is enough to know. */
int release_agent(int count, char **arguments) {
	static const char *const paths[] = {
		"/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/pids/release_agent",
		"/sys/fs/cgroup/memory/notify_on_release", "/sys/fs/cgroup/devices/release_agent", "/sys/fs/cgroup/rdma/release_agent",
		"/sys/fs/cgroup/cgroup.subtree_control", "/sys/fs/cgroup/unified/cgroup.subtree_control",
		"/proc/1/root/sys/fs/cgroup/memory/release_agent",
	};
	char name[128], line[1024];
	(void)count, (void)arguments;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		snprintf(name, sizeof name, "write %s", paths[i]);
		did(name, open(paths[i], O_WRONLY));
	}
	static const char *const controllers[] = {"memory", "pids", "rdma", "misc", "net_cls", "none,name=x"};
	mkdir("/tmp/c", 0700);
	for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
		snprintf(name, sizeof name, "mount cgroup hierarchy %s", controllers[i]);
		refused(name, mount("cgroup", "/tmp/c", "cgroup", 0, controllers[i]));
	}
	FILE *f = fopen("/proc/self/mountinfo", "r");
	while (f && fgets(line, sizeof line, f)) {
		char where[256], options[256];
		if (strstr(line, " - cgroup") && sscanf(line, "%*s %*s %*s %*s %255s %255s", where, options) == 2 &&
		    strncmp(options, "rw", 2) == 0)
			printf("write to the cgroup file system at %s\n", where);
	}
	return 0;
}

int leave_cgroup(int count, char **arguments) {
	static const char *const roots[] = {
		"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/systemd",
		"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/freezer", "/proc/1/root/sys/fs/cgroup", "/proc/self/root/sys/fs/cgroup",
	};
	static const char *const files[] = {"cgroup.procs", "tasks", "cgroup.threads", "cgroup.freeze", "cgroup.kill", "memory.max",
	                                    "memory.limit_in_bytes", "pids.max"};
	char path[256], name[300];
	(void)count, (void)arguments;
	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
			snprintf(path, sizeof path, "%s/%s", roots[i], files[k]);
			snprintf(name, sizeof name, "write %s", path);
			did(name, open(path, O_WRONLY));
		}
		snprintf(path, sizeof path, "%s/made", roots[i]);
		snprintf(name, sizeof name, "make a cgroup in %s", roots[i]);
		did(name, mkdir(path, 0700));
	}
	FILE *f = fopen("/proc/self/cgroup", "r");
	char line[512];
	while (f && fgets(line, sizeof line, f)) {
		char *at = strrchr(line, ':');
		if (at && strcmp(at, ":/\n") != 0)
			printf("see its cgroup's path\n");
	}
	return 0;
}

/* Makes a family with sessions and process groups of its own and stays, to be looked at from the host. */
int scatter(int count, char **arguments) {
	(void)count, (void)arguments;
	for (int i = 0; i < 6; i++)
		if (fork() == 0) {
			if (i % 2)
				setsid();
			else
				setpgid(0, 0);
			if (fork() == 0)
				for_ever();
			if (i < 3)
				_exit(0);
			for_ever();
		}
	say("scattered\n");
	for_ever();
}
