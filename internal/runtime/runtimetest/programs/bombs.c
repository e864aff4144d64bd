/* Programs that use up memory, processes, files and the kernel's own resources. */
#include "hostile.h"
#include <ftw.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

static void eat(void) {
	for (;;) {
		size_t size = 4 << 20;
		volatile char *p = malloc(size);
		if (!p)
			continue; /* an rlimit; keep what there is and keep trying */
		for (size_t i = 0; i < size; i += 4096)
			p[i] = (char)i;
	}
}

int memory_bomb(int count, char **arguments) {
	(void)count, (void)arguments;
	eat();
	return 0;
}

int child_memory_bomb(int count, char **arguments) {
	(void)count, (void)arguments;
	if (fork() == 0)
		eat();
	wait(NULL);
	return 0;
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

int fill_memfd(int count, char **arguments) {
	(void)count, (void)arguments;
	return fill(memfd_create("fill", 0));
}

int fill_file(int count, char **arguments) {
	return count < 1 ? 99 : fill(open(arguments[0], O_WRONLY | O_CREAT, 0600));
}

int fill_inodes(int count, char **arguments) {
	char path[256];
	if (count < 1)
		return 99;
	for (int i = 0;; i++) {
		snprintf(path, sizeof path, "%s/%d", arguments[0], i);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0)
			return errno;
		close(fd);
	}
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

int page_cache(int count, char **arguments) {
	(void)count, (void)arguments;
	nftw("/usr", read_file, 16, FTW_PHYS);
	return 0;
}

int fork_bomb(int count, char **arguments) {
	(void)count, (void)arguments;
	for (int n = 0; n < 100000; n++) {
		pid_t pid = fork();
		if (pid == 0)
			for_ever();
		if (pid < 0) {
			printf("%d %s\n", n, errno == EAGAIN ? "EAGAIN" : strerror(errno));
			return 0;
		}
	}
	return 1;
}

/* Every process forks as fast as it can until it is killed. */
int wild_fork_bomb(int count, char **arguments) {
	(void)count, (void)arguments;
	say("ready\n");
	for (;;)
		fork();
}

static void *idle_thread(void *unused) {
	for_ever();
	return unused;
}

int thread_bomb(int count, char **arguments) {
	pthread_attr_t small;
	(void)count, (void)arguments;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int n = 0; n < 100000; n++) {
		pthread_t id;
		int why = pthread_create(&id, &small, idle_thread, NULL);
		if (why) {
			printf("%d %s\n", n, why == EAGAIN ? "EAGAIN" : strerror(why));
			return 0;
		}
	}
	return 1;
}

/* Orphans a thousand children that end at once and that nobody here waits for. */
int zombie_factory(int count, char **arguments) {
	(void)count, (void)arguments;
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

int daemon_holding_stdout(int count, char **arguments) {
	(void)count, (void)arguments;
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

/* Creates one thing of the kernel's after the other until it refuses or kills; 0 means that it refused. */
int exhaust(int count, char **arguments) {
	static char block[1 << 16];
	const char *what = count > 0 ? arguments[0] : "";
	struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
	for (long n = 0; n < 4000000; n++) {
		long failed = 0;
		int pair[2];
		timer_t timer;
		if (strcmp(what, "descriptors") == 0)
			failed = eventfd(0, 0);
		else if (strcmp(what, "pipes") == 0) {
			if ((failed = pipe(pair)) == 0) {
				fcntl(pair[1], F_SETPIPE_SZ, 1 << 20);
				fcntl(pair[1], F_SETFL, O_NONBLOCK);
				while (write(pair[1], block, sizeof block) > 0)
					;
			}
		} else if (strcmp(what, "sockets") == 0) {
			if ((failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair)) == 0)
				while (write(pair[0], block, sizeof block) > 0)
					;
		} else if (strcmp(what, "messages") == 0) {
			struct {
				long type;
				char text[8000];
			} message = {1, ""};
			int queue = msgget(IPC_PRIVATE, 0600);
			if ((failed = queue) >= 0)
				while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0)
					;
		} else if (strcmp(what, "semaphores") == 0)
			failed = semget(IPC_PRIVATE, 30000, 0600);
		else if (strcmp(what, "shared-memory") == 0) {
			int id = shmget(IPC_PRIVATE, 4 << 20, 0600);
			if ((failed = id) >= 0) {
				void *p = shmat(id, NULL, 0);
				if (p == (void *)-1)
					return 0;
				memset(p, 1, 4 << 20);
				shmdt(p);
			}
		} else if (strcmp(what, "shared-pages") == 0 || strcmp(what, "zero-pages") == 0) {
			/* Memory of a mapping that is as good as gone: nobody's but the kernel's. */
			int fd = what[0] == 's' ? -1 : open("/dev/zero", O_RDWR);
			if (what[0] == 'z' && fd < 0)
				return 0;
			char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
			if (p == MAP_FAILED)
				return 0;
			memset(p, 1, 4 << 20);
			munmap(p + 4096, (4 << 20) - 4096);
			madvise(p, 4096, MADV_DONTNEED);
			if (fd >= 0)
				close(fd);
			failed = n > 256 ? 1 : 0; /* a gigabyte is enough to know */
			if (failed)
				return 1;
		} else if (strcmp(what, "page-tables") == 0) {
			size_t size = (size_t)1 << 30;
			volatile char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (p == MAP_FAILED)
				return 0;
			madvise((void *)p, size, MADV_NOHUGEPAGE);
			for (size_t i = 0; i < size; i += 2 << 20)
				(void)p[i];
			if (n > 400) /* 800 MiB of tables */
				return 1;
		} else if (strcmp(what, "watches") == 0) {
			int fd = inotify_init();
			failed = fd < 0 ? -1 : inotify_add_watch(fd, "/usr", IN_ALL_EVENTS);
		} else if (strcmp(what, "timers") == 0)
			failed = timer_create(CLOCK_MONOTONIC, &quiet, &timer);
		else if (strcmp(what, "mappings") == 0) {
			void *p = mmap(NULL, 4096, n % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			failed = p == MAP_FAILED ? -1 : 0;
		} else if (strcmp(what, "signals") == 0)
			failed = sigqueue(getpid(), (sigprocmask(SIG_BLOCK, &(sigset_t){{~0ul}}, NULL), SIGRTMIN), (union sigval){0});
		else
			return 99;
		if (failed < 0)
			return 0;
	}
	return 1;
}

/* Works in children that end soon and that nobody waits for: their time is added to nobody's. */
int unpaid_work(int count, char **arguments) {
	(void)count, (void)arguments;
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 250; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			clock_t end = clock() + CLOCKS_PER_SEC / 500;
			while (clock() < end)
				;
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return 0;
}
