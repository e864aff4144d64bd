#include "hostile.h"

/*
 * The programs are dangerous outside of a sandbox, so each run first makes sure that it is in one: the process must be
 * in another pid namespace than the host's, whose inode number the test driver passes, and must have been given the
 * driver's token twice, as an argument and in the environment.
 */
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

void say(const char *text) {
	size_t n = strlen(text);
	if (write(1, text, n) != (ssize_t)n)
		_exit(98);
}

void for_ever(void) {
	for (;;)
		pause();
}

void did(const char *name, long result) {
	if (result != -1)
		printf("%s\n", name);
}

void refused(const char *name, long result) {
	if (result != -1)
		printf("%s\n", name);
	else if (errno != EPERM && errno != EACCES && errno != ENOSYS)
		printf("%s: %s\n", name, strerror(errno));
}

static int spin(int count, char **arguments) {
	(void)count, (void)arguments;
	for (volatile unsigned n = 0;;)
		n++;
	return 0;
}

static int say_and_sleep(int count, char **arguments) {
	if (count > 0)
		say(arguments[0]);
	for_ever();
}

static int stubborn(int count, char **arguments) {
	(void)count, (void)arguments;
	for (int sig = 1; sig <= 64; sig++)
		signal(sig, SIG_IGN);
	say("ready\n");
	for_ever();
}

static int send_itself(int count, char **arguments) {
	kill(getpid(), count > 0 ? atoi(arguments[0]) : 0);
	return 1;
}

static int segfault(int count, char **arguments) {
	(void)count, (void)arguments;
	return *(volatile int *)8;
}

static int exit_with(int count, char **arguments) {
	return count > 0 ? atoi(arguments[0]) : 0;
}

static const struct {
	const char *name;
	command *run;
} commands[] = {
	{"spin", spin}, {"sleep", say_and_sleep}, {"stubborn", stubborn}, {"signal", send_itself}, {"segfault", segfault},
	{"exit", exit_with}, {"memory", memory_bomb}, {"child-memory", child_memory_bomb}, {"fill-memfd", fill_memfd},
	{"fill-file", fill_file}, {"inodes", fill_inodes}, {"page-cache", page_cache}, {"forks", fork_bomb},
	{"wild-forks", wild_fork_bomb}, {"threads", thread_bomb}, {"zombies", zombie_factory},
	{"daemon", daemon_holding_stdout}, {"exhaust", exhaust}, {"unpaid-work", unpaid_work}, {"flood", flood}, {"bytes", print_bytes}, {"odd", odd_bytes},
	{"read", read_nothing}, {"read-never", read_never}, {"deaf", deaf}, {"open", open_all},
	{"descriptors", list_descriptors}, {"peek-init", peek_init}, {"write-executables", write_executables},
	{"write-settings", write_settings}, {"read-kernel", read_kernel}, {"network", network}, {"families", families},
	{"leave-marks", leave_marks}, {"find-marks", find_marks}, {"namespaces", namespaces}, {"mounts", mounts},
	{"release-agent", release_agent}, {"leave-cgroup", leave_cgroup}, {"scatter", scatter}, {"trace", trace},
	{"massacre", massacre}, {"become-root", become_root}, {"report-user", report_user}, {"devices", devices},
	{"administer", administer}, {"facilities", facilities}, {"raise-limits", raise_limits}, {"meddle", meddle},
	{"foreign-calls", foreign_calls}, {"storm", storm}, {"leave-traps", leave_traps}, {"swap-links", swap_links},
	{"grow-file", grow_file},
};

int main(int count, char **arguments) {
	if (count < 4)
		return 99;
	guard(arguments[1], arguments[2]);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(arguments[3], commands[i].name) == 0)
			return commands[i].run(count - 4, arguments + 4);
	fprintf(stderr, "refusing to run: no such program\n");
	return 99;
}
