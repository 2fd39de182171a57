/* SPDX-License-Identifier: BSD-3-Clause
 * Times synthetic arrow systems and prints medians.  By default the systems are larger than the
 * caches.  On a CPU each repeat measures PETSc, memory, LAPACKE and our solver, one after another.
 * Each rank solves its share of the systems.  With several ranks each rank has its own GPU, and the
 * time is that of the slowest rank. */
#include "bench/arrow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "bench/peer.h"
#include "device/arrow.h"
#include "device/buffer.h"
#include "model/synth_systems.h"

#define AT(member) offsetof(struct bench_arrow_options, member)

const struct option_row bench_arrow_rows[BENCH_ARROW_ROWS] = {
    {"system-rows", OPTION_LONG, AT(system_rows), "256", 1, 1 << 24, NULL, "ROWS",
     "number of rows of a system", .effect = OPTION_BITS},
    {"lengths", OPTION_CHOICE, AT(lengths), "fixed", 0, 0, "fixed|uniform|power", NULL,
     "number of rows of each system. fixed: --system-rows; uniform: 0 to twice --system-rows; "
     "power: 1 to 16 times --system-rows, with equally many systems in each octave",
     .effect = OPTION_BITS},
    {"systems", OPTION_LONG, AT(systems), "0", 0, 1 << 24, NULL, "COUNT",
     "number of systems; 0: as many as have --megabytes", .effect = OPTION_BITS},
    {"frame", OPTION_INT, AT(frame), "2", 1, ARROW_MAX_D, NULL, "SIZE", "size of the row blocks",
     .effect = OPTION_BITS},
    {"border", OPTION_INT, AT(border), "0", 0, ARROW_MAX_BORDER, NULL, "SIZE",
     "size of the border; 0: 4, 8, 16 and 32 in turn", .effect = OPTION_BITS},
    {"megabytes", OPTION_INT, AT(megabytes), "256", 1, 1 << 20, NULL, "MB",
     "size of all systems, which should be several times that of the caches",
     .effect = OPTION_BITS},
};

enum { MAX_REPEATS = 1000, PETSC_SYSTEMS = 200 };

/* The systems that this rank measures, and memory for their steps. */
struct bench_systems {
  struct arena arena;
  struct systems_shape shape;
  struct systems_block block;
  struct arrow_item *items;
  real *numbers, *steps, *work; /* numbers of the systems; their steps; work space of LAPACKE */
  struct device device;
  struct comm *c;
  double *ranks; /* [size] one value per rank */
};

static enum lengths lengths_of(const struct bench_arrow_options *o)
{
  return !strcmp(o->lengths, "fixed")     ? LENGTHS_FIXED
         : !strcmp(o->lengths, "uniform") ? LENGTHS_UNIFORM
                                          : LENGTHS_POWER;
}

static void items_make(struct bench_systems *b)
{
  const struct systems_shape *s = &b->shape;
  real *to = b->steps;
  for (gidx a = 0; a < s->count; a++) {
    struct arrow_item *item = &b->items[a];
    item->system = (struct arrow_system){.d = s->d[a],
                                         .k = s->k[a],
                                         .n = s->row[a + 1] - s->row[a],
                                         .h = b->block.h + s->h[a],
                                         .b = b->block.b + s->b[a],
                                         .g = b->block.g + s->g[a],
                                         .c = b->block.c + s->c[a],
                                         .g_b = b->block.g_b + s->border[a]};
    item->step_t = to;
    to += s->g[a + 1] - s->g[a];
    item->step_b = to;
    to += s->border[a + 1] - s->border[a];
  }
}

/* Make this rank's share of the systems with a border of k.  The numbers of all systems are in one
 * page-locked array, the steps in another, so that a GPU can copy each array at once. */
static int systems_open(struct bench_systems *b, const struct bench_arrow_options *o, idx k)
{
  double one = 8. * ((double)o->system_rows * o->frame * (o->frame + k + 1) + (double)k * (k + 1));
  gidx count = o->systems ? o->systems : (gidx)(1e6 * o->megabytes / one) + 1, longest = 0;
  gidx rank = b->c->rank, ranks = b->c->size;
  CHECK(count >= ranks, ERR_USAGE, "%lld systems are too few for %lld ranks: give more --systems",
        (long long)count, (long long)ranks);
  struct synthetic_systems made = {.seed = 1 + (uint64_t)rank,
                                   .count = count * (rank + 1) / ranks - count * rank / ranks,
                                   .rows = o->system_rows,
                                   .d = o->frame,
                                   .k = k,
                                   .lengths = lengths_of(o)};
  TRY(systems_alloc(&b->shape, made.count, &b->arena));
  synthetic_shape(&made, &b->shape);
  TRY(systems_measure(&b->shape, "bench"));
  const struct systems_shape *s = &b->shape;
  gidx n = s->count;
  for (gidx a = 0; a < n; a++) longest = imax(longest, s->row[a + 1] - s->row[a]);
  TRY(arena_alloc(&b->arena, &b->numbers, systems_reals(s, 0, n), sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->steps, s->g[n] + s->border[n], sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->items, n, sizeof *b->items));
  TRY(arena_alloc(&b->arena, &b->work, peer_arrow_work(o->frame, k, longest), sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->ranks, ranks, sizeof *b->ranks));
  b->block = systems_block_at(s, 0, n, b->numbers);
  for (gidx a = 0; a < n; a++) synthetic_system(&made, s, a, &b->block);
  host_pin(&b->device, b->numbers, systems_reals(s, 0, n) * (gidx)sizeof(real));
  host_pin(&b->device, b->steps, (s->g[n] + s->border[n]) * (gidx)sizeof(real));
  items_make(b);
  return OK;
}

static void systems_close(struct bench_systems *b)
{
  host_unpin(&b->device, b->numbers);
  host_unpin(&b->device, b->steps);
  device_close(&b->device);
  arena_free(&b->arena);
}

/* Time the lower bound: read H, B and g of all systems once, and write all steps of rows once.  The
 * numbers are only added up, so that the compiler keeps the reads. */
static double memory_time(const struct bench_systems *b)
{
  typedef double pair __attribute__((vector_size(16), aligned(8)));
  static volatile real kept;
  const struct systems_shape *s = &b->shape;
  const real *in[] = {b->block.h, b->block.b, b->block.g};
  gidx counts[] = {s->h[s->count], s->b[s->count], s->g[s->count]};
  double begun = log_seconds();
  for (int part = 0; part < LENGTH(in); part++) {
    const pair *x = (const pair *)(const void *)in[part];
    pair sum[4] = {{0}};
    for (gidx i = 0; i + 4 <= counts[part] / 2; i += 4)
      for (int j = 0; j < 4; j++) sum[j] += x[i + j];
    kept = sum[0][0] + sum[1][0] + sum[2][1] + sum[3][1];
  }
  for (gidx i = 0; i < s->g[s->count]; i++) b->steps[i] = kept;
  return log_seconds() - begun;
}

/* Seconds of LAPACKE for all systems of this rank; -1: it is not installed. */
static double peer_time(const struct bench_systems *b)
{
  double seconds = 0;
  for (gidx a = 0; a < b->shape.count && seconds >= 0; a++) {
    const struct arrow_item *item = &b->items[a];
    double one = peer_arrow(&item->system, item->step_t, item->step_b, b->work);
    seconds = one < 0 ? -1 : seconds + one;
  }
  return seconds;
}

/* Seconds per row of PETSc for the first PETSC_SYSTEMS systems; -1: peer_petsc() failed. */
static double petsc_time(const struct bench_systems *b)
{
  double seconds = 0, rows = 0;
  for (gidx a = 0; a < b->shape.count && a < PETSC_SYSTEMS; a++) {
    const struct arrow_item *item = &b->items[a];
    double one = peer_petsc(&item->system, item->step_t, item->step_b);
    if (one < 0) return -1;
    seconds += one;
    rows += (double)item->system.n;
  }
  return seconds / rows;
}

static int outcomes_check(const struct bench_systems *b)
{
  for (gidx a = 0; a < b->shape.count; a++)
    CHECK(b->items[a].outcome.status == ARROW_OK, ERR_INTERNAL, "system %lld failed", (long long)a);
  return OK;
}

/* *seconds <- our time for all systems; kernels[repeats] <- times of this rank's GPU kernels alone.
 * Collective. */
static int solve_time(struct bench_systems *b, double *seconds, double *kernels, int repeats)
{
  struct arrow_job job = {
      .items = b->items, .count = b->shape.count, .repeats = repeats, .seconds = kernels};
  TRY(comm_agree(b->c, OK)); /* all ranks begin together */
  double begun = log_seconds();
  TRY(comm_agree(b->c, device_arrow(&b->device, &job)));
  *seconds = log_seconds() - begun;
  return comm_agree(b->c, outcomes_check(b));
}

/* *x <- the sum of *x over all ranks.  Collective. */
static int ranks_sum(struct bench_systems *b, double *x)
{
  TRY(comm_allgather_real(b->c, *x, b->ranks));
  *x = 0;
  for (int r = 0; r < b->c->size; r++) *x += b->ranks[r];
  return OK;
}

/* *x <- the largest *x of all ranks.  Collective. */
static int ranks_largest(struct bench_systems *b, double *x)
{
  TRY(comm_allgather_real(b->c, *x, b->ranks));
  for (int r = 0; r < b->c->size; r++) *x = fmax(*x, b->ranks[r]);
  return OK;
}

/* Add the rate of a peer, whose time is `theirs` seconds per row; -1 gives null. */
static void peer_json(struct json *j, const char *name, double theirs)
{
  json_real(j, name, theirs > 0 ? 1e-6 / theirs : nan_canonical());
}

/* Print the rate of a peer, and how many times slower than ours it is.  Both arguments are seconds
 * per row; theirs is -1 if there is no peer. */
static void peer_print(double theirs, double ours)
{
  if (theirs > 0)
    printf(" %9.2f %8.1fx", 1e-6 / theirs, theirs / ours);
  else
    printf(" %9s %9s", "none", "");
}

/* The amount of work of all ranks.  declined: systems too large for the kernels of a GPU.  bytes:
 * of H, B and g, read once, and of the steps of rows, written once. */
struct amount {
  gidx systems, rows, declined;
  double bytes;
};
static int amount_of(const struct bench_systems *b, struct amount *all)
{
  const struct systems_shape *s = &b->shape;
  gidx n = s->count, reals = s->h[n] + s->b[n] + 2 * s->g[n];
  gidx counts[] = {n, s->row[n], b->device.counts.declined, reals};
  TRY(comm_sum(b->c, counts, LENGTH(counts)));
  *all = (struct amount){counts[0], counts[1], counts[2], 8. * (double)counts[3]};
  return OK;
}

/* Begin a line.  seconds: the time to solve all systems with a border of k once. */
static void line_begin(struct json *j, idx k, const struct amount *all, double seconds)
{
  json_object(j, NULL);
  json_long(j, "border", k);
  json_long(j, "systems", all->systems);
  json_long(j, "rows", all->rows);
  json_real(j, "seconds", seconds);
  json_real(j, "mrows", 1e-6 * (double)all->rows / seconds);
  json_real(j, "gbs", 1e-9 * all->bytes / seconds);
}

static void gpu_line(const struct bench_common *common, idx k, const struct amount *all,
                     double seconds, double copies, double with_copies)
{
  struct json *j = common->json;
  if (j) {
    line_begin(j, k, all, seconds);
    json_real(j, "copies_gbs", 1e-9 * copies);
    json_real(j, "with_copies", with_copies);
    json_long(j, "declined", all->declined);
    json_end(j);
  } else
    printf("%6d %9lld %11.1f %10.4f %9.1f %10.1f %9.1f%% %10.2f %9lld\n", k,
           (long long)all->systems, 1e-6 * (double)all->rows / seconds, 1e3 * seconds,
           1e-9 * all->bytes / seconds, 1e-9 * copies, 100 * all->bytes / seconds / copies,
           1e3 * with_copies, (long long)all->declined);
}

static int gpu_open(struct bench_systems *b, const struct bench_arrow_options *o, idx k,
                    const struct device_options *options)
{
  TRY(device_open(&b->device, options));
  return systems_open(b, o, k);
}

/* Measure the GPUs of all ranks at the same time.  Each rank times its own kernels; the largest
 * time of a repeat counts. */
static int gpu_measure(const struct bench_arrow_options *o, idx k,
                       const struct bench_common *common, struct comm *c)
{
  static double whole[MAX_REPEATS], kernels[MAX_REPEATS];
  struct bench_systems b = {.c = c};
  struct device_options options = bench_device(common, 1, c->local_rank);
  struct amount all;
  double copies;
  TRY(comm_agree(c, gpu_open(&b, o, k, &options)));
  TRY(comm_agree(c, device_copy_rate(&b.device, &copies)));
  TRY(ranks_sum(&b, &copies));
  TRY(solve_time(&b, whole, kernels, common->repeats)); /* compiles */
  TRY(solve_time(&b, whole, kernels, common->repeats));
  for (int r = 0; r < common->repeats; r++) {
    TRY(ranks_largest(&b, &kernels[r]));
    TRY(solve_time(&b, &whole[r], NULL, 0));
  }
  TRY(amount_of(&b, &all));
  double seconds = median(kernels, common->repeats), with = median(whole, common->repeats);
  if (c->rank == 0) gpu_line(common, k, &all, seconds, copies, with);
  systems_close(&b);
  return OK;
}

static int border_measure(const struct bench_arrow_options *o, idx k,
                          const struct bench_common *common, struct comm *c)
{
  static double solve[MAX_REPEATS], memory[MAX_REPEATS], peer[MAX_REPEATS], petsc[MAX_REPEATS];
  struct bench_systems b = {.c = c};
  struct device_options options = bench_device(common, 1, c->local_rank);
  struct amount all;
  int repeats = common->repeats;
  TRY(device_open(&b.device, &options));
  TRY(systems_open(&b, o, k));
  TRY(solve_time(&b, solve, NULL, 0));
  for (int r = 0; r < repeats; r++) {
    petsc[r] = petsc_time(&b);
    memory[r] = memory_time(&b);
    peer[r] = peer_time(&b);
    TRY(solve_time(&b, &solve[r], NULL, 0));
  }
  TRY(amount_of(&b, &all));
  double rows = (double)all.rows, seconds = median(solve, repeats);
  double floor = median(memory, repeats);
  double lapack = median(peer, repeats) / rows, other = median(petsc, repeats);
  struct json *j = common->json;
  if (j) {
    line_begin(j, k, &all, seconds);
    json_real(j, "memory_gbs", 1e-9 * all.bytes / floor);
    peer_json(j, "lapacke_mrows", lapack);
    peer_json(j, "petsc_mrows", other);
    json_end(j);
  } else {
    printf("%6d %9lld %11.1f %9.2f %10.2f %9.1f%%", k, (long long)all.systems,
           1e-6 * rows / seconds, 1e-9 * all.bytes / seconds, 1e-9 * all.bytes / floor,
           100 * floor / seconds);
    peer_print(lapack, seconds / rows);
    peer_print(other, seconds / rows);
    printf("\n");
  }
  systems_close(&b);
  return OK;
}

static struct bench_systems systems; /* between bench_arrow_begin() and bench_arrow_end() */

int bench_arrow_begin(const struct bench_arrow_options *o, const struct bench_common *common,
                      struct comm *c, double *bytes)
{
  struct bench_systems *b = &systems;
  *b = (struct bench_systems){.c = c};
  struct device_options options = bench_device(common, 1, c->local_rank);
  TRY(device_open(&b->device, &options));
  TRY(systems_open(b, o, o->border));
  const struct systems_shape *s = &b->shape;
  *bytes = 8 * (double)(systems_reals(s, 0, s->count) + s->g[s->count] + s->border[s->count]);
  return OK;
}

int bench_arrow_solve(void)
{
  struct arrow_job job = {.items = systems.items, .count = systems.shape.count};
  return device_arrow(&systems.device, &job);
}

void bench_arrow_end(void)
{
  systems_close(&systems);
}

static void title_json(const struct bench_arrow_options *o, struct json *j, int ranks)
{
  json_long(j, "ranks", ranks);
  json_long(j, "frame", o->frame);
  json_long(j, "system_rows", o->system_rows);
  json_text(j, "lengths", o->lengths);
  json_array(j, "lines");
}

static void title_print(const struct bench_arrow_options *o, const struct bench_common *common,
                        int ranks)
{
  printf("d=%d n=%lld %s, medians of %d runs; ", o->frame, (long long)o->system_rows, o->lengths,
         common->repeats);
  if (strcmp(common->device, "cuda") == 0) {
    printf("ranks=%d threads=%d; systems are on the GPU, except in `with copies`\n", ranks,
           common->threads);
    printf("%6s %9s %11s %10s %9s %10s %10s %10s %9s\n", "border", "systems", "Mrows/s", "ms",
           "GB/s", "copies", "of copies", "with copies", "declined");
    return;
  }
  printf("%d threads; the peers and `memory` run on one thread\n", common->threads);
  printf("%6s %9s %11s %9s %10s %10s %9s %9s %9s %9s\n", "border", "systems", "Mrows/s", "GB/s",
         "memory", "of memory", "LAPACKE", "faster", "PETSc", "faster");
}

int bench_arrow(const struct bench_arrow_options *o, const struct bench_common *common,
                struct comm *c)
{
  static const idx borders[] = {4, 8, 16, 32};
  int gpu = strcmp(common->device, "cuda") == 0;
  TRY(device_check_fma());
  if (common->json)
    title_json(o, common->json, c->size);
  else if (c->rank == 0)
    title_print(o, common, c->size);
  for (int i = 0; i < (o->border ? 1 : LENGTH(borders)); i++) {
    idx k = o->border ? o->border : borders[i];
    TRY(gpu ? gpu_measure(o, k, common, c) : border_measure(o, k, common, c));
  }
  if (common->json) json_end(common->json);
  peer_petsc_close();
  return OK;
}
