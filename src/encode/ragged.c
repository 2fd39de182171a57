/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are sorted by length.  Rows of one length are copied side by side and solved, and their
 * codes are copied back. */
#include "encode/ragged.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"

enum { ROWS = 4096, ENTRIES = 1 << 18 }; /* rows and entries that are solved at a time */

int ragged_open(struct ragged *w, struct device *device, idx p, idx most)
{
  gidx rows = imin(most, ROWS);
  *w = (struct ragged){.device = device, .p = p, .most = most, .arena.is_dry = device->is_dry};
  TRY(buffer_alloc(device, &w->rows, rows * p * (gidx)sizeof(float)));
  TRY(buffer_alloc(device, &w->slots, ENTRIES * (gidx)sizeof(idx)));
  TRY(buffer_alloc(device, &w->codes, ENTRIES * (gidx)sizeof(float)));
  TRY(buffer_alloc(device, &w->quality, rows * (gidx)sizeof(struct row_quality)));
  return arena_alloc(&w->arena, &w->order, most, sizeof *w->order);
}

void ragged_close(struct ragged *w)
{
  struct buffer *const all[] = {&w->rows, &w->slots, &w->codes, &w->quality};
  for (int i = 0; i < LENGTH(all) && w->device; i++) buffer_free(w->device, all[i]);
  arena_free(&w->arena);
  *w = (struct ragged){0};
}

static gidx length_of(const struct ragged_job *job, idx row)
{
  return job->start[row + 1] - job->start[row];
}

idx ragged_long(const struct ragged_job *job)
{
  for (idx i = 0; i < job->n; i++)
    if (length_of(job, i) > RAGGED_MOST) return i;
  return -1;
}

/* Sort the rows by length, in one pass of counting. */
static void rows_order(struct ragged *w, const struct ragged_job *job)
{
  memset(w->begin, 0, sizeof w->begin);
  for (idx i = 0; i < job->n; i++) w->begin[length_of(job, i) + 1]++;
  for (idx m = 0; m <= RAGGED_MOST; m++) w->begin[m + 1] += w->begin[m];
  for (idx i = 0; i < job->n; i++) w->order[w->begin[length_of(job, i)]++] = i;
  memmove(w->begin + 1, w->begin, (RAGGED_MOST + 1) * sizeof *w->begin);
  w->begin[0] = 0;
}

/* Copy n rows of m atoms each to the device. */
static int rows_put(struct ragged *w, const struct ragged_job *job, const idx *row, idx n, idx m)
{
  size_t columns = (size_t)w->p;
  float *x = w->rows.host;
  idx *slots = w->slots.host;
  for (idx i = 0; i < n; i++) {
    memcpy(x + (gidx)i * w->p, job->x + (gidx)row[i] * w->p, columns * sizeof *x);
    memcpy(slots + (gidx)i * m, job->atoms + job->start[row[i]], (size_t)m * sizeof *slots);
  }
  TRY(device_put(w->device, &w->rows, 0, (gidx)n * w->p * (gidx)sizeof *x));
  return device_put(w->device, &w->slots, 0, (gidx)n * m * (gidx)sizeof *slots);
}

/* Copy the codes and quality of these rows from the device. */
static int rows_get(struct ragged *w, const struct ragged_job *job, const idx *row, idx n, idx m)
{
  const float *codes = w->codes.host;
  const struct row_quality *quality = w->quality.host;
  TRY(device_get(w->device, &w->codes, 0, (gidx)n * m * (gidx)sizeof *codes));
  if (job->quality) TRY(device_get(w->device, &w->quality, 0, (gidx)n * (gidx)sizeof *quality));
  for (idx i = 0; i < n; i++) {
    memcpy(job->codes + job->start[row[i]], codes + (gidx)i * m, (size_t)m * sizeof *codes);
    if (job->quality) job->quality[row[i]] = quality[i];
  }
  return OK;
}

static int rows_solve(struct ragged *w, const struct ragged_job *job, const idx *row, idx n, idx m)
{
  struct codes_job codes = {.n = n,
                            .m_new = m,
                            .max_m = m,
                            .rho = job->rho,
                            .rows = &w->rows,
                            .atoms = job->table,
                            .slot = &w->slots,
                            .codes = &w->codes,
                            .quality = job->quality ? &w->quality : NULL};
  TRY(rows_put(w, job, row, n, m));
  TRY(device_codes(w->device, &codes));
  return rows_get(w, job, row, n, m);
}

int ragged_solve(struct ragged *w, const struct ragged_job *job)
{
  CHECK(job->n <= w->most && ragged_long(job) < 0, ERR_INTERNAL, "codes of %d rows", job->n);
  rows_order(w, job);
  for (gidx i = 0; i < w->begin[1] && job->quality; i++) {
    const float *x = job->x + (gidx)w->order[i] * w->p;
    job->quality[w->order[i]] = quality_reference(x, NULL, 0, 1, w->p, NULL);
  }
  for (idx m = 1; m <= RAGGED_MOST; m++) {
    idx most = (idx)imin(imin(w->most, ROWS), ENTRIES / m);
    for (gidx at = w->begin[m], n; at < w->begin[m + 1]; at += n) {
      n = imin(w->begin[m + 1] - at, most);
      TRY(rows_solve(w, job, w->order + at, (idx)n, m));
    }
  }
  return OK;
}
