/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/plain_lock.c - the plain backend: one writing process per store (P11).
 *
 * The lock is flock on a descriptor of the root directory itself, opened for this purpose:
 *
 * - A lock file can be unlinked, and the next process then locks a new one beside the old. The
 *   directory of a store can't be, as long as there is a store in it.
 * - fcntl locks belong to the process and fall when it closes any descriptor of the file, also one
 * that some other library opened. flock belongs to the open file: only closing that one, or
 * LOCK_UN, ends it.
 * - A second open in the same process is another open file, so it is refused like a stranger's.
 * - A forked child inherits the open file, not a lock of its own. Its exit or exec (close-on-exec)
 *   takes nothing from the parent, and lac__plain_unlock in a child only closes the child's copy.
 *   When the parent dies first, the lock stays until the last such child is gone too: it holds the
 *   store's other descriptors as well and could still write.
 *
 * The file `lock` holds the pid for people and for the message that says who has the store. Nothing
 * is decided by it: it may be missing, old, or on a full disk never written.
 */
#include "io/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char pid_file[] = "lock";

struct plain_lock {
	int fd;
	pid_t owner;
};

static void write_pid(struct lac_backend *be)
{
	char text[32];

	if (lac__plain_size_limit() < sizeof(text))
		return;
	int fd = lac__plain_openat(be, pid_file, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK);
	if (fd < 0)
		return;
	int length = snprintf(text, sizeof(text), "%lld\n", (long long)getpid());
	/* Half a number would be another process: better none. */
	if (write(fd, text, (size_t)length) != length && ftruncate(fd, 0) != 0)
		unlinkat(lac__plain_of(be)->root_fd, pid_file, 0);
	close(fd);
}

/* The pid in the file if that process lives, else 0. */
static int64_t read_pid(struct lac_backend *be)
{
	char text[32];
	char *end;
	int fd = lac__plain_openat(be, pid_file, O_RDONLY | O_NONBLOCK);

	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	errno = 0;
	long long pid = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\n' || pid <= 0 || (pid_t)pid != pid)
		return 0;
	/* EPERM: somebody else's process, but a process. */
	return kill((pid_t)pid, 0) == 0 || errno == EPERM ? pid : 0;
}

static int take(int fd)
{
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno == EWOULDBLOCK)
			return -EBUSY;
		if (errno == EBADF)
			return -ENOLCK; /* NFS wants a descriptor for writing, no directory has one
					 */
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int lac__plain_lock(struct lac_backend *be, void **ret_lock, int64_t *ret_holder_pid)
{
	struct plain_lock *lock = malloc(sizeof(*lock));
	int fd = -1, rc = -ENOMEM;

	if (!lock)
		goto out;
	rc = fd = lac__plain_openat(be, "", O_RDONLY | O_DIRECTORY);
	if (rc < 0)
		goto out;
	rc = take(fd);
	if (rc == -EBUSY && ret_holder_pid)
		*ret_holder_pid = read_pid(be);
	if (rc < 0)
		goto out;
	write_pid(be);
	lock->fd = fd;
	lock->owner = getpid();
	*ret_lock = lock;
	lock = NULL;
	fd = -1;
out:
	if (fd >= 0)
		close(fd);
	free(lock);
	return rc;
}

void lac__plain_unlock(struct lac_backend *be, void *opaque)
{
	struct plain_lock *lock = opaque;

	if (!lock)
		return;
	if (lock->owner == getpid()) {
		unlinkat(lac__plain_of(be)->root_fd, pid_file, 0);
		/* Not by close alone: children that have not called exec share the open file. */
		flock(lock->fd, LOCK_UN);
	}
	close(lock->fd);
	free(lock);
}
