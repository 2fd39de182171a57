/* SPDX-License-Identifier: BSD-3-Clause
 * The rounds are those of routed.c, but the device itself moves the atoms of a round from lists to
 * supports. */
#include "library/resident.h"

#include "base/status.h"
#include "device/route.h"
#include "library/routed.h"
#include "model/rows.h"

/* A buffer of the items item .. item + n - 1 of the caller's array; an item has `bytes` bytes. */
static struct buffer part_of(const void *all, gidx item, gidx bytes, idx n)
{
  char *at = (char *)(uintptr_t)all + item * bytes;
  return (struct buffer){.host = at, .device = at, .bytes = n * bytes};
}

/* Row `bad` of `rows` is not finite after the mean was subtracted.  Copy it to the host.
 * ERR_INPUT: a value was not finite before, and the message names it.  Otherwise OK: the row's
 * scores will not be finite, which is an error later. */
static int row_refuse(struct sagitta *h, const struct buffer *rows, gidx first, gidx bad)
{
  gidx bytes = h->options.p * (gidx)sizeof(float);
  struct buffer row = part_of(rows->device, bad, bytes, 1);
  row.host = h->row;
  TRY(device_get(&h->device, &row, 0, bytes));
  return rows_check(h->row, 1, h->options.p, first + bad, "x");
}

/* h->x <- n rows less the mean. */
static int rows_take(struct sagitta *h, const struct buffer *rows, gidx first, idx n)
{
  idx p = h->options.p;
  struct gather_job copy = {.from = rows, .n = n, .unit = p * (gidx)sizeof(float), .to = &h->x};
  struct preprocess_job job = {.rows = &h->x, .n = n};
  if (!device_is_gpu(&h->device)) TRY(rows_check(rows->host, n, p, first, "x"));
  TRY(device_gather(&h->device, &copy));
  if (device_is_gpu(&h->device)) {
    TRY(preprocess_run(&h->preprocess, &job));
    return job.bad < 0 ? OK : row_refuse(h, rows, first, job.bad);
  }
  rows_center(h->x.host, n, p, h->options.mean);
  return OK;
}

/* A round of routing: find atoms begin .. end - 1 of the supports of n rows. */
static int round_route(struct sagitta *h, struct buffer *atoms, gidx first, idx n, idx begin,
                       idx end)
{
  idx s = h->options.top_s, top_k = end - begin;
  struct route_job job = {.rows = begin ? &h->residual : &h->x,
                          .n = n,
                          .top_k = top_k,
                          .excluded = {atoms->host, begin, s},
                          .chosen = atoms,
                          .lists = &h->lists};
  struct scatter_job place = {.lists = &h->lists,
                              .n = n,
                              .top_k = top_k,
                              .at = begin,
                              .s = s,
                              .atoms = atoms,
                              .score = &h->score};
  TRY(device_route(&h->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %lld and atom %d is not a finite float32 number",
        (long long)(first + job.bad.row), job.bad.atom);
  return device_lists_scatter(&h->device, &place);
}

int resident_encode(struct sagitta *h, const struct resident *r, gidx first, idx n)
{
  const struct sagitta_options *o = &h->options;
  gidx entries = o->top_s * (gidx)sizeof(idx);
  struct buffer x = part_of(r->x, first, o->p * (gidx)sizeof(float), n);
  struct buffer atoms = part_of(r->atoms, first, entries, n);
  struct buffer codes = part_of(r->codes, first, entries, n);
  TRY(rows_take(h, &x, first, n));
  for (idx round = 1, begin = 0, end; begin < o->top_s; round++, begin = end) {
    end = round_end(o->top_s, o->rounds, round);
    if (end == begin) continue;
    TRY(round_route(h, &atoms, first, n, begin, end));
    TRY(routed_solve(h, &(struct routed_part){n, begin, end, &atoms, &codes}));
  }
  return OK;
}
