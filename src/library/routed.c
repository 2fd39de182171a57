/* SPDX-License-Identifier: BSD-3-Clause
 * The rounds are those of a block of `sagitta encode` on one rank (encode/block.c).  The table of
 * atoms is the whole dictionary, so an index into the table (slot) is the number of an atom. */
#include "library/routed.h"

#include "base/status.h"
#include "device/codes.h"
#include "device/route.h"

int routed_alloc(struct sagitta *h)
{
  struct device *dev = &h->device;
  const struct sagitta_options *o = &h->options;
  gidx entries = (gidx)h->rows * o->top_s;
  TRY(buffer_alloc_device(dev, &h->lists, entries * (gidx)sizeof(struct entry)));
  TRY(buffer_alloc_device(dev, &h->slot, entries * (gidx)sizeof(idx)));
  TRY(buffer_alloc_device(dev, &h->codes, entries * (gidx)sizeof(float)));
  TRY(buffer_alloc_device(dev, &h->score, entries * (gidx)sizeof(float)));
  TRY(arena_alloc(&h->room, &h->row, o->p, sizeof *h->row));
  if (o->rounds == 1) return OK;
  TRY(buffer_alloc_device(dev, &h->residual, (gidx)h->rows * o->p * (gidx)sizeof(float)));
  return buffer_alloc_device(dev, &h->state,
                             h->rows * device_codes_state_bytes(dev, o->top_s, o->rho));
}

void routed_free(struct sagitta *h)
{
  struct buffer *const all[] = {&h->lists, &h->slot, &h->codes, &h->score, &h->residual, &h->state};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&h->device, all[i]);
}

/* A round of routing: find atoms begin .. end - 1 of the supports of n rows, and their scores. */
static int round_route(struct sagitta *h, gidx first, idx n, idx begin, idx end)
{
  idx s = h->options.top_s, top_k = end - begin, *slot = h->slot.host;
  struct route_job job = {.rows = begin ? &h->residual : &h->x,
                          .n = n,
                          .top_k = top_k,
                          .excluded = {slot, begin, s},
                          .lists = &h->lists};
  TRY(device_route(&h->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %lld and atom %d is not a finite float32 number",
        (long long)(first + job.bad.row), job.bad.atom);
  TRY(device_get(&h->device, &h->lists, 0, (gidx)n * top_k * (gidx)sizeof(struct entry)));
  const struct entry *lists = h->lists.host;
  for (gidx i = 0; i < n; i++)
    for (idx j = 0; j < top_k; j++) {
      slot[i * s + begin + j] = lists[i * top_k + j].atom;
      h->piece.score[i * s + begin + j] = entry_score(lists[i * top_k + j], 1, 0);
    }
  return device_put(&h->device, &h->slot, 0, (gidx)n * s * (gidx)sizeof(idx));
}

int routed_solve(struct sagitta *h, const struct routed_part *part)
{
  const struct sagitta_options *o = &h->options;
  int is_last = part->end == o->top_s;
  struct codes_job job = {.n = part->n,
                          .m_old = part->begin,
                          .m_new = part->end,
                          .max_m = o->top_s,
                          .rho = o->rho,
                          .rows = &h->x,
                          .atoms = &h->table,
                          .slot = part->slot,
                          .state = o->rounds > 1 ? &h->state : NULL,
                          .residual = is_last ? NULL : &h->residual,
                          .codes = is_last ? part->codes : NULL};
  return device_codes(&h->device, &job);
}

/* Set the atoms and codes of h->piece, which has the scores already; and h->start. */
static int piece_fill(struct sagitta *h, idx n)
{
  gidx entries = (gidx)n * h->options.top_s;
  const idx *slot = h->slot.host;
  const float *codes = h->codes.host;
  TRY(device_get(&h->device, &h->codes, 0, entries * (gidx)sizeof *codes));
  for (gidx i = 0; i < entries; i++) {
    h->piece.atoms[i] = slot[i];
    h->piece.codes[i] = codes[i];
  }
  h->piece.n = entries;
  for (gidx i = 0; i <= n; i++) h->start[i] = i * h->options.top_s;
  return OK;
}

int routed_encode(struct sagitta *h, gidx first, idx n)
{
  idx s = h->options.top_s, begin = 0;
  CHECK(entries_reserve(&h->piece, (gidx)n * s), ERR_MEMORY, "cannot allocate the codes of %d rows",
        n);
  for (idx round = 1; begin < s; round++) {
    idx end = round_end(s, h->options.rounds, round);
    if (end == begin) continue;
    TRY(round_route(h, first, n, begin, end));
    TRY(routed_solve(h, &(struct routed_part){n, begin, end, &h->slot, &h->codes}));
    begin = end;
  }
  return piece_fill(h, n);
}
