/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/store.c - creating, opening and closing a store; what all calls check first.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "fs/create.h"
#include "fs/place.h"
#include "store/internal.h"

enum {
	DEFAULT_INLINE_BYTES = 64 << 10,
	DEFAULT_SEGMENT_BYTES = 16 << 20,
	DEFAULT_OPEN_FILES = 128,
	JOURNAL_FILES = 3, /* held by the journal beside the pool */
};
#define DEFAULT_CONTAINER_BYTES (UINT64_C(1) << 30)
#define DEFAULT_MEMORY_BYTES	(UINT64_C(64) << 20)
#define DEFAULT_JOURNAL_BYTES	(UINT64_C(32) << 20)

LAC_PUBLIC const char *lac_version(void)
{
	return LAC_VERSION;
}

/* Forks between the opening process and this one, as fork() itself counts them: reading it costs a
   load, where getpid costs a system call. */
static _Atomic unsigned forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
	forks++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

int lac__store_own_process(struct lac_store *s, struct lac_error *err)
{
	/* A child of fork has a copy of the memory, with locks in any state, and not the writer's
	   lock: it must touch neither. */
	if (s->forks == forks)
		return 0;
	return lac__error_set(err, -EINVAL, LAC_REASON_WRONG_PROCESS, 0, 0,
		"the store was opened by process %d", (int)s->pid);
}

int lac__store_usable(struct lac_store *s, struct lac_error *err)
{
	int rc = lac__store_own_process(s, err);

	return rc < 0 ? rc : lac__journal_poisoned(s->journal, err);
}

void lac__store_log(struct lac_store *s, int level, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!s->options.log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	s->options.log(s->options.log_arg, level, text);
}

int lac__store_poison(struct lac_store *s, int code, struct lac_error *err)
{
	struct lac_error own = {.code = code, .reason = LAC_REASON_POISONED};

	snprintf(own.message, sizeof own.message, "error %d", -code);
	lac__journal_poison(s->journal, code, err ? err : &own);
	lac__store_log(s, LAC_LOG_WARNING, "no more changes until reopened: %s",
		err ? err->message : own.message);
	return code;
}

int lac__store_made(struct lac_store *s, int rc, struct lac_error *err)
{
	switch (-rc) {
	case 0:
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case ENOMEM:
	case EMFILE:
	case ENFILE: return rc;
	default: return lac__store_poison(s, rc, err);
	}
}

/* ---- create ---- */

static int check_create_options(struct lac_create_options *o, struct lac_error *err)
{
	const char *what = NULL;

	if (o->inline_max_bytes == 0)
		o->inline_max_bytes = DEFAULT_INLINE_BYTES;
	if (o->container_bytes == 0)
		o->container_bytes = DEFAULT_CONTAINER_BYTES;
	if (o->segment_bytes == 0)
		o->segment_bytes = DEFAULT_SEGMENT_BYTES;
	if (o->granule_bytes != 0 && (!lac__is_power_of_two(o->granule_bytes) ||
					     o->granule_bytes < LAC__GRANULE_MIN_BYTES ||
					     o->granule_bytes > LAC__GRANULE_MAX_BYTES))
		what = "granule: a power of two from 4096 to 65536";
	else if (o->inline_max_bytes < 4096 || o->inline_max_bytes > 1 << 20)
		what = "inline max: 4096 to 1 MiB";
	else if (o->container_bytes < 64 << 10 || o->container_bytes > UINT64_C(1) << 40)
		what = "container size: 64 KiB to 1 TiB";
	else if (o->segment_bytes < 64 << 10 || o->segment_bytes > 1 << 30 ||
		 o->segment_bytes % 4096 != 0)
		what = "segment size: 64 KiB to 1 GiB, a multiple of 4096";
	if (what)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0, "create: %s", what);
	return 0;
}

static int count_entry(void *arg, const char *name)
{
	unsigned *count = arg;

	/* What a filesystem's root has of its own, and the writer's lock, do not count. */
	if (strcmp(name, "lost+found") != 0 && strcmp(name, "lock") != 0)
		++*count;
	return 0;
}

static int check_empty(struct lac_backend *be, struct lac_error *err)
{
	unsigned entries = 0;
	int rc = be->ops->list(be, "", count_entry, &entries);

	if (rc < 0)
		return lac__error_sys(err, rc, "list directory");
	if (entries > 0)
		return lac__error_set(
			err, -EEXIST, LAC_REASON_EXISTS, 0, 0, "the directory is not empty");
	return 0;
}

static int new_uuid(struct lac__uuid *ret, struct lac_error *err)
{
	ssize_t n = getrandom(ret->b, sizeof ret->b, 0);

	if (n != sizeof ret->b)
		return lac__error_sys(err, n < 0 ? -errno : -EIO, "make uuid");
	ret->b[6] = (uint8_t)((ret->b[6] & 0x0f) | 0x40); /* RFC 4122, version 4 */
	ret->b[8] = (uint8_t)((ret->b[8] & 0x3f) | 0x80);
	return 0;
}

static int fill_super(struct lac_backend *be, struct lac_create_options *o,
	struct lac__super *super, struct lac_error *err)
{
	struct lac__place place;
	int rc = lac__place_probe(be, "", &place, err);

	if (rc < 0)
		return rc;
	if (o->granule_bytes == 0) {
		o->granule_bytes = LAC__GRANULE_MIN_BYTES;
		if (lac__is_power_of_two(place.reclaim_unit_bytes) &&
			place.reclaim_unit_bytes > o->granule_bytes &&
			place.reclaim_unit_bytes <= LAC__GRANULE_MAX_BYTES)
			o->granule_bytes = place.reclaim_unit_bytes;
	}
	*super = (struct lac__super){.granule_bytes = o->granule_bytes,
		.checkpoint = 1,
		.redo_lsn = 1,
		.next_id = 1,
		.id_high_water = 1,
		.next_container = 1,
		.flags = LAC__SUPER_CLEAN,
		.inline_max_bytes = o->inline_max_bytes,
		.container_bytes = o->container_bytes,
		.segment_bytes = o->segment_bytes,
		.journal_seq = 1,
		.created_ns = lac__clock_wall_ns(),
		.filesystem_type = place.filesystem_type,
		.filesystem_id = place.filesystem_id,
		.reclaim_unit_bytes = place.reclaim_unit_bytes,
		.place_flags = place.flags};
	return new_uuid(&super->uuid, err);
}

static int create_journal(
	struct lac_backend *be, const struct lac__super *super, struct lac_error *err)
{
	struct lac__journal_options options = {.uuid = super->uuid,
		.segment_bytes = super->segment_bytes,
		.segments_min = 3,
		.ready_target = 2,
		.tear_bytes = LAC__PAGE_BYTES,
		.record_bytes_max = LAC__RECORD_BYTES_MAX};

	return lac__journal_create(be, LAC__NAME_JOURNAL, &options, err);
}

/* The super comes last and whole: until its name is durable there is no store. */
static int create_super(
	struct lac_backend *be, const struct lac__super *super, struct lac_error *err)
{
	uint8_t *bytes = calloc(1, LAC__SUPER_FILE_BYTES);
	struct lac__super copy = *super;
	int rc;

	if (!bytes)
		return lac__error_nomem(err);
	for (copy.copy = 0; copy.copy < LAC__SUPER_COPIES; copy.copy++)
		lac__super_encode(&copy, bytes + copy.copy * LAC__SLOT_STRIDE_BYTES);
	rc = lac__create_file(
		be, LAC__NAME_SUPER, LAC_OPEN_NOCOW, bytes, LAC__SUPER_FILE_BYTES, 0, err);
	free(bytes);
	return rc;
}

int lac__store_create_on(
	struct lac_backend *be, const struct lac_create_options *options, struct lac_error *err)
{
	static const char *const directories[] = {
		LAC__NAME_JOURNAL, LAC__NAME_INDEX, LAC__NAME_SPACE, LAC__NAME_DATA};
	struct lac_create_options o = {0};
	struct lac__super super;
	int rc;

	if (options)
		memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
	rc = check_create_options(&o, err);
	if (rc == 0)
		rc = check_empty(be, err);
	if (rc == 0)
		rc = fill_super(be, &o, &super, err);
	if (rc == 0 && o.container_bytes < 4 * (uint64_t)o.granule_bytes)
		rc = lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"create: container size: at least four granules");
	for (unsigned i = 0; rc == 0 && i < sizeof directories / sizeof *directories; i++)
		rc = lac__create_dir(be, directories[i], err);
	if (rc == 0)
		rc = create_journal(be, &super, err);
	if (rc == 0)
		rc = create_super(be, &super, err);
	return rc;
}

LAC_PUBLIC int lac_store_create(
	const char *path, const struct lac_create_options *options, struct lac_error *err)
{
	struct lac_backend *be;
	int64_t holder = 0;
	void *lock;
	int rc;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return lac__error_sys(err, -errno, "create store %s", path);
	rc = lac__backend_plain_new(path, &be, err);
	if (rc == 0) {
		rc = check_empty(be, err);
		if (rc == 0) {
			rc = be->ops->lock(be, &lock, &holder);
			if (rc < 0)
				lac__error_sys(err, rc, "lock");
		}
		if (rc == 0) {
			rc = lac__store_create_on(be, options, err);
			be->ops->unlock(be, lock);
		}
		lac__backend_plain_free(be);
	}
	if (rc < 0)
		lac__error_prepend(err, "create store %s", path);
	return rc;
}

/* ---- open ---- */

static int take_lock(struct lac_store *s, struct lac_error *err)
{
	int64_t holder = 0;
	int rc = s->backend->ops->lock(s->backend, &s->lock, &holder);

	if (rc == -EBUSY && holder > 0)
		return lac__error_set(err, rc, LAC_REASON_LOCKED, 0, 0,
			"process %" PRId64 " has it open for writing", holder);
	if (rc == -EBUSY)
		return lac__error_set(err, rc, LAC_REASON_LOCKED, 0, 0,
			"another process has it open for writing");
	return rc < 0 ? lac__error_sys(err, rc, "lock") : 0;
}

static int read_super_bytes(
	struct lac_store *s, uint8_t *bytes, size_t *ret_length, struct lac_error *err)
{
	struct lac_file *file;
	ssize_t n;
	unsigned direct = lac__rule(LAC__RULE_PAST_CACHE) ? LAC_OPEN_DIRECT : 0;
	int rc = lac__open(s->backend, LAC__NAME_SUPER, LAC_OPEN_WRITE | direct, &file);

	if (rc == -ENOENT)
		return lac__error_set(err, rc, LAC_REASON_NOT_A_STORE, 0, 0,
			"not a store: it has no file named super");
	if (rc < 0)
		return lac__error_sys(err, rc, "open super");
	/* Rule 4.6: a super whose sync failed may be in the cache only, and would vanish later.
	   What the device has is what counts, whatever the cache says. */
	rc = lac__sync(file);
	if (rc == 0 && lac__rule(LAC__RULE_PAST_CACHE))
		rc = s->backend->ops->drop_cache(file);
	n = rc < 0 ? rc : lac__read_up_to(file, bytes, LAC__SUPER_FILE_BYTES, 0);
	if (n < 0)
		rc = lac__error_sys(err, (int)n, "read super");
	else
		*ret_length = (size_t)n;
	lac__close(file);
	return rc;
}

static int choose_super(
	struct lac_store *s, const uint8_t *bytes, size_t length, struct lac_error *err)
{
	struct lac__super copies[LAC__SUPER_COPIES];
	struct lac_error errors[LAC__SUPER_COPIES];
	int results[LAC__SUPER_COPIES];
	int best = -1;

	for (uint32_t i = 0; i < LAC__SUPER_COPIES; i++) {
		uint64_t at = i * (uint64_t)LAC__SLOT_STRIDE_BYTES;

		memset(&errors[i], 0, sizeof errors[i]);
		if (at + LAC__PAGE_BYTES > length)
			results[i] = lac__error_set(&errors[i], -EBADMSG, LAC_REASON_TRUNCATED, at,
				LAC__PAGE_BYTES, "copy %" PRIu32 ": the file ends at byte %zu", i,
				length);
		else
			results[i] = lac__super_decode(bytes + at, i, &copies[i], &errors[i]);
		if (results[i] == -EOPNOTSUPP) { /* whole, and from a later release: hands off */
			best = -1;
			if (err)
				*err = errors[i];
			return results[i];
		}
		if (results[i] == 0 && (best < 0 || copies[i].checkpoint > copies[best].checkpoint))
			best = (int)i;
	}
	if (best < 0) {
		if (err)
			*err = errors[0];
		return results[0];
	}
	if (copies[best].ro_compat != 0)
		return lac__error_set(err, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN, 0, 0,
			"features %016" PRIx64 " allow reading only to this release",
			copies[best].ro_compat);
	s->super = copies[best];
	return 0;
}

static int load_super(struct lac_store *s, struct lac_error *err)
{
	uint8_t *bytes = lac__aligned_alloc(LAC__SUPER_FILE_BYTES);
	size_t length = 0;
	int rc;

	if (!bytes)
		return lac__error_nomem(err);
	rc = read_super_bytes(s, bytes, &length, err);
	if (rc == 0) {
		rc = choose_super(s, bytes, length, err);
		if (rc < 0)
			lac__error_prepend(err, "read super");
	}
	free(bytes);
	s->uuid = s->super.uuid;
	s->granule_bytes = s->super.granule_bytes;
	s->inline_max_bytes = s->super.inline_max_bytes;
	s->container_bytes = s->super.container_bytes;
	return rc;
}

static int set_options(
	struct lac_store *s, const struct lac_open_options *options, struct lac_error *err)
{
	struct lac_open_options *o = &s->options;

	if (options)
		memcpy(o, options, options->size < sizeof *o ? options->size : sizeof *o);
	if (o->memory_bytes == 0)
		o->memory_bytes = DEFAULT_MEMORY_BYTES;
	if (o->journal_bytes == 0)
		o->journal_bytes = DEFAULT_JOURNAL_BYTES;
	if (o->open_files == 0)
		o->open_files = DEFAULT_OPEN_FILES;
	if (o->memory_bytes < 1 << 20)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"memory budget %" PRIu64 " bytes, want at least 1 MiB", o->memory_bytes);
	if (o->open_files < 8)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"%" PRIu32 " open files, want at least 8", o->open_files);
	s->pages_budget = o->memory_bytes / (sizeof(struct lac__cached) + 16);
	return 0;
}

static void init_locks(struct lac_store *s)
{
	pthread_rwlockattr_t attributes;
	pthread_condattr_t monotonic;

	/* A checkpoint must not starve behind a stream of commits. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&s->gate, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	pthread_mutex_init(&s->upkeep_lock, NULL);
	pthread_mutex_init(&s->room_lock, NULL);
	pthread_mutex_init(&s->ids_lock, NULL);
	pthread_mutex_init(&s->containers_lock, NULL);
	pthread_mutex_init(&s->seq_lock, NULL);
	pthread_mutex_init(&s->readers_lock, NULL);
	pthread_cond_init(&s->readers_gone, NULL);
	pthread_mutex_init(&s->wake_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Frees everything that is there; the files' last error. */
static int tear_down(struct lac_store *s)
{
	int rc = 0, rc2;

	if (s->journal)
		rc = lac__journal_close(s->journal);
	lac__containers_free(s);
	lac__pages_free(s->pages);
	rc2 = lac__files_free(s->files);
	if (s->lock)
		s->backend->ops->unlock(s->backend, s->lock);
	if (s->own_backend)
		lac__backend_plain_free(s->backend);
	pthread_rwlock_destroy(&s->gate);
	pthread_mutex_destroy(&s->upkeep_lock);
	pthread_mutex_destroy(&s->room_lock);
	pthread_mutex_destroy(&s->ids_lock);
	pthread_mutex_destroy(&s->containers_lock);
	pthread_mutex_destroy(&s->seq_lock);
	pthread_mutex_destroy(&s->readers_lock);
	pthread_cond_destroy(&s->readers_gone);
	pthread_mutex_destroy(&s->wake_lock);
	pthread_cond_destroy(&s->wake);
	free(s->retirable);
	free(s->retired);
	free(s);
	return rc < 0 ? rc : rc2;
}

static int check_place(struct lac_store *s, struct lac_error *err)
{
	struct lac__place place;
	int rc = lac__place_assume(s->backend, "", &place, err);

	if (rc < 0)
		return rc;
	s->place_changed = place.filesystem_type != s->super.filesystem_type ||
			   place.filesystem_id != s->super.filesystem_id;
	/* On a filesystem that nobody looked at yet: the cautious choice, until upkeep has tried.
	 */
	s->whole_extents = !s->place_changed && (s->super.place_flags & LAC__PLACE_PROBED) &&
			   !(s->super.place_flags & LAC__PLACE_PARTIAL);
	s->reclaim_unit_bytes =
		s->place_changed ? place.reclaim_unit_bytes : s->super.reclaim_unit_bytes;
	return 0;
}

static int open_parts(struct lac_store *s, struct lac_error *err)
{
	struct lac__journal_options options;
	struct lac__jscan_end end;
	int rc = take_lock(s, err);

	if (rc == 0 && lac__files_new(s->backend, s->options.open_files, &s->files) < 0)
		rc = lac__error_nomem(err);
	if (rc == 0)
		rc = load_super(s, err);
	if (rc == 0)
		rc = check_place(s, err);
	if (rc == 0 && lac__pages_new(s->files, &s->uuid, s->pages_budget, s->super.checkpoint,
			       &s->pages) < 0)
		rc = lac__error_nomem(err);
	if (rc == 0)
		rc = lac__recover(s, &end, err);
	if (rc < 0)
		return rc;
	lac__journal_options_of(s, &options);
	/* An empty journal does not tell its epoch any more. Each opening that wrote anything has
	   made a checkpoint since, here or at its end, so their number grows faster than epochs do.
	 */
	if (end.epoch < s->super.checkpoint && s->super.checkpoint < UINT32_MAX)
		end.epoch = (uint32_t)s->super.checkpoint;
	rc = lac__journal_start(s->backend, LAC__NAME_JOURNAL, &options, &end, s->super.journal_seq,
		NULL, NULL, &s->journal, err);
	if (rc == 0)
		rc = lac__containers_load(s, err);
	return rc;
}

LAC_PUBLIC int lac_store_open(const char *path, const struct lac_open_options *options,
	struct lac_store **ret_store, struct lac_error *err)
{
	struct lac_store *s = calloc(1, sizeof *s);
	int rc;

	if (!s)
		return lac__error_nomem(err);
	init_locks(s);
	pthread_once(&forks_once, watch_forks);
	s->pid = getpid();
	s->forks = forks;
	rc = set_options(s, options, err);
	s->backend = s->options.backend;
	if (rc == 0 && !s->backend) {
		rc = lac__backend_plain_new(path, &s->backend, err);
		if (rc == -ENOENT && err)
			err->reason = LAC_REASON_NOT_A_STORE;
		s->own_backend = rc == 0;
	}
	if (rc == 0)
		rc = open_parts(s, err);
	if (rc == 0 && !s->options.no_background && lac__upkeep_start(s) < 0)
		rc = lac__error_nomem(err);
	if (rc < 0) {
		tear_down(s);
		lac__error_prepend(err, "open store %s", path ? path : "");
		return rc;
	}
	*ret_store = s;
	return 0;
}

LAC_PUBLIC int lac_store_close(struct lac_store *s, struct lac_error *err)
{
	int rc, rc2;

	if (!s)
		return 0;
	rc = lac__store_own_process(s, err);
	if (rc < 0)
		return rc;
	lac__upkeep_stop(s);
	pthread_mutex_lock(&s->upkeep_lock);
	rc = lac__journal_poisoned(s->journal, err);
	if (rc == 0)
		rc = lac__containers_tidy(s, err);
	if (rc == 0)
		rc = lac__checkpoint(s, true, err);
	if (rc == 0)
		lac__containers_trim(s);
	pthread_mutex_unlock(&s->upkeep_lock);
	rc2 = tear_down(s);
	if (rc == 0 && rc2 < 0)
		rc = lac__error_sys(err, rc2, "close files");
	if (rc < 0)
		lac__error_prepend(err, "close store");
	return rc;
}
