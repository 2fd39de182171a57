/* SPDX-License-Identifier: BSD-3-Clause
 * A chunk is damaged if HDF5 or its checksum refuses it, or if its hash differs.  Files before
 * format version 4 have no hashes of chunks; in them only HDF5 and its checksums show a damaged
 * chunk. */
#include "io/damage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/sha256_tree.h"
#include "base/status.h"
#include "io/h5/listing.h"

enum { LINES_MOST = 16 /* lines per dataset */, PIECE_BYTES = 1 << 20 };
/* The most chunks of a dataset.  A dataset with more chunks is not searched, since it can only be
 * meant to keep the program busy: 10^9 rows of 64 codes have only 244,141 chunks. */
enum { CHUNKS_MOST = 1 << 24 };

/* A dataset whose chunks are read. */
struct reading {
  const struct verify *v;
  const struct h5_array *a;
  const unsigned char *leaves; /* the hash of each unit; NULL: not known */
  gidx unit;                   /* entries that are read together: a chunk, or without chunks about a
                                * megabyte */
  gidx begin, runs; /* first entry of the current run of damaged chunks, -1: none; number of runs */
};

/* The damage in all datasets of a file. */
struct damage {
  gidx units, bad; /* units of the datasets that have damage, and damaged units */
  char first[600]; /* the first run, as text */
};

/* rows[2] <- the first and last row of entries first .. last of supports.  Returns 0 if these rows
 * are not known. */
static int rows_find(const struct verify *v, gidx first, gidx last, gidx *rows)
{
  struct h5_array starts;
  gidx entry[2] = {first, last};
  int there, status = h5_exists(v->file, "/supports/indptr", &there);
  if (status || !there || h5_array_open(v->file, "/supports/indptr", &starts)) return 0;
  h5_array_stream(&starts);
  for (int i = 0; i < 2 && !status; i++) {
    gidx low = 0, high = starts.rank == 1 ? starts.shape[0] - 1 : 0, at;
    while (high - low > 1 && !status) {
      gidx middle = low + (high - low) / 2;
      status = h5_array_read(&starts, middle, 1, TYPE_I64, &at);
      *(at <= entry[i] ? &low : &high) = middle;
    }
    rows[i] = low;
  }
  h5_array_close(&starts);
  return !status;
}

/* text[capacity] <- the range first .. last of entries, and of rows if these are known. */
static void run_write(const struct reading *r, gidx first, gidx last, char *text, size_t capacity)
{
  const struct h5_array *a = r->a;
  gidx rows[2];
  int used = snprintf(text, capacity, "entries %lld to %lld of %lld", (long long)first,
                      (long long)last, (long long)a->shape[0]);
  int is_entry = !strncmp(a->object, "/supports/", 10) && strcmp(a->object, "/supports/indptr");
  if (is_entry && rows_find(r->v, first, last, rows))
    snprintf(text + used, capacity - (size_t)used, ", rows %lld to %lld", (long long)rows[0],
             (long long)rows[1]);
}

/* End the current run of damaged chunks before entry `end`, and report it; do nothing if there is
 * no run. */
static void run_end(struct reading *r, gidx end, struct damage *d)
{
  char text[256];
  if (r->begin < 0) return;
  run_write(r, r->begin, end - 1, text, sizeof text);
  if (!*d->first) snprintf(d->first, sizeof d->first, "%s, of '%s'", text, r->a->object);
  if (++r->runs <= LINES_MOST) check_note(r->v, "damaged   %s  %s", r->a->object, text);
  if (r->runs == LINES_MOST + 1) check_note(r->v, "damaged   %s  and more", r->a->object);
  r->begin = -1;
}

/* Read entries first .. first + n - 1, which are one unit.  Fails if they cannot be read, or are
 * not what was written. */
static int unit_read(const struct reading *r, gidx first, gidx n, void *piece)
{
  unsigned char leaf[SHA256_BYTES];
  size_t bytes = (size_t)(h5_array_bytes(r->a) / r->a->shape[0] * n);
  TRY(h5_array_read(r->a, first, n, r->a->type, piece));
  if (!r->leaves) return OK;
  TRY(sha256_leaf(piece, bytes, leaf));
  const unsigned char *wanted = r->leaves + first / r->unit * SHA256_BYTES;
  CHECK(memcmp(leaf, wanted, sizeof leaf) == 0, ERR_INPUT, "other values");
  return OK;
}

static void array_read(struct reading *r, void *piece, struct damage *d)
{
  gidx n = r->a->shape[0], units = ceil_div(n, r->unit), bad = 0;
  for (gidx first = 0; first < n; first += r->unit) {
    int status = unit_read(r, first, imin(r->unit, n - first), piece);
    if (status && r->begin < 0) r->begin = first;
    if (!status) run_end(r, first, d);
    if (status) bad++, status_clear();
  }
  run_end(r, n, d);
  d->bad += bad;
  d->units += bad ? units : 0;
}

static int dataset_read(const struct verify *v, const char *object, struct damage *d)
{
  struct h5_array a;
  struct arena arena = {0};
  char *piece;
  TRY(h5_array_open(v->file, object, &a));
  h5_array_stream(&a);
  int is_number = a.type != TYPE_OTHER && a.rank >= 1 && a.rank <= H5_RANK && a.shape[0] > 0;
  gidx entry = is_number ? h5_array_bytes(&a) / a.shape[0] : 0, unit = h5_array_chunk(&a);
  if (!unit) unit = imax(1, PIECE_BYTES / imax(entry, 1));
  if (entry && a.shape[0] / unit > CHUNKS_MOST) entry = 0;
  int status = entry ? arena_alloc(&arena, &piece, imin(unit, a.shape[0]), (size_t)entry) : OK;
  unsigned char *leaves = NULL;
  int is_chunk = entry && h5_array_chunk(&a) && a.is_native;
  if (!status && is_chunk && h5_array_leaves(v->file, &a, &leaves)) status_clear();
  struct reading r = {v, &a, leaves, unit, -1, 0};
  if (!status && entry) array_read(&r, piece, d);
  free(leaves);
  arena_free(&arena);
  h5_array_close(&a);
  return status;
}

int damage_locate(const struct verify *v, int status)
{
  struct h5_listing list = {0};
  struct damage d = {0};
  char why[1024];
  status_take(why, sizeof why);
  int listed = h5_list(v->file, &list);
  for (gidx i = 0; i < list.count && !listed; i++)
    if (list.entries[i].kind == ENTRY_DATASET && dataset_read(v, list.entries[i].path, &d))
      status_clear(); /* its header is damaged, as `why` says, or it is no array */
  h5_listing_free(&list);
  status_clear();
  CHECK(d.bad, status, "%s", why);
  FAIL(status, "%s\nchunks that are not what was written: %lld of %lld, first %s" ANEW, why,
       (long long)d.bad, (long long)d.units, d.first);
}
