/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks have the hashes of their own chunks and zeros for those of others, so that all are known by
 * an or. */
#include "io/supports_ranks.h"

#include <string.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/h5/array_write.h"
#include "io/h5/placed.h"

/* Is a page of memory that ranks of two machines write parts of written back as a whole? */
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

/* Rank 0: may ranks write at once, as far as it knows?  Where a segment is a sum block it begins a
 * page, and has one writer. */
static int may_write(const struct supports_output *f)
{
  if (!f->has_slabs) return 0;
  if (!f->slabs.level || !writes_back_whole(f->result.file.name)) return 1;
  log_info("writes  rank 0 alone: the file system brings pages of two ranks back as a whole");
  return 0;
}

static int arrays_begin(struct supports_output *f, gidx first)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays);
  for (int i = 0; i < n; i++) TRY(h5_placed_begin(arrays[i], first * f->shape.s));
  return OK;
}

/* A rank that does not see the file is no failure. */
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
                         const struct supports_shape *shape, gidx first, int *is)
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
  if (*is) return comm_agree(c, arrays_begin(f, first));
  if (c->rank == 0)
    log_info("writes  rank 0 alone: %lld of %d ranks do not see '%s'", (long long)missing, c->size,
             name);
  if (c->rank) TRY(h5_placed_close(&f->result.h5));
  if (c->rank) supports_output_close(f);
  return OK;
}

/* What is pending, and then all, comes to the disk. */
static int arrays_flush(struct supports_output *f, struct h5_array *const *arrays, int n)
{
  for (int i = 0; i < n; i++) TRY(h5_array_flush(arrays[i]));
  return h5_placed_close(&f->result.h5);
}

int supports_ranks_end(struct supports_output *f, struct comm *c, gidx rows)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays), status = OK;
  TRY(comm_agree(c, arrays_flush(f, arrays, n)));
  for (int i = 0; i < n; i++) {
    struct h5_placed *p = arrays[i]->placed;
    gidx counts[] = {p->written, p->zeros};
    TRY(comm_or(c, (uint64_t *)(void *)p->leaves, p->chunks * (SHA256_BYTES / 8)));
    TRY(comm_sum(c, counts, LENGTH(counts)));
    p->written = counts[0], p->zeros = counts[1];
  }
  for (int i = 0; i < n && !status; i++) status = h5_placed_end(arrays[i], rows * f->shape.s);
  TRY(comm_agree(c, status));
  if (c->rank) supports_output_close(f);
  return OK;
}
