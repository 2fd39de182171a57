/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: an arrow system is solved on an H100 in the expected form: by a warp, a block or a
 * cluster, with factors in registers or not, or by three kernels.  Shared memory has room for the
 * blocks that a form counts on.  An older GPU uses no form that needs architecture 9.0.  Needs no
 * GPU. */
#include <string.h>

#include "base/num.h"
#include "device/cuda/arrow_size.h"
#include "tap.h"

/* Bytes of shared memory: the most that a block may use; all of a multiprocessor; reserved for each
 * block. */
enum { BLOCK_MOST = 227 << 10, ALL = 228 << 10, RESERVED = 1 << 10 };

static struct cuda_state state;

static struct subbatch_form form_of(int architecture, idx d, idx k, gidx n)
{
  const struct arrow_system system = {.d = d, .k = k, .n = n};
  state.architecture = architecture;
  state.shared = BLOCK_MOST;
  return subbatch_need_of(&state, &system).form;
}

static int bytes_of(const struct subbatch_form *f, gidx n)
{
  struct arrow_layout layout =
      arrow_layout_of(f->d, f->k, f->team, f->mma, f->held, f->blocks, (int)n);
  return arrow_shared_bytes(&layout, f->team);
}

static void check_choices(void)
{
  static const struct {
    idx d, k;
    gidx n;
    int team, blocks, held, rounds;
  } want[] = {
      {1, 1, 200, 32, 1, 0, 7},    {1, 4, 200, 32, 1, 0, 7},    {1, 4, 225, 32, 1, 0, 0},
      {2, 4, 20, 32, 1, 0, 0},     {2, 4, 256, 128, 1, 0, 0},   {2, 8, 256, 128, 1, 2, 0},
      {2, 8, 257, 128, 2, 2, 0},   {2, 5, 120, 128, 1, 2, 0},   {1, 8, 256, 128, 1, 0, 0},
      {2, 8, 512, 128, 2, 2, 0},   {2, 8, 513, 256, 1, 0, 0},   {2, 8, 2048, 256, 4, 0, 0},
      {2, 8, 2049, 256, 4, 0, 0},  {2, 8, 2500, 0, 1, 0, 0},    {2, 8, 5000, 0, 1, 0, 0},
      {2, 9, 2000, 256, 8, 0, 0},  {2, 9, 2049, 0, 1, 0, 0},    {2, 10, 256, 128, 1, 0, 0},
      {2, 11, 256, 128, 1, 2, 0},  {2, 16, 20, 32, 1, 0, 0},    {2, 16, 256, 128, 1, 2, 0},
      {2, 16, 257, 128, 2, 2, 0},  {2, 16, 500, 128, 2, 2, 0},  {2, 16, 2048, 128, 8, 2, 0},
      {2, 16, 2049, 0, 1, 0, 0},   {2, 24, 256, 128, 2, 1, 0},  {2, 31, 256, 128, 2, 1, 0},
      {2, 32, 100, 256, 1, 0, 0},  {2, 32, 256, 128, 2, 1, 0},  {2, 32, 500, 128, 4, 1, 0},
      {1, 32, 1000, 128, 8, 1, 0}, {2, 32, 1024, 128, 8, 1, 0}, {2, 32, 1025, 256, 8, 0, 0},
      {2, 32, 20000, 0, 1, 0, 0},  {2, 33, 256, 256, 2, 0, 0},  {3, 16, 256, 256, 2, 0, 0},
      {2, 40, 256, 256, 4, 0, 0},  {8, 40, 100, 256, 8, 0, 0},  {9, 1, 10, -1, 1, 0, 0},
      {2, 41, 10, -1, 1, 0, 0},
  };
  claim_begin("arrow systems on an H100 have the forms of the table");
  for (int i = 0; i < LENGTH(want); i++) {
    struct subbatch_form f = form_of(90, want[i].d, want[i].k, want[i].n);
    ok(f.team == want[i].team && f.blocks == want[i].blocks && f.held == want[i].held &&
           f.rounds == want[i].rounds,
       "d = %d, k = %d, %lld rows: team %d, blocks %d, held %d, rounds %d", f.d, f.k,
       (long long)want[i].n, f.team, f.blocks, f.held, f.rounds);
  }
  claim_end();
}

/* Forms that hold factors are those of arrow_resident(), and only on architecture 9.0.  A
 * multiprocessor has room for arrow_resident_blocks() of their blocks, for ARROW_TINY_BLOCKS blocks
 * if arrow_is_tiny(), and for two blocks of any other form. */
static void check_room(void)
{
  static const gidx rows[] = {1, 64, 127, 200, 256, 257, 500, 512, 1000, 1024, 2000, 2048, 5000};
  int held = 0;
  claim_begin("shared memory has room for the blocks that a form counts on");
  for (idx d = 1; d <= ARROW_MAX_FRAME; d++)
    for (idx k = 0; k <= ARROW_MAX_COLUMNS; k++)
      for (int i = 0; i < LENGTH(rows); i++) {
        struct subbatch_form f = form_of(90, d, k, rows[i]), old = form_of(80, d, k, rows[i]);
        ok(!f.held || f.held == arrow_resident(d, k), "d = %d, k = %d, %lld rows: held %d", d, k,
           (long long)rows[i], f.held);
        ok(!old.held && !old.mma && (old.team <= 0 || old.blocks == 1),
           "d = %d, k = %d, %lld rows: a form of 9.0 on 8.0", d, k, (long long)rows[i]);
        held += f.held > 0;
        if (f.rounds || f.team <= 0) continue;
        int blocks = f.held ? arrow_resident_blocks(k) : 2, bytes = bytes_of(&f, rows[i]);
        ok(blocks * (bytes + RESERVED) <= ALL, "d = %d, k = %d, %lld rows: %d bytes, %d times", d,
           k, (long long)rows[i], bytes, blocks);
      }
  ok(held > 100, "only %d forms hold factors", held);
  for (idx k = 1; k <= 4; k++) {
    struct subbatch_form f = form_of(90, 2, k, 256);
    int bytes = bytes_of(&f, 256);
    int alone = arrow_is_alone(f.k, f.team, f.mma, f.blocks);
    ok(arrow_is_tiny(f.d, f.k, alone) && ARROW_TINY_BLOCKS * (bytes + RESERVED) <= ALL,
       "d = 2, k = %d, 256 rows: %d bytes, %d times", k, bytes, ARROW_TINY_BLOCKS);
  }
  claim_end();
}

int main(void)
{
  check_choices();
  check_room();
  return done_testing();
}
