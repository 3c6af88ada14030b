/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/plain_test.c - the plain backend in a real directory. Needs no privilege and no particular
 * filesystem: what one may not be able to do is passed over.
 */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"

static char root[4096];
static struct lac_backend *be;

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/lacuna-plain-XXXXXX", tmp ? tmp : ".");
	if (!mkdtemp(root))
		return -1;
	return lac__backend_plain_new(root, &be, NULL);
}

static int remove_entry(void *arg, const char *name)
{
	/* One of the two is right. */
	be->ops->unlink(be, name);
	be->ops->remove_dir(be, name);
	return 0;
}

static int teardown(void **state)
{
	be->ops->list(be, "", remove_entry, NULL);
	lac__backend_plain_free(be);
	return rmdir(root);
}

static struct lac_file *must_open(const char *path, unsigned flags)
{
	struct lac_file *file = NULL;

	assert_int_equal(lac__open(be, path, flags, &file), 0);
	assert_ptr_equal(file->backend, be);
	return file;
}

static struct lac_file *must_create(const char *path)
{
	return must_open(path, LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_EXCLUSIVE);
}

static struct lac_file_info info_of(struct lac_file *file)
{
	struct lac_file_info info;

	assert_int_equal(be->ops->file_info(file, &info), 0);
	return info;
}

/* Below the root, around the backend. */
static const char *outside(const char *path)
{
	static char buffer[8192];

	snprintf(buffer, sizeof(buffer), "%s/%s", root, path);
	return buffer;
}

static void a_missing_root_is_named(void **state)
{
	struct lac_backend *other = NULL;
	struct lac_error err;

	assert_int_equal(lac__backend_plain_new("no/such/place", &other, &err), -ENOENT);
	assert_null(other);
	assert_int_equal(err.code, -ENOENT);
	assert_non_null(strstr(err.message, "no/such/place"));
	close(open(outside("file"), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(lac__backend_plain_new(outside("file"), &other, NULL), -ENOTDIR);
	lac__backend_plain_free(NULL);
}

static void bytes_come_back(void **state)
{
	char text[16] = "";
	struct lac_file *file = must_create("a");

	assert_int_equal(lac__write_full(file, "hello", 5, 10), 0);
	assert_int_equal(lac__sync(file), 0);
	assert_int_equal(be->ops->drop_cache(file), 0);
	assert_int_equal(lac__read_up_to(file, text, sizeof(text), 8), 7);
	assert_memory_equal(text, "\0\0hello", 7);
	assert_int_equal(info_of(file).size_bytes, 15);
	assert_true(S_ISREG(info_of(file).mode));
	assert_int_equal(lac__truncate(file, 12), 0);
	assert_int_equal(lac__read_full(file, text, 3, 10), -ENODATA);
	assert_int_equal(lac__close(file), 0);

	file = must_open("a", 0);
	assert_int_equal(lac__write_full(file, "x", 1, 0), -EBADF);
	assert_int_equal(lac__close(file), 0);
}

static void creation_is_exclusive_when_asked(void **state)
{
	struct lac_file *file = NULL;

	assert_int_equal(lac__open(be, "a", LAC_OPEN_WRITE, &file), -ENOENT);
	lac__close(must_create("a"));
	assert_int_equal(
		lac__open(be, "a", LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_EXCLUSIVE, &file),
		-EEXIST);
	assert_null(file);
	lac__close(must_open("a", LAC_OPEN_WRITE | LAC_OPEN_CREATE));
	lac__close(must_open("b", LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_NOCOW));
}

static void only_regular_files_are_opened(void **state)
{
	struct lac_file *file = NULL;

	lac__close(must_create("a"));
	assert_int_equal(symlink("a", outside("link")), 0);
	assert_int_equal(lac__open(be, "link", 0, &file), -ELOOP);
	assert_int_equal(lac__open(be, "link", LAC_OPEN_WRITE | LAC_OPEN_CREATE, &file), -ELOOP);
	assert_int_equal(be->ops->make_dir(be, "dir"), 0);
	assert_int_equal(lac__open(be, "dir", 0, &file), -EISDIR);
	assert_int_equal(lac__open(be, "", 0, &file), -EISDIR);
	/* Neither blocks. */
	assert_int_equal(mkfifo(outside("fifo"), 0600), 0);
	assert_int_equal(lac__open(be, "fifo", 0, &file), -EINVAL);
	assert_int_equal(lac__open(be, "fifo", LAC_OPEN_WRITE, &file), -EINVAL);
	assert_null(file);
}

static void no_path_leaves_the_root(void **state)
{
	static const char *const bad[] = {"..", "../x", "a/..", "a/../b", "/etc/passwd", "/"};
	struct lac_file_info info;
	struct lac_file *file;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(lac__open(be, bad[i], 0, &file), -EINVAL);
		assert_int_equal(be->ops->path_info(be, bad[i], &info), -EINVAL);
		assert_int_equal(be->ops->unlink(be, bad[i]), -EINVAL);
		assert_int_equal(be->ops->rename(be, "a", bad[i]), -EINVAL);
		assert_int_equal(be->ops->rename(be, bad[i], "a"), -EINVAL);
		assert_int_equal(be->ops->make_dir(be, bad[i]), -EINVAL);
		assert_int_equal(be->ops->remove_dir(be, bad[i]), -EINVAL);
	}
	lac__close(must_create("..x"));
	lac__close(must_create("x.."));
	assert_int_equal(be->ops->path_info(be, "", &info), 0);
	assert_true(S_ISDIR(info.mode));
}

static void descriptors_stay_out_of_the_way(void **state)
{
	int saved = dup(STDIN_FILENO);

	close(STDIN_FILENO);
	struct lac_file *file = must_create("a");
	int taken = fcntl(STDIN_FILENO, F_GETFD);
	void *lock;
	assert_int_equal(be->ops->lock(be, &lock, NULL), 0);
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
	struct lac_file *usual = must_create("b");
	bool inherited = false;
	for (int fd = STDERR_FILENO + 1; fd < 100; fd++) {
		char link[64], target[4096];
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strstr(target, "lacuna-plain-") && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			inherited = true;
	}
	be->ops->unlock(be, lock);
	lac__close(usual);
	lac__close(file);
	assert_int_equal(taken, -1);
	assert_false(inherited);
}

static void space_is_allocated_and_given_back(void **state)
{
	char bytes[1 << 16], zeros[1 << 16] = {0};
	struct lac_file *file = must_create("a");
	int rc = lac__allocate(file, 0, 4u << 20);

	if (rc == -EOPNOTSUPP) {
		lac__close(file);
		skip();
	}
	assert_int_equal(rc, 0);
	assert_int_equal(info_of(file).size_bytes, 4u << 20);
	memset(bytes, 7, sizeof(bytes));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(lac__write_full(file, bytes, sizeof(bytes), i << 16), 0);
	assert_int_equal(lac__sync(file), 0);
	uint64_t before = info_of(file).allocated_bytes;
	assert_true(before >= 4u << 20);

	rc = lac__punch(file, 1u << 20, 2u << 20);
	if (rc != -EOPNOTSUPP) {
		assert_int_equal(rc, 0);
		assert_int_equal(lac__sync(file), 0);
		assert_int_equal(info_of(file).size_bytes, 4u << 20);
		assert_true(info_of(file).allocated_bytes <= before - (1u << 20));
		assert_int_equal(lac__read_full(file, bytes, sizeof(bytes), 2u << 20), 0);
		assert_memory_equal(bytes, zeros, sizeof(bytes));
	}
	/* Bytes that are there stay. */
	assert_int_equal(lac__allocate(file, 0, 5u << 20), 0);
	assert_int_equal(lac__read_full(file, bytes, 1, 0), 0);
	assert_int_equal(bytes[0], 7);
	assert_int_equal(info_of(file).size_bytes, 5u << 20);
	lac__close(file);
}

static void direct_files_read_up_to_an_odd_end(void **state)
{
	struct lac_file *file = must_create("a");
	char *buffer = lac__aligned_alloc(16384);

	assert_non_null(buffer);
	memset(buffer, 3, 16384);
	assert_int_equal(lac__write_full(file, buffer, 5000, 0), 0);
	assert_int_equal(lac__close(file), 0);
	file = must_open("a", LAC_OPEN_WRITE | LAC_OPEN_DIRECT);
	assert_int_equal(lac__read_up_to(file, buffer, 16384, 0), 5000);
	assert_int_equal(lac__read_up_to(file, buffer, 4096, 8192), 0);
	memset(buffer, 4, 16384);
	assert_int_equal(lac__write_full(file, buffer, 8192, 4096), 0);
	assert_int_equal(lac__sync(file), 0);
	assert_int_equal(lac__read_full(file, buffer, 8192, 0), 0);
	assert_int_equal(buffer[4095], 3);
	assert_int_equal(buffer[4096], 4);
	lac__close(file);
	free(buffer);
}

/* In a child of its own: 0 when every call that passes the limit fails with EFBIG and none kills.
 */
static int beyond_the_limit(void)
{
	struct rlimit limit = {.rlim_cur = 8192, .rlim_max = RLIM_INFINITY};
	struct lac_file *file;
	char bytes[4096] = {1};
	void *lock;

	signal(SIGXFSZ, SIG_DFL);
	getrlimit(RLIMIT_FSIZE, &limit);
	if (lac__open(be, "a", LAC_OPEN_WRITE | LAC_OPEN_CREATE, &file) < 0)
		return 1;
	if (lac__truncate(file, 20000) < 0)
		return 2;
	limit.rlim_cur = 8192;
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 3;
	if (lac__write_full(file, bytes, 4096, 6000) != -EFBIG)
		return 4;
	if (lac__write_full(file, bytes, 4096, 8192) != -EFBIG)
		return 5;
	if (lac__allocate(file, 0, 1u << 20) != -EFBIG || lac__truncate(file, 30000) != -EFBIG)
		return 6;
	if (lac__truncate(file, 10000) != 0 || lac__write_full(file, bytes, 4096, 4096) != 0)
		return 7;
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &limit);
	return be->ops->lock(be, &lock, NULL) == 0 ? 0 : 8;
}

static int wait_for(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void a_size_limit_is_an_error_and_no_signal(void **state)
{
	pid_t child = fork();

	if (child == 0)
		_exit(beyond_the_limit());
	assert_int_equal(wait_for(child), 0);
}

struct names {
	unsigned count, stop_at;
	bool a, dir;
};

static int note_name(void *arg, const char *name)
{
	struct names *names = arg;

	names->a |= strcmp(name, "a") == 0;
	names->dir |= strcmp(name, "dir") == 0;
	errno = EIO; /* visit may do what it likes to errno */
	return ++names->count == names->stop_at ? 77 : 0;
}

static void names_are_listed_moved_and_removed(void **state)
{
	struct names names = {0};
	struct lac_file_info info;

	lac__close(must_create("a"));
	assert_int_equal(be->ops->make_dir(be, "dir"), 0);
	assert_int_equal(be->ops->make_dir(be, "dir"), -EEXIST);
	assert_int_equal(be->ops->list(be, "", note_name, &names), 0);
	assert_int_equal(names.count, 2);
	assert_true(names.a && names.dir);
	names = (struct names){.stop_at = 1};
	assert_int_equal(be->ops->list(be, "", note_name, &names), 77);
	assert_int_equal(names.count, 1);
	assert_int_equal(be->ops->list(be, "a", note_name, &names), -ENOTDIR);
	assert_int_equal(be->ops->list(be, "none", note_name, &names), -ENOENT);

	assert_int_equal(be->ops->rename(be, "a", "dir/b"), 0);
	assert_int_equal(be->ops->sync_dir(be, "dir"), 0);
	assert_int_equal(be->ops->sync_dir(be, ""), 0);
	assert_int_equal(be->ops->sync_dir(be, "none"), -ENOENT);
	assert_int_equal(be->ops->path_info(be, "a", &info), -ENOENT);
	assert_int_equal(be->ops->path_info(be, "dir/b", &info), 0);
	assert_true(S_ISREG(info.mode));
	assert_int_equal(be->ops->remove_dir(be, "dir"), -ENOTEMPTY);
	assert_int_equal(be->ops->unlink(be, "dir/b"), 0);
	assert_int_equal(be->ops->unlink(be, "dir/b"), -ENOENT);
	assert_int_equal(be->ops->remove_dir(be, "dir"), 0);
}

static void the_place_is_described(void **state)
{
	struct lac_place_info root_info, info;

	lac__close(must_create("a"));
	assert_int_equal(be->ops->place_info(be, "", &root_info), 0);
	assert_int_equal(be->ops->place_info(be, "a", &info), 0);
	assert_int_equal(be->ops->place_info(be, "none", &info), -ENOENT);
	assert_int_equal(info.filesystem_id, root_info.filesystem_id);
	assert_int_not_equal(info.filesystem_type, 0);
	assert_true(lac__is_power_of_two(info.block_bytes));
	assert_true(lac__is_power_of_two(info.physical_sector_bytes));
	assert_in_range(info.physical_sector_bytes, 512, 1u << 20);
	assert_true(info.free_bytes > 0);
}

static void a_root_that_is_renamed_stays_the_root(void **state)
{
	char before[4096], after[4200];

	snprintf(before, sizeof(before), "%s", root);
	snprintf(after, sizeof(after), "%s-moved", root);
	assert_int_equal(rename(before, after), 0);
	int made = be->ops->make_dir(be, "dir");
	assert_int_equal(rename(after, before), 0);
	assert_int_equal(made, 0);
	assert_int_equal(access(outside("dir"), F_OK), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_missing_root_is_named),
		TEST(bytes_come_back),
		TEST(creation_is_exclusive_when_asked),
		TEST(only_regular_files_are_opened),
		TEST(no_path_leaves_the_root),
		TEST(descriptors_stay_out_of_the_way),
		TEST(space_is_allocated_and_given_back),
		TEST(direct_files_read_up_to_an_odd_end),
		TEST(a_size_limit_is_an_error_and_no_signal),
		TEST(names_are_listed_moved_and_removed),
		TEST(the_place_is_described),
		TEST(a_root_that_is_renamed_stays_the_root),
	};

	return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
