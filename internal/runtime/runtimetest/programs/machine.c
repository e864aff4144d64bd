/* Programs that speak to the kernel in ways that no C library does. */
#include "hostile.h"
#include <time.h>

#ifdef __x86_64__
static int int80(void) {
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory"); /* getpid of the 32-bit table */
	return result > 0;
}


static int x32(void) {
	return syscall(0x40000000L | SYS_getpid) > 0;
}

static int x32_only(void) {
	return syscall(0x40000000L | 512, 0, NULL, NULL, 8) != -1 || errno != ENOSYS; /* rt_sigaction of x32 */
}

static int negative(void) {
	return syscall(-1L) != -1 || errno != ENOSYS;
}

static int high_bits(void) {
	/* Only the low half of the register is the number, for the kernel and for whoever judges it. */
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(0x100000000L | SYS_chroot), "D"("/") : "rcx", "r11", "memory");
	return result >= 0;
}
#endif

/* Prints the calls that came through; each is made by a child of its own, because it may be killed for it. */
int foreign_calls(int count, char **arguments) {
	(void)count, (void)arguments;
#ifdef __x86_64__
	static const struct {
		const char *name;
		int (*call)(void);
	} calls[] = {{"int 0x80", int80}, {"x32 getpid", x32}, {"x32 sigaction", x32_only},
	             {"call -1", negative}, {"chroot with high bits", high_bits}};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		int status = 0;
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0)
			_exit(calls[i].call());
		waitpid(pid, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
			printf("make %s\n", calls[i].name);
		if (WIFSIGNALED(status) && WTERMSIG(status) != SIGSYS)
			printf("die of signal %d by %s\n", WTERMSIG(status), calls[i].name);
	}
#endif
	return 0;
}

static unsigned long long state = 88172645463325252ULL;

static unsigned long random_word(void) {
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	switch (state % 8) {
	case 0:
		return 0;
	case 1:
		return ~0UL;
	case 2:
		return state % 64;
	case 3:
		return 1;
	default:
		return (unsigned long)(state >> 8);
	}
}

/* Makes every call that there is with arguments at random, from children that may die of it or wait for ever in it. */
int storm(int count, char **arguments) {
	static char room[1 << 16];
	int rounds = count > 0 ? atoi(arguments[0]) : 1;
	const struct timespec patience = {0, 10 * 1000 * 1000};
	sigset_t ended;
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	state ^= (unsigned long long)(count > 1 ? atoll(arguments[1]) : 0) << 20 | 1;
	for (int round = 0; round < rounds; round++)
		for (long base = 0; base < 480; base += 4) {
			unsigned long long seed = state + (unsigned long long)base * 7919 + (unsigned long long)round;
			pid_t pid = fork();
			if (pid == 0) {
				state = seed | 1;
				for (long n = base; n < base + 4; n++) {
					if (n == SYS_exit || n == SYS_exit_group)
						continue;
					unsigned long a[6];
					for (int i = 0; i < 6; i++)
						a[i] = random_word() % 3 == 0 ? (unsigned long)room : random_word();
					syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
				}
				_exit(0);
			}
			if (pid > 0) {
				while (waitpid(pid, NULL, WNOHANG) == 0)
					if (sigtimedwait(&ended, NULL, &patience) < 0 && errno == EAGAIN) {
						kill(pid, SIGKILL);
						waitpid(pid, NULL, 0);
						break;
					}
			}
			state = seed * 2862933555777941757ULL + 3037000493ULL;
		}
	say("survived\n");
	return 0;
}
