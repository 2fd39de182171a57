/* SPDX-License-Identifier: BSD-3-Clause
 * Chunks are looked up one by one only if the dataset has fewer chunks than its shape needs. */
#include "io/h5/unwritten.h"

#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"

enum { MAX_TOLD = 64 };

struct missing {
  gidx count, first, last; /* entries of the first dimension */
};

/* Does a chunk whose entries begin at `first` have no storage? */
static int is_missing(hid_t dataset, int rank, const hsize_t *chunk, const hsize_t *dims,
                      hsize_t first)
{
  hsize_t at[H5_RANK] = {first}, stored;
  for (int i = 0; i >= 0;) {
    stored = 0;
    if (H5Dget_chunk_storage_size(dataset, at, &stored) < 0 || !stored) return 1;
    for (i = rank - 1; i > 0 && (at[i] += chunk[i]) >= dims[i]; i--) at[i] = 0;
    if (i == 0) return 0;
  }
  return 0;
}

/* Find the entries whose chunks have no storage. */
static void chunks_find(hid_t dataset, int rank, const hsize_t *chunk, const hsize_t *dims,
                        struct missing *m)
{
  for (hsize_t first = 0; first < dims[0]; first += chunk[0]) {
    hsize_t end = first + chunk[0] < dims[0] ? first + chunk[0] : dims[0];
    if (!is_missing(dataset, rank, chunk, dims, first)) continue;
    if (!m->count) m->first = (gidx)first;
    m->count += (gidx)(end - first);
    m->last = (gidx)end - 1;
  }
}

/* *there <- the number of chunks that have storage.  Returns 0 if the number is not known, as in
 * HDF5 before 1.10.5. */
static int chunks_count(hid_t dataset, hsize_t *there)
{
#if H5_VERSION_GE(1, 10, 5)
  hid_t space = H5Dget_space(dataset);
  int is_known = space >= 0 && H5Dget_num_chunks(dataset, space, there) >= 0;
  if (space >= 0) H5Sclose(space);
  return is_known;
#else
  (void)dataset, (void)there;
  return 0;
#endif
}

static void dataset_find(const struct h5_array *a, hid_t creation, struct missing *m)
{
  hsize_t chunk[H5_RANK], dims[H5_RANK], there = 0, wanted = 1;
  for (int i = 0; i < a->rank; i++) dims[i] = (hsize_t)a->shape[i];
  if (H5Pget_layout(creation) == H5D_CONTIGUOUS && H5Dget_storage_size(a->id) == 0)
    *m = (struct missing){a->shape[0], 0, a->shape[0] - 1};
  if (H5Pget_layout(creation) != H5D_CHUNKED) return;
  if (H5Pget_chunk(creation, a->rank, chunk) != a->rank) return;
  for (int i = 0; i < a->rank; i++) wanted *= (dims[i] + chunk[i] - 1) / chunk[i];
  if (chunks_count(a->id, &there) && there < wanted) chunks_find(a->id, a->rank, chunk, dims, m);
}

/* Is this the first call for this dataset? */
static int is_new(const struct h5_array *a)
{
  static uint64_t told[MAX_TOLD];
  static int count;
  uint64_t mark = hash64(a->path, strlen(a->path)) + 3 * hash64(a->object, strlen(a->object));
  for (int i = 0; i < count; i++)
    if (told[i] == mark) return 0;
  if (count < MAX_TOLD) told[count++] = mark;
  return 1;
}

/* Blocks of a pool that no sequence has may be empty (doc/formats.md). */
static int may_be_empty(const struct h5_array *a)
{
  return strcmp(a->object, "/kv/k") == 0 || strcmp(a->object, "/kv/v") == 0;
}

void h5_unwritten_warn(const struct h5_array *a)
{
  struct missing m = {0};
  if (may_be_empty(a)) return;
  if (!log_is_shown() || a->rank < 1 || a->rank > H5_RANK || h5_array_bytes(a) == 0) return;
  H5E_BEGIN_TRY
  {
    hid_t creation = H5Dget_create_plist(a->id);
    if (creation >= 0) dataset_find(a, creation, &m);
    if (creation >= 0) H5Pclose(creation);
  }
  H5E_END_TRY
  if (!m.count || !is_new(a)) return;
  log_warn("%lld of the %lld rows of '%s:%s', from %lld to %lld, were never written, and are read "
           "as its fill value: write them, or keep only the others",
           (long long)m.count, (long long)a->shape[0], a->path, a->object, (long long)m.first,
           (long long)m.last);
}
