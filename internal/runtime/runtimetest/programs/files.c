/* Programs that set traps in what they leave behind. */
#include "hostile.h"
#include <sys/socket.h>
#include <sys/un.h>

static void put(const char *path, const char *text) {
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(97);
	close(fd);
}

/* Fills ./out with everything that is not a plain file, and with plain files that are odd. The argument is a host file. */
int leave_traps(int count, char **arguments) {
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "out/socket"};
	if (count < 1 || mkdir("out", 0755) != 0)
		return 99;
	put("out/good", "good\n");
	symlink(arguments[0], "out/link");
	symlink("/", "out/root");
	symlink("/proc/self/root", "out/magic");
	symlink("/proc/1/root/etc/shadow", "out/init");
	symlink("good", "out/inside");
	symlink("loop", "out/loop");
	symlink("..", "out/up");
	mkfifo("out/fifo", 0666);
	bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof at);
	mknod("out/device", S_IFCHR | 0666, (1 << 8) | 5);
	put("out/twice", "twice\n");
	link("out/twice", "out/twin");
	link("/etc/passwd", "out/passwd");
	link("/proc/self/exe", "out/exe");
	int fd = open("out/sparse", O_WRONLY | O_CREAT, 0644);
	if (ftruncate(fd, 1LL << 40) != 0)
		_exit(96);
	put("out/set-user-id", "s\n");
	chmod("out/set-user-id", 06755);
	put("out/new\nline", "n\n");
	put("out/\x1b[31mred\xff", "e\n");
	put("out/...", "d\n");
	put("out/-rf", "r\n");
	char longest[300] = "out/";
	memset(longest + 4, 'l', 255);
	put(longest, "l\n");
	put("out/locked", "x\n");
	chmod("out/locked", 0);
	mkdir("out/closed", 0755);
	put("out/closed/file", "x\n");
	chmod("out/closed", 0);
	/* A path that is longer than the kernel takes in one piece. */
	int home = open(".", O_RDONLY | O_DIRECTORY);
	longest[4 + 255] = 0;
	if (mkdir("out/long", 0755) != 0 || chdir("out/long") != 0)
		_exit(94);
	for (int i = 0; i < 20; i++)
		if (mkdir(longest + 4, 0755) != 0 || chdir(longest + 4) != 0)
			_exit(93);
	put("bottom", "b\n");
	if (fchdir(home) != 0)
		_exit(92);
	/* A thousand directories, one in the other. */
	if (mkdir("out/deep", 0755) != 0 || chdir("out/deep") != 0)
		_exit(95);
	for (int i = 0; i < 1000; i++)
		if (mkdir("d", 0755) != 0 || chdir("d") != 0)
			break;
	put("bottom", "b\n");
	return 0;
}

/* Exits at once and leaves somebody who goes on swapping files and directories for links to what lies elsewhere. */
int swap_links(int count, char **arguments) {
	if (count < 1 || mkdir("out", 0755) != 0 || mkdir("out/dir", 0755) != 0)
		return 99;
	put("out/file", "good\n");
	put("out/dir/file", "good\n");
	put("good-file", "good\n");
	mkdir("good-dir", 0755);
	put("good-dir/file", "good\n");
	symlink(arguments[0], "bad-file");
	symlink("/etc", "bad-dir");
	symlink("/", "bad-out");
	int up[2];
	if (pipe(up) != 0)
		return 98;
	if (fork() == 0) {
		setsid();
		for (unsigned n = 0;; n++) {
			syscall(SYS_renameat2, AT_FDCWD, "out/file", AT_FDCWD, "bad-file", 2); /* exchange */
			syscall(SYS_renameat2, AT_FDCWD, "out/dir", AT_FDCWD, "bad-dir", 2);
			if (n % 16 == 0)
				syscall(SYS_renameat2, AT_FDCWD, "out", AT_FDCWD, "bad-out", 2);
			rename("/work", "/work2");
			if (n == 3 && write(up[1], "x", 1) != 1)
				_exit(1);
		}
	}
	char c;
	return read(up[0], &c, 1) == 1 ? 0 : 97;
}

/* Exits and leaves somebody who goes on writing to what is collected. */
int grow_file(int count, char **arguments) {
	(void)count, (void)arguments;
	static char block[1 << 16];
	memset(block, 'g', sizeof block);
	mkdir("out", 0755);
	int fd = open("out/growing", O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (write(fd, block, sizeof block) != sizeof block)
		return 98;
	if (fork() == 0)
		for (;;)
			if (write(fd, block, sizeof block) < 0)
				ftruncate(fd, 1);
	return 0;
}
