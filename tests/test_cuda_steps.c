/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the steps of all atoms on a GPU have the bits of their reference. */
#include "device_steps.h"
#include "step_types.h"

/* So many columns that a block holds few rows in shared memory.  Some rows of an atom are only in
 * sight, not held; the head of step_types.h explains both words. */
enum { FAR_COLUMNS = 1780, FAR_DIRECTIONS = 2 };

/* On an H100, whose blocks have 227 KB of shared memory, the shape has such rows. */
static void check_far(void)
{
  enum { SHARED = 227 << 10, ROWS = 150, SUM_BLOCKS = 2 };
  claim_begin("some rows of the widest shape do not fit in shared memory, and are in sight");
  int capacity = step_capacity(1, FAR_DIRECTIONS, FAR_COLUMNS, SHARED);
  ok(STEP_CLUSTER * capacity < ROWS, "%d rows of a block fit", capacity);
  ok(step_resident(1, FAR_DIRECTIONS, FAR_COLUMNS, SHARED, ROWS) >= (capacity + 1) / 2,
     "%d rows of a block are held", step_resident(1, FAR_DIRECTIONS, FAR_COLUMNS, SHARED, ROWS));
  ok(step_in_sight(1, FAR_DIRECTIONS, FAR_COLUMNS, SUM_BLOCKS, 0, STEP_CLUSTER),
     "rows that do not fit are in sight");
  claim_end();
}

/* Reduce rows and atoms: fewer atoms have fewer classes, and a launch for a class takes seconds
 * under tools that watch every access. */
static struct steps_shape steps_smaller(struct steps_shape z)
{
  if (z.p == FAR_COLUMNS) return z;
  z.n = (idx)imin(z.n, 16);
  z.k = (idx)imin(z.k, z.s + 1);
  return z;
}

static void check_steps(const struct how *how)
{
  static const struct steps_shape shapes[] = {
      {1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
      {1, 1, 1, 1, 5, 2, 1, 0, 0.1, 0},
      {40, 3, 7, 1, 8, 1, 0, 0, 0.1, 0},
      {40, 3, 7, 1, 8, 4, 1, 0, 0, 4090},
      {90, 2, 9, 2, 70, 4, 0, 0, 0.1, 0},
      {60, 3, 9, 3, 7, 5, 1, 0, 0.01, 100},
      {50, 2, 5, 1, 67, 3, 2, 0, 0.1, 0},
      {64, 3, 8, 1, 9, 2, 3, 0, 0, 0},
      {64, 3, 8, 2, 9, 2, 3, 0, 0.5, 0},
      {80, 3, 9, 1, 16, 2, 1, 1, 0.1, 0},
      {9000, 2, 30, 1, 4, 3, 1, 0, 0.1, 4000},
      {30, 2, 4, 8, 45, 2, 1, 0, 0.1, 0},
      {300, 1, 2, 1, FAR_COLUMNS, FAR_DIRECTIONS, 1, 0, 0.1, 4000},
      {40, 3, 7, 1, 8, 4, 4, 0, 0, 4090},
      {60, 3, 9, 3, 7, 5, 4, 0, 0.01, 100},
      /* Large shapes, left out if is_small(): */
      {33000, 3, 25, 1, 3, 2, 1, 0, 0.1, 0},
      {5000, 4, 200, 1, 96, 4, 0, 0, 0.1, 0},
      {5000, 4, 60, 1, 96, 1, 1, 1, 0.1, 0},
      {3000, 2, 10, 1, 1024, 1, 0, 0, 0.1, 2000},
      {3000, 2, 12, 2, 500, 4, 1, 0, 0.1, 0},
      {3000, 2, 10, 1, 1023, 2, 1, 0, 0.1, 0},
      {9000, 2, 60, 2, 40, 3, 1, 0, 0.1, 4000},
      {3000, 2, 8, 2, 500, 4, 1, 0, 0.1, 4000},
      {6000, 1, 2, 8, 100, 2, 1, 0, 0.1, 0},
      {40000, 1, 3, 1, 100, 2, 1, 0, 0.1, 0},     /* a block has parts of several sum blocks */
      {9000, 2, 40, 1, 24, 3, 1, 0, 0.1, 61000},  /* the 16th sum block begins among these */
      {9000, 2, 40, 1, 24, 3, 1, 0, 0.1, 126000}, /* ... the 32nd */
      {140000, 1, 3, 1, 2, 1, 1, 0, 0.1, 0},
      {70000, 1, 3, 1, 64, 2, 1, 0, 0.1, 0},
      {70000, 1, 2, 2, 33, 2, 1, 0, 0.1, 3000},
      {20000, 8, 400, 1, 64, 1, 0, 0, 0.1, 0},
      {3000, 2, 900, 1, 9, 1, 1, 1, 0.1, 4000}, /* a block per atom */
  };
  enum { SMALL_SHAPES = 15 };
  claim_begin("%s: a sweep of steps has the reference's bits", how->kind);
  const char *one = getenv("SHAPE"); /* the number of the only shape, for the slowest tools */
  for (int i = 0; i < (is_small() ? SMALL_SHAPES : LENGTH(shapes)); i++)
    if (!one || !*one || atoi(one) == i)
      steps_run(is_small() ? steps_smaller(shapes[i]) : shapes[i], how);
  claim_end();
}

int main(void)
{
  check_far();
  if (!gpu_present()) return done_testing();
  check_steps(&how_cuda);
  return done_testing();
}
