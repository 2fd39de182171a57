/* SPDX-License-Identifier: BSD-3-Clause
 * Chooses the form of a system, mainly by the shared memory that its rows need. */
#include "device/cuda/arrow_size.h"

#include "base/num.h"
#include "base/status.h"

enum { BLOCK_RESERVED = 1 << 10 }; /* shared memory that CUDA takes for each block */

static int form_bytes(const struct subbatch_form *f, idx n)
{
  struct arrow_layout layout = arrow_layout_of(f->d, f->k, f->team, f->mma, f->held, f->blocks, n);
  return arrow_shared_bytes(&layout, f->team);
}

/* Choose arrow.cu with factors held in registers, if threads can hold all of them and a
 * multiprocessor can run arrow_resident_blocks() blocks.  The form has as few blocks as possible.
 * They divide the lanes, which are the 32 chains of rows of (N.12).  If one warp adds all lanes of
 * a block, a block may have at most 16.  Then a form of one block is not possible, and no other is
 * tried.  Returns 0 and changes nothing if there is no such form. */
static int form_hold(const struct cuda_state *s, struct subbatch_form *f, idx n)
{
  struct subbatch_form h = *f;
  gidx most = (s->shared + BLOCK_RESERVED) / arrow_resident_blocks(f->k) - BLOCK_RESERVED;
  h.team = ARROW_BLOCK;
  h.held = arrow_resident(f->d, f->k);
  if (!h.mma || !h.held) return 0;
  int all_lanes = arrow_lane_warps(h.k, h.team, h.held, 0) == 1;
  int most_blocks = f->k <= ARROW_FEW ? 2 : ARROW_BLOCKS; /* for few columns, more are not faster */
  for (h.blocks = 1; h.blocks <= most_blocks; h.blocks *= 2) {
    if (n > h.blocks * arrow_resident_rows(h.held) || form_bytes(&h, n) > most) continue;
    if (all_lanes && h.blocks == 1) return 0;
    *f = h;
    return 1;
  }
  return 0;
}

/* Choose the form of a system.  If no factors are held, shared memory must suffice for two blocks
 * on a multiprocessor, so that one computes while another waits.  Several warps share a system if
 * one system per warp does not fit.  A cluster has as few blocks as possible.  If a system needs
 * ARROW_BLOCKS blocks and has more than ARROW_CLUSTER_ROWS rows, the three kernels for long systems
 * are faster, although they read rows twice: with 4,096 rows and d = 2, k = 8 on an H200, 136 us
 * against 162. */
static struct subbatch_form form_of(const struct cuda_state *s, const struct arrow_system *a)
{
  struct subbatch_form f = {a->d, a->k, LOT_DECLINED, 1, 0, 0, s->architecture == 90};
  gidx most = s->shared / 2 - BLOCK_RESERVED;
  if (a->d < 1 || a->d > ARROW_MAX_FRAME || a->k < 0 || a->k > ARROW_MAX_COLUMNS) return f;
  if (a->n < 0 || a->n >= 1 << 30) return f;
  idx n = (idx)imin(a->n, 1 << 16); /* with this many rows, no system fits */
  f.rounds = arrow_rounds(a->d, a->k, n);
  if (f.rounds) f.team = WARP;
  if (f.rounds) return f;
  f.team = arrow_team(a->d, a->k, n);
  if (f.team == WARP && form_bytes(&f, n) > most) f.team = arrow_team(a->d, a->k, 1 << 16);
  if (f.team != WARP && form_hold(s, &f, n)) return f;
  int most_blocks = f.mma && f.team != WARP ? ARROW_BLOCKS : 1;
  while (f.blocks < most_blocks && form_bytes(&f, n) > most) f.blocks *= 2;
  int fits = form_bytes(&f, n) <= most;
  int has_parts = a->n > 0 && arrow_sum_bytes(a->d, a->k, f.mma) <= s->shared &&
                  arrow_step_bytes(a->d, a->k) <= s->shared;
  int is_slow = f.blocks == ARROW_BLOCKS && n > ARROW_CLUSTER_ROWS && has_parts;
  if (fits && !is_slow) return f;
  f.blocks = 1;
  f.team = has_parts ? LOT_LONG : LOT_DECLINED;
  return f;
}

struct kernel_shape subbatch_shape_of(const struct subbatch_form *form)
{
  return (struct kernel_shape){.d = form->d,
                               .k = form->k,
                               .team = form->team,
                               .held = form->held,
                               .alone =
                                   arrow_is_alone(form->k, form->team, form->mma, form->blocks),
                               .rounds = form->rounds,
                               .mma = form->mma,
                               .top_k = 1};
}

int subbatch_recipes(const struct subbatch_form *form, struct kernel_recipe *recipes)
{
  static const enum kernel_name lanes[] = {KERNEL_ARROW_LANES}, whole[] = {KERNEL_ARROW},
                                parts[] = {KERNEL_ARROW_SUM, KERNEL_ARROW_STEP,
                                           KERNEL_ARROW_BORDER};
  struct kernel_shape shape = subbatch_shape_of(form);
  int is_long = form->team == LOT_LONG, count = is_long ? LENGTH(parts) : 1;
  const enum kernel_name *names = is_long ? parts : form->rounds ? lanes : whole;
  for (int i = 0; i < count; i++) kernel_recipe(names[i], &shape, &recipes[i]);
  return count;
}

gidx subbatch_reals_in(const struct arrow_system *a)
{
  gidx d = a->d, k = a->k;
  return ceil_div(a->n * (d * d + d * k + d) + k * k + k, LOT_LINE) * LOT_LINE;
}

gidx subbatch_reals_out(const struct arrow_system *a)
{
  return ceil_div(a->n * a->d + a->k, 2) * 2;
}

gidx subbatch_segments(const struct arrow_system *a)
{
  return ceil_div(a->n, ARROW_SEGMENT_ROWS);
}

gidx subbatch_pieces(const struct arrow_system *a)
{
  return ceil_div(a->n, arrow_step_rows(a->d, a->k));
}

struct subbatch_need subbatch_need_of(const struct cuda_state *s, const struct arrow_system *a)
{
  struct subbatch_need need = {form_of(s, a), subbatch_reals_in(a), subbatch_reals_out(a), 0};
  if (need.form.team == LOT_LONG) need.units = subbatch_segments(a) + subbatch_pieces(a);
  return need;
}

struct subbatch_size subbatch_with(struct subbatch_size size, const struct subbatch_need *need)
{
  size.in += need->in;
  size.out += need->out;
  size.units += need->units;
  size.systems++;
  return size;
}

struct subbatch_offsets subbatch_offsets_of(const struct subbatch_size *z)
{
  struct subbatch_offsets at;
  at.atoms = z->in * (gidx)sizeof(real);
  at.places = at.atoms + z->systems * (gidx)sizeof(struct arrow_atom);
  at.units =
      at.places +
      (z->is_fetched || z->is_returned ? z->systems * (gidx)sizeof(struct arrow_pointers) : 0);
  at.found = at.units + z->units * (gidx)sizeof(struct arrow_unit);
  gidx found_end = at.found + z->systems * (gidx)sizeof(struct arrow_found);
  at.out = ceil_div(found_end, 16) * 16;
  at.end = at.out + z->out * (gidx)sizeof(real);
  at.host_begin = z->is_fetched ? at.atoms : 0;
  at.host_end = z->is_returned ? found_end : at.end;
  return at;
}

struct subbatch_room subbatch_room_of(const struct subbatch_size *size)
{
  struct subbatch_offsets at = subbatch_offsets_of(size);
  return (struct subbatch_room){at.end, at.host_end - at.host_begin};
}
