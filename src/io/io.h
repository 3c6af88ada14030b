/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/io.h - whole reads and writes over a backend's table (lacuna/backend.h), and its built-in
 * backends. Short counts, EINTR and sizes beyond 0x7ffff000 end here.
 */
#ifndef LAC_IO_IO_H
#define LAC_IO_IO_H

#include <stdbool.h>

#include "base/error.h"
#include "lacuna/backend.h"

/* The plain backend over Linux system calls, rooted at a directory that exists. Free with
   lac__backend_plain_free. */
int lac__backend_plain_new(const char *root, struct lac_backend **ret, struct lac_error *err);
void lac__backend_plain_free(struct lac_backend *be);

/* Reads exactly length bytes. Returns the count read: less only at the end of the file. The
   negative errno of the failing call otherwise. EINTR is retried without limit, zero progress is
   not. */
ssize_t lac__read_up_to(struct lac_file *file, void *buffer, size_t length, uint64_t offset);
/* The same, but an early end is -ENODATA. */
int lac__read_full(struct lac_file *file, void *buffer, size_t length, uint64_t offset);
/* Writes all of it or returns the negative errno of the failing call; part may then be written. */
int lac__write_full(struct lac_file *file, const void *buffer, size_t length, uint64_t offset);

/* Single calls with EINTR retried (for allocate: a bounded number of times, in chunks that let a
   signal storm pass; what was allocated stays). */
int lac__open(struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret);
int lac__close(struct lac_file *file); /* file may be NULL */
int lac__sync(struct lac_file *file);
int lac__allocate(struct lac_file *file, uint64_t offset, uint64_t length);
int lac__punch(struct lac_file *file, uint64_t offset, uint64_t length);
int lac__truncate(struct lac_file *file, uint64_t size);

/* Buffers for DIRECT files: aligned to 4096; length is rounded up. NULL when out of memory. */
void *lac__aligned_alloc(size_t length);

/*
 * One sync in flight per file, its result shared (rule 4.14). A writer calls lac__syncer_wrote
 * after its write returned, lac__syncer_sync to have all that was written before the call durable.
 * The first failure stays: every later call returns it, without a system call.
 */
struct lac__syncer;
int lac__syncer_new(struct lac__syncer **ret);
void lac__syncer_free(struct lac__syncer *s); /* NULL is fine */
void lac__syncer_wrote(struct lac__syncer *s);
bool lac__syncer_dirty(struct lac__syncer *s);
int lac__syncer_sync(struct lac__syncer *s, struct lac_file *file);

#endif
