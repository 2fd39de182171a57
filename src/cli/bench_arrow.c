/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic systems in memory, larger than the caches.  Each repeat measures one after another, and
 * medians are shown. */
#include "cli/bench_arrow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "cli/bench_median.h"
#include "device/arrow.h"
#include "model/synth_systems.h"

#define AT(member) offsetof(struct bench_arrow_options, member)

const struct option_row bench_arrow_rows[BENCH_ARROW_ROWS] = {
    {"system-rows", OPTION_LONG, AT(system_rows), "256", 1, 1 << 24, NULL, "ROWS",
     "rows of a system"},
    {"frame", OPTION_INT, AT(frame), "2", 1, ARROW_MAX_D, NULL, "SIZE", "size of the row blocks"},
    {"border", OPTION_INT, AT(border), "0", 0, ARROW_MAX_BORDER, NULL, "SIZE",
     "size of the border; 0: 4, 8, 16 and 32 in turn"},
    {"megabytes", OPTION_INT, AT(megabytes), "256", 1, 1 << 20, NULL, "MB",
     "of systems, several times the caches"},
};

enum { MAX_REPEATS = 1000, PETSC_SYSTEMS = 200 };

/* The systems that are measured, and where their steps go. */
struct bench_systems {
  struct arena arena;
  struct systems_shape shape;
  struct systems_block block;
  struct arrow_item *items;
  real *steps, *work;
  struct device device;
};

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

/* Make the systems with a border of k. */
static int systems_open(struct bench_systems *b, const struct bench_arrow_options *o, idx k)
{
  double one = 8. * ((double)o->system_rows * o->frame * (o->frame + k + 1) + (double)k * (k + 1));
  struct synthetic_systems made = {.seed = 1, .rows = o->system_rows, .d = o->frame, .k = k};
  made.count = (gidx)(1e6 * o->megabytes / one) + 1;
  TRY(systems_alloc(&b->shape, made.count, &b->arena));
  synthetic_shape(&made, &b->shape);
  TRY(systems_measure(&b->shape, "bench"));
  const struct systems_shape *s = &b->shape;
  gidx n = s->count;
  b->block = (struct systems_block){.count = n};
  TRY(arena_alloc(&b->arena, &b->block.h, s->h[n], sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->block.b, s->b[n], sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->block.g, s->g[n], sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->block.c, s->c[n], sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->block.g_b, s->border[n], sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->steps, s->g[n] + s->border[n], sizeof(real)));
  TRY(arena_alloc(&b->arena, &b->items, n, sizeof *b->items));
  TRY(arena_alloc(&b->arena, &b->work, peer_arrow_work(o->frame, k, o->system_rows), sizeof(real)));
  for (gidx a = 0; a < n; a++) synthetic_system(&made, s, a, &b->block);
  items_make(b);
  return OK;
}

/* The lower bound: every number is read once, every step written once, nothing computed. */
static double memory_time(const struct bench_systems *b)
{
  typedef double pair __attribute__((vector_size(16)));
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

/* LAPACKE's seconds for all systems; -1: there is none. */
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

/* PETSc's seconds a row for the first systems; -1: there is no PETSc. */
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

/* *seconds <- ours for all systems. */
static int solve_time(struct bench_systems *b, double *seconds)
{
  struct arrow_job job = {.items = b->items, .count = b->shape.count};
  double begun = log_seconds();
  TRY(device_arrow(&b->device, &job));
  *seconds = log_seconds() - begun;
  for (gidx a = 0; a < job.count; a++)
    CHECK(job.items[a].outcome.status == ARROW_OK, ERR_INTERNAL, "system %lld failed",
          (long long)a);
  return OK;
}

/* Print a peer's rate and how much slower it is, from its and our seconds a row. */
static void peer_print(double theirs, double ours)
{
  if (theirs > 0)
    printf(" %9.2f %8.1fx", 1e-6 / theirs, theirs / ours);
  else
    printf(" %9s %9s", "none", "");
}

static int border_measure(const struct bench_arrow_options *o, idx k, int repeats, int threads,
                          const char *variant)
{
  static double solve[MAX_REPEATS], memory[MAX_REPEATS], peer[MAX_REPEATS], petsc[MAX_REPEATS];
  struct bench_systems b = {0};
  struct device_options options = {.p = 1, .d = 1, .threads = threads, .variant = variant};
  TRY(device_open(&b.device, &options));
  TRY(systems_open(&b, o, k));
  TRY(solve_time(&b, solve));
  for (int r = 0; r < repeats; r++) {
    petsc[r] = petsc_time(&b);
    memory[r] = memory_time(&b);
    peer[r] = peer_time(&b);
    TRY(solve_time(&b, &solve[r]));
  }
  const struct systems_shape *s = &b.shape;
  double rows = (double)s->row[s->count];
  double bytes = 8. * ((double)(s->h[s->count] + s->b[s->count]) + 2. * (double)s->g[s->count]);
  double seconds = median(solve, repeats), floor = median(memory, repeats);
  double peer_seconds = median(peer, repeats);
  printf("%6d %9lld %11.1f %9.2f %10.2f %9.1f%%", k, (long long)s->count, 1e-6 * rows / seconds,
         1e-9 * bytes / seconds, 1e-9 * bytes / floor, 100 * floor / seconds);
  peer_print(peer_seconds / rows, seconds / rows);
  peer_print(median(petsc, repeats), seconds / rows);
  printf("\n");
  device_close(&b.device);
  arena_free(&b.arena);
  return OK;
}

int bench_arrow(const struct bench_arrow_options *o, int repeats, int threads, const char *variant)
{
  static const idx borders[] = {4, 8, 16, 32};
  TRY(device_check_fma());
  printf("d=%d n=%lld threads=%d, medians of %d runs; peers and memory on one thread\n", o->frame,
         (long long)o->system_rows, threads, repeats);
  printf("%6s %9s %11s %9s %10s %10s %9s %9s %9s %9s\n", "border", "systems", "Mrows/s", "GB/s",
         "memory", "of memory", "LAPACKE", "faster", "PETSc", "faster");
  for (int i = 0; i < (o->border ? 1 : LENGTH(borders)); i++)
    TRY(border_measure(o, o->border ? o->border : borders[i], repeats, threads, variant));
  peer_petsc_close();
  return OK;
}
