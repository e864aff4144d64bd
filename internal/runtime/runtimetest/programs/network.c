/* Programs that try to reach others: hosts, the kernel's exotic protocols, and other sandboxes. */
#include "hostile.h"
#include <arpa/inet.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

static int reach(int family, int type, const char *address, int port) {
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)port)};
	struct sockaddr *to = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t size = family == AF_INET ? sizeof four : sizeof six;
	if (family == AF_INET)
		inet_pton(family, address, &four.sin_addr);
	else
		inet_pton(family, address, &six.sin6_addr);
	int fd = socket(family, type | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return 0;
	/* A connection in progress is already a packet that left. */
	int reached = connect(fd, to, size) == 0 ? send(fd, "x", 1, 0) == 1 : errno == EINPROGRESS;
	close(fd);
	return reached;
}

/* The argument is the port of a listener on the host's loopback, TCP and UDP. */
int network(int count, char **arguments) {
	static const struct {
		int family;
		const char *address, *what;
	} targets[] = {
		{AF_INET, "127.0.0.1", "the host's loopback"}, {AF_INET6, "::1", "the host's loopback over IPv6"},
		{AF_INET, "169.254.169.254", "the metadata address"}, {AF_INET, "8.8.8.8", "the internet"},
		{AF_INET6, "2001:4860:4860::8888", "the internet over IPv6"}, {AF_INET, "10.0.0.1", "a private network"},
		{AF_INET, "172.17.0.1", "a container bridge"}, {AF_INET, "127.0.0.53", "the host's resolver"},
		{AF_INET, "255.255.255.255", "everybody"},
	};
	char name[128];
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		int loopback = strncmp(targets[i].address, "127.", 4) == 0 || strcmp(targets[i].address, "::1") == 0;
		int port = loopback && count > 0 ? atoi(arguments[0]) : 80;
		snprintf(name, sizeof name, "reach %s", targets[i].what);
		/* Its own loopback, where it is up, refuses a connection later; an answer at once is what counts there. */
		if (reach(targets[i].family, SOCK_STREAM, targets[i].address, port) && !loopback)
			printf("%s by TCP\n", name);
		if (reach(targets[i].family, SOCK_DGRAM, targets[i].address, loopback ? port : 53) && !loopback)
			printf("%s by UDP\n", name);
	}
	/* With patience, to the listener: only an accepted connection is one. */
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)(count > 0 ? atoi(arguments[0]) : 1))};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	did("connect to the host", fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof to));
	did("open /etc/resolv.conf of the host", count > 1 ? open(arguments[1], O_RDONLY) : -1);
	return 0;
}

/* Protocol families that are kernel surface and nothing that a program without a network needs. */
int families(int count, char **arguments) {
	static const struct {
		const char *name;
		int family, type, protocol;
	} all[] = {
		{"VSOCK", 40, SOCK_STREAM, 0}, {"NETLINK", AF_NETLINK, SOCK_RAW, 0}, {"NETLINK netfilter", AF_NETLINK, SOCK_RAW, 12},
		{"NETLINK crypto", AF_NETLINK, SOCK_RAW, 21}, {"PACKET", AF_PACKET, SOCK_RAW, 0}, {"PACKET datagram", AF_PACKET, SOCK_DGRAM, 0},
		{"ALG", 38, SOCK_SEQPACKET, 0}, {"KEY", AF_KEY, SOCK_RAW, 2}, {"RDS", 21, SOCK_SEQPACKET, 0},
		{"CAN", AF_CAN, SOCK_RAW, 1}, {"TIPC", 30, SOCK_RDM, 0}, {"BLUETOOTH", AF_BLUETOOTH, SOCK_RAW, 1},
		{"KCM", 41, SOCK_DGRAM, 0}, {"QIPCRTR", 42, SOCK_DGRAM, 0}, {"SMC", 43, SOCK_STREAM, 0}, {"XDP", 44, SOCK_RAW, 0},
		{"NFC", 39, SOCK_RAW, 1}, {"X25", AF_X25, SOCK_SEQPACKET, 0}, {"AX25", AF_AX25, SOCK_SEQPACKET, 0},
		{"SCTP", AF_INET, SOCK_STREAM, 132}, {"SCTP sequence", AF_INET, SOCK_SEQPACKET, 0}, {"DCCP", AF_INET, 6, 33},
		{"UDP-Lite", AF_INET, SOCK_DGRAM, 136}, {"MPTCP", AF_INET, SOCK_STREAM, 262}, {"L2TP", AF_INET, SOCK_DGRAM, 115},
		{"ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP}, {"raw INET", AF_INET, SOCK_RAW, IPPROTO_ICMP}, {"raw INET6", AF_INET6, SOCK_RAW, 58},
	};
	char name[64];
	(void)count, (void)arguments;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		snprintf(name, sizeof name, "open a %s socket", all[i].name);
		did(name, socket(all[i].family, all[i].type, all[i].protocol));
	}
	return 0;
}

static socklen_t abstract(struct sockaddr_un *at, const char *name) {
	memset(at, 0, sizeof *at);
	at->sun_family = AF_UNIX;
	snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "pawl-%s", name);
	return (socklen_t)(sizeof at->sun_family + 1 + strlen(at->sun_path + 1));
}

enum { KEY = 0x7061776c };

/* Leaves a mark wherever two processes of one host can meet, and stays. */
int leave_marks(int count, char **arguments) {
	struct sockaddr_un at;
	char path[128];
	if (count < 1)
		return 99;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t size = abstract(&at, arguments[0]);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, 1) != 0)
		return 1;
	shmget(KEY, 4096, IPC_CREAT | 0666);
	msgget(KEY, IPC_CREAT | 0666);
	semget(KEY, 1, IPC_CREAT | 0666);
	snprintf(path, sizeof path, "/%s", arguments[0]);
	mq_open(path, O_CREAT | O_RDWR, 0666, NULL);
	static const char *const dirs[] = {"/tmp", "/dev/shm", "/work", "/var/tmp", "/dev/mqueue"};
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		snprintf(path, sizeof path, "%s/%s", dirs[i], arguments[0]);
		open(path, O_CREAT | O_RDWR, 0666);
	}
	say("marked\n");
	for_ever();
}

/* Looks for the marks of another program. */
int find_marks(int count, char **arguments) {
	struct sockaddr_un at;
	char path[128], name[160];
	if (count < 1)
		return 99;
	for (int i = 0; i < count; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		socklen_t size = abstract(&at, arguments[i]);
		snprintf(name, sizeof name, "connect to the abstract socket of %s", i == 0 ? "another sandbox" : "the host");
		did(name, connect(fd, (struct sockaddr *)&at, size));
	}
	did("find SysV shared memory", shmget(KEY, 0, 0));
	did("find a SysV message queue", msgget(KEY, 0));
	did("find a SysV semaphore", semget(KEY, 0, 0));
	snprintf(path, sizeof path, "/%s", arguments[0]);
	did("find a POSIX message queue", mq_open(path, O_RDWR));
	static const char *const dirs[] = {"/tmp", "/dev/shm", "/work", "/var/tmp", "/dev/mqueue"};
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		snprintf(path, sizeof path, "%s/%s", dirs[i], arguments[0]);
		snprintf(name, sizeof name, "find a file in %s", dirs[i]);
		did(name, access(path, F_OK));
	}
	/* Nothing of the kind is there under any other key either. */
	FILE *f;
	static const char *const lists[] = {"/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem", "/proc/net/unix"};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		int lines = 0;
		char text[512];
		if (!(f = fopen(lists[i], "r")))
			continue;
		while (fgets(text, sizeof text, f))
			lines++;
		fclose(f);
		/* One line is the heading; its own sockets are not bound and have no name. */
		if (lines > (i == 3 ? 1 + count : 1))
			printf("list %s\n", lists[i]);
	}
	return 0;
}
