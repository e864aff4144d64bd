/*
 * The hostile programs of the conformance suite, one per command, in one static binary:
 *
 *   hostile TOKEN HOST_PID_NAMESPACE COMMAND [ARGUMENT]
 *
 * A probe tries what must be impossible and prints a line for each thing that it was able to do; printing nothing is
 * the good outcome.
 */
#ifndef HOSTILE_H
#define HOSTILE_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every call since Linux 5.1 has one number on all architectures. */
enum {
	CALL_PIDFD_SEND_SIGNAL = 424, CALL_IO_URING_SETUP = 425, CALL_IO_URING_ENTER = 426, CALL_IO_URING_REGISTER = 427,
	CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, CALL_FSOPEN = 430, CALL_FSCONFIG = 431, CALL_FSMOUNT = 432,
	CALL_FSPICK = 433, CALL_PIDFD_OPEN = 434, CALL_CLONE3 = 435, CALL_PIDFD_GETFD = 438, CALL_PROCESS_MADVISE = 440,
	CALL_MOUNT_SETATTR = 442, CALL_QUOTACTL_FD = 443, CALL_OPEN_TREE_ATTR = 467,
};

void say(const char *text);
void for_ever(void) __attribute__((noreturn));

/* did prints what a probe was able to do when result is that of a successful call. */
void did(const char *name, long result);
/* refused prints it unless the kernel refused: an error about an argument means that the call was let through. */
void refused(const char *name, long result);

typedef int command(int count, char **arguments);

/* bombs.c */
command memory_bomb, child_memory_bomb, fill_memfd, fill_file, fill_inodes, page_cache, fork_bomb, wild_fork_bomb,
	thread_bomb, zombie_factory, daemon_holding_stdout, exhaust, unpaid_work;
/* streams.c */
command flood, print_bytes, odd_bytes, read_nothing, read_never, deaf;
/* look.c */
command open_all, list_descriptors, peek_init, write_executables, write_settings, read_kernel;
/* network.c */
command network, families, leave_marks, find_marks;
/* namespaces.c */
command namespaces, mounts, release_agent, leave_cgroup, scatter;
/* privileges.c */
command trace, massacre, become_root, report_user, devices, administer, facilities, raise_limits, meddle;
/* machine.c */
command foreign_calls, storm;
/* files.c */
command leave_traps, swap_links, grow_file;
#endif
