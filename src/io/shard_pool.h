/* SPDX-License-Identifier: BSD-3-Clause
 * Inputs that consist of many files.  No rank needs to open all of them.  In a survey each file is
 * opened by one rank, which tells the others its facts.  Later a rank opens only the files that it
 * reads, a limited number at a time, and compares them with these facts.
 *
 * Floor: io. */
#ifndef IO_SHARD_POOL_H
#define IO_SHARD_POOL_H

#include <pthread.h>

#include "base/types.h"
#include "comm/comm.h"
#include "io/inputs.h"

/* Up to this many inputs are opened without a pool; a pool has at most this many open at a time,
 * unless threads read more than this many at once. */
enum { POOL_OPEN = 64 };

/* The facts of a file that its surveyor, the rank that opens it in the survey, tells the other
 * ranks; all members have 64 bits.  fraction: the nanoseconds of the time when the file was
 * modified. */
struct pool_facts {
  int64_t format, type, rank, shape[3], unit, data, inode, fraction;
  int64_t is_virtual;   /* a virtual dataset, which every rank opens */
  int64_t file, object; /* bytes of the texts of file and object, with NUL; object is 1 if its text
                         * is "" */
  int64_t surveyor;     /* the rank that opened it in the survey */
  struct input_mark mark;
};

struct pool_array {
  struct input_array *input; /* owned; its file is open at least while users > 0 */
  struct input_mark mark;
  int64_t inode, fraction;
  int surveyor, is_known; /* is_known: this rank has opened it */
  int users;
  gidx used; /* value of the pool's clock at the last use */
};
struct shard_pool {
  struct pool_array *arrays;
  int count, n_open, rank;
  const char *standard; /* as in struct input_standard; borrowed */
  gidx clock;
  pthread_mutex_t lock; /* for all members that change */
};

/* The results of a survey, the same on every rank.  Call survey_free() also after a failure. */
struct survey {
  struct pool_facts *facts; /* [n] */
  char *texts;              /* file and object of each array */
  int n;
};
/* The callback that opens array i of n; the survey closes it. */
typedef int survey_open(void *self, int i, struct input_array **input);
/* Make a survey of n arrays, of which every rank opens some.  If several fail, the failure of the
 * array with the lowest number is reported.  Collective; it begins with an agreement on
 * `status`. */
int survey_make(struct survey *s, struct comm *c, int n, int status, survey_open *open, void *self);
void survey_free(struct survey *s);

/* Make a pool of the arrays of a survey that are not virtual, in the survey's order.  pool_close()
 * is safe on a zeroed struct. */
int pool_open(struct shard_pool *pool, const struct survey *s, const struct comm *c,
              const char *standard);
int pool_close(struct shard_pool *pool);

/* As input_array_read(); any threads may call it.  ERR_INPUT: the file differs from the file that
 * the surveyor saw; ERR_IO: the file changed. */
int pool_read(struct shard_pool *pool, int i, gidx first, gidx count, float *out);

#endif
