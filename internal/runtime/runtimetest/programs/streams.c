/* Programs that are rude with their standard streams. */
#include "hostile.h"

int flood(int count, char **arguments) {
	static char block[1 << 16];
	memset(block, 'y', sizeof block);
	for (;;)
		if (write(count > 0 ? atoi(arguments[0]) : 1, block, sizeof block) < 0)
			return errno;
}

int print_bytes(int count, char **arguments) {
	static char block[1 << 16];
	long n = count > 0 ? atol(arguments[0]) : 0;
	memset(block, 'z', sizeof block);
	while (n > 0) {
		ssize_t done = write(1, block, n < (long)sizeof block ? (size_t)n : sizeof block);
		if (done < 0)
			return errno;
		n -= done;
	}
	return 0;
}

int odd_bytes(int count, char **arguments) {
	static const char odd[] = "a\0b\xff\xfe\xc3\x28\x1b[31mred\x1b[0m\r\n\ttail";
	(void)count, (void)arguments;
	return write(1, odd, sizeof odd - 1) == sizeof odd - 1 ? 0 : 1;
}

int read_nothing(int count, char **arguments) {
	char c;
	(void)count, (void)arguments;
	return read(0, &c, 1) == 0 ? 0 : 1;
}

/* Holds its input open and never reads it. */
int read_never(int count, char **arguments) {
	(void)count, (void)arguments;
	say("ready\n");
	for_ever();
}

int deaf(int count, char **arguments) {
	(void)count, (void)arguments;
	close(1), close(2);
	for_ever();
}
