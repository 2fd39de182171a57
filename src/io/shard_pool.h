/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays of more files than each rank is to open: one rank opens each and says what it is, and then
 * those do that read it, who compare, some at a time.
 *
 * Floor: io. */
#ifndef IO_SHARD_POOL_H
#define IO_SHARD_POOL_H

#include <pthread.h>

#include "base/types.h"
#include "comm/comm.h"
#include "io/inputs.h"

/* So many may be open by themselves, and of more so many at a time. */
enum { POOL_OPEN = 64 };

/* What a rank says of a file: numbers of 64 bits alone. */
struct pool_facts {
  int64_t format, type, rank, shape[3], unit, data, inode, fraction;
  int64_t is_virtual;   /* it stands for others, and every rank opens it */
  int64_t file, object; /* bytes of these texts with their ends; object 1: there is none */
  int64_t surveyor;     /* the rank */
  struct input_mark mark;
};

struct pool_array {
  struct input_array *input; /* owned; its file is open while users > 0, and maybe longer */
  struct input_mark mark;
  int64_t inode, fraction;
  int surveyor, is_known; /* it was opened here */
  int users;
  gidx used; /* when it was last, by clock */
};
struct shard_pool {
  struct pool_array *arrays;
  int count, n_open, rank;
  const char *standard; /* as in struct input_standard; borrowed */
  gidx clock;
  pthread_mutex_t lock; /* of all that changes */
};

/* What a survey found, the same on every rank; survey_free() also where it failed. */
struct survey {
  struct pool_facts *facts; /* [n] */
  char *texts;              /* file and object of each */
  int n;
};
/* Open array i of n; the survey closes it. */
typedef int survey_open(void *self, int i, struct input_array **input);
/* Every rank opens some.  Of failures that of the lowest array is reported.  Collective; it begins
 * with an agreement on `status`. */
int survey_make(struct survey *s, struct comm *c, int n, int status, survey_open *open, void *self);
void survey_free(struct survey *s);

/* The pool's arrays are those of a survey that are not virtual, in their order.  pool_close() is
 * safe on a zeroed struct. */
int pool_open(struct shard_pool *pool, const struct survey *s, const struct comm *c,
              const char *standard);
int pool_close(struct shard_pool *pool);

/* As input_array_read(), by any threads.  ERR_INPUT: this rank sees another file than the surveyor;
 * ERR_IO: the file changed. */
int pool_read(struct shard_pool *pool, int i, gidx first, gidx count, float *out);

#endif
