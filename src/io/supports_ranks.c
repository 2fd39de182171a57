/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank knows the hashes of its own chunks, and has zeros for the others.  So a reduction by OR
 * gives all hashes to all ranks. */
#include "io/supports_ranks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "base/team.h"
#include "base/watchdog.h"
#include "io/h5/array_write.h"
#include "io/h5/placed.h"

static const gidx MOST = 256 << 20; /* most bytes that wait for the check, or for the disk */

/* Does the file system write a memory page back as a whole?  Then two machines that each write a
 * part of it would overwrite each other. */
static int writes_back_whole(const char *path)
{
  static const unsigned long kinds[] = {0x6969, 0x517b, 0xfe534d42, 0xff534d42}; /* NFS, SMB */
  struct statfs facts;
  int step = watchdog_begin(ERR_IO, "looking at", path), failed = statfs(path, &facts), has = 0;
  watchdog_end(step);
  for (int i = 0; i < LENGTH(kinds) && !failed; i++)
    has |= ((unsigned long)facts.f_type & 0xffffffff) == kinds[i];
  return has;
}

/* On rank 0: may several ranks write at once?  On file systems that write whole pages, only if a
 * segment is one sum block (ROW_BLOCK rows, N.0): it begins at a page and has one writer. */
static int may_write(const struct supports_output *f)
{
  if (!f->has_slabs) return 0;
  if (!f->slabs.level || !writes_back_whole(f->result.file.name)) return 1;
  log_info("writes  rank 0 alone: the file system writes whole pages, and two ranks would share "
           "some");
  return 0;
}

int supports_placed_begin(struct supports_output *f, idx rounds)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays);
  f->rounds = rounds;
  for (int i = 0; i < n; i++)
    if (!arrays[i]->placed) TRY(h5_placed_begin(arrays[i]));
  return OK;
}

/* Open the file on this rank.  If the rank cannot see it, that is no failure, but *missing <- 1. */
static int file_open(struct supports_output *f, const char *name,
                     const struct supports_shape *shape, gidx *missing)
{
  int status = supports_output_open(f, name, shape);
  *missing = status == ERR_IO;
  if (!*missing) return status;
  status_clear();
  supports_output_close(f);
  return OK;
}

int supports_ranks_begin(struct supports_output *f, struct comm *c,
                         const struct supports_shape *shape, idx rounds, int *is)
{
  char name[sizeof f->result.file.name] = "";
  gidx missing = 0;
  *is = c->size > 1 && c->rank == 0 && may_write(f);
  if (*is) strcpy(name, f->result.file.name);
  TRY(comm_broadcast(c, name, sizeof name, 1));
  *is = *name != '\0';
  if (!*is) return OK;
  TRY(comm_agree(c, c->rank ? file_open(f, name, shape, &missing) : OK));
  TRY(comm_sum(c, &missing, 1));
  *is = missing == 0;
  if (*is) return comm_agree(c, supports_placed_begin(f, rounds));
  if (c->rank == 0)
    log_info("writes  rank 0 alone: %lld of %d ranks do not see '%s'", (long long)missing, c->size,
             name);
  if (c->rank) TRY(h5_placed_close(&f->result.h5));
  if (c->rank) supports_output_close(f);
  return OK;
}

/* A sum block of this rank that is read from the file again. */
struct rows_again {
  struct h5_array *arrays[SUPPORTS_ARRAYS]; /* indices, score, data, codes */
  int count;
  void *values[SUPPORTS_ARRAYS]; /* [one sum block]; owned */
  gidx first, n;                 /* its entries */
  int status[SUPPORTS_ARRAYS];
  char message[SUPPORTS_ARRAYS][512];
};

/* A task: read one of the arrays. */
static void array_read(void *self, gidx i)
{
  struct rows_again *r = self;
  r->status[i] = h5_placed_read(r->arrays[i], r->first, r->n, r->values[i]);
  if (r->status[i]) status_take(r->message[i], sizeof r->message[i]);
}

static int block_check(struct rows_again *r, struct support_pass *pass,
                       const struct supports_shape *shape, gidx row, gidx rows)
{
  gidx s = shape->s;
  r->first = row * s;
  r->n = rows * s;
  spare_run(r->count, array_read, r);
  for (int i = 0; i < r->count; i++)
    if (r->status[i]) return status_set(r->status[i], r->message[i]);
  const struct support_block block = {.first = row,
                                      .n = (idx)rows,
                                      .s = shape->s,
                                      .d = shape->d,
                                      .atoms = r->values[0],
                                      .score = r->values[1],
                                      .codes = r->values[3]};
  return supports_rows_check(pass, &block, r->values[2]);
}

/* Read the sum blocks of this rank in rows first .. end - 1 again, and check them. */
static int blocks_check(struct rows_again *r, struct support_pass *pass,
                        const struct supports_shape *shape, gidx first, gidx end)
{
  for (int i = 0; i < r->count; i++) {
    size_t width = (size_t)shape->s * (i == 3 ? (size_t)shape->d : 1);
    r->values[i] = malloc(ROW_BLOCK * width * sizeof(float) + H5_SUM_BYTES);
    CHECK(r->values[i], ERR_MEMORY, "cannot allocate rows of %zu bytes", width * sizeof(float));
  }
  for (gidx row = first; row < end; row += ROW_BLOCK)
    if (h5_placed_has(r->arrays[0], row * shape->s))
      TRY(block_check(r, pass, shape, row, imin(ROW_BLOCK, end - row)));
  return OK;
}

/* Check this rank's rows among f->checked .. f->taken - 1. */
static int rows_check(struct supports_output *f)
{
  struct rows_again r = {0};
  int status = f->pass ? OK : supports_rows_open(&f->pass, &f->shape, f->rounds);
  r.count = supports_output_arrays(f, r.arrays);
  if (!status) status = blocks_check(&r, f->pass, &f->shape, f->checked, f->taken);
  for (int i = 0; i < r.count; i++) free(r.values[i]);
  f->checked = f->taken;
  return status;
}

/* Check rows in a thread while others are written.  The thread waits for the disk only if many
 * bytes are unsynced, so that the later sync before a record is short. */
static int beside_check(void *self)
{
  struct supports_output *f = self;
  TRY(rows_check(f));
  if (f->unsynced < MOST) return OK;
  f->unsynced = 0;
  return h5_placed_sync(&f->indices);
}

/* Wait until the checking thread has finished the earlier rows, and give it the rows written
 * since. */
static int check_begin(struct supports_output *f, gidx end)
{
  if (!f->checker.state) TRY(worker_open(&f->checker));
  TRY(worker_wait(&f->checker));
  f->taken = end;
  f->unsynced += f->unchecked;
  f->unchecked = 0;
  return worker_start(&f->checker, beside_check, f);
}

/* Check all rows from `first`, or from the first unchecked one, and sync the file. */
static int check_end(struct supports_output *f, gidx first, gidx end)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays);
  for (int i = 0; i < n; i++) TRY(h5_array_flush(arrays[i]));
  if (f->checker.state) TRY(worker_wait(&f->checker));
  f->checked = imax(f->checked, first);
  log_debug("checked %lld of %lld rows beside the writing", (long long)(f->checked - first),
            (long long)(end - first));
  f->taken = end;
  f->unchecked = f->unsynced = 0;
  TRY(rows_check(f));
  return h5_placed_sync(&f->indices);
}

void supports_placed_rest(struct supports_output *f)
{
  worker_close(&f->checker);
}

int supports_placed_wrote(struct supports_output *f, gidx rows, gidx end)
{
  static const gidx least = 8 << 20;
  enum { TIMES = 64 }; /* number of checks of a large file */
  gidx due = imin(imax((f->slabs.end - f->slabs.base) / TIMES, least), MOST);
  f->unchecked += rows * (f->slabs.slab / ROW_BLOCK);
  TRY(h5_placed_push(&f->indices, (end - rows) / ROW_BLOCK, end / ROW_BLOCK));
  int is_whole = (end % ROW_BLOCK == 0 || end == f->shape.n) && f->indices.n_pending == 0;
  int is_busy = f->checker.state && worker_is_busy(&f->checker) && f->unchecked < MOST;
  return f->unchecked >= due && is_whole && !is_busy ? check_begin(f, end) : OK;
}

/* All ranks get the hashes and counts of the chunks of rows first .. end - 1. */
static int hashes_join(struct supports_output *f, struct comm *c, gidx first, gidx end)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays);
  for (int i = 0; i < n; i++) {
    struct h5_placed *p = arrays[i]->placed;
    gidx unit = arrays[i]->chunk_rows, at = first * f->shape.s / unit;
    gidx count = ceil_div(end * f->shape.s, unit) - at, counts[] = {p->written, p->zeros};
    TRY(comm_or(c, (uint64_t *)(void *)p->leaves[at], count * (SHA256_BYTES / 8)));
    TRY(comm_sum(c, counts, LENGTH(counts)));
    p->all_written += counts[0], p->all_zeros += counts[1];
    p->written = p->zeros = 0;
  }
  return OK;
}

/* On rank 0, which alone has written: add its counts of chunks to the counts of all ranks. */
static void hashes_take(struct supports_output *f)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays);
  for (int i = 0; i < n; i++) {
    struct h5_placed *p = arrays[i]->placed;
    p->all_written += p->written, p->all_zeros += p->zeros;
    p->written = p->zeros = 0;
  }
}

/* Add the counts of checked rows, so that rank 0 need not read these rows again. */
int supports_counts_add(struct supports_output *f, const struct support_counts *more)
{
  struct support_counts *counts = &f->counts;
  if (!counts->density) {
    *counts = *more;
    counts->nonzero = 0;
    counts->density = calloc((size_t)counts->k, sizeof *counts->density);
  }
  CHECK(counts->density, ERR_MEMORY, "cannot allocate the counts of %d atoms", counts->k);
  counts->nonzero += more->nonzero;
  for (idx k = 0; k < counts->k; k++) counts->density[k] += more->density[k];
  f->result.counts = counts;
  return OK;
}

/* Called on every rank: end the arrays.  On rank 0 they are then as if it wrote all chunks. */
static int arrays_end(struct supports_output *f, gidx rows)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays);
  for (int i = 0; i < n; i++) TRY(h5_placed_end(arrays[i], rows * f->shape.s));
  return h5_placed_close(&f->result.h5);
}

/* Exchange the results among all ranks. */
static int found_join(struct supports_output *f, struct comm *c, gidx first, gidx end,
                      struct support_counts *counts)
{
  TRY(hashes_join(f, c, first, end));
  TRY(comm_sum(c, &counts->nonzero, 1));
  return comm_sum(c, counts->density, f->shape.k);
}

int supports_ranks_check(struct supports_output *f, struct comm *c, int all, gidx first, gidx end)
{
  struct support_counts counts = {0};
  int writes = all || c->rank == 0, status = OK;
  if (writes) status = check_end(f, first, end);
  if (writes && !status) status = supports_rows_end(f->pass, &counts);
  TRY(comm_agree(c, status));
  if (all)
    TRY(found_join(f, c, first, end, &counts));
  else if (writes)
    hashes_take(f);
  status = c->rank ? OK : supports_counts_add(f, &counts);
  supports_rows_close(f->pass);
  f->pass = NULL;
  return comm_agree(c, status);
}

int supports_ranks_end(struct supports_output *f, struct comm *c, gidx rows)
{
  TRY(supports_ranks_check(f, c, 1, 0, rows));
  TRY(comm_agree(c, arrays_end(f, rows)));
  if (c->rank) supports_output_close(f);
  return OK;
}
