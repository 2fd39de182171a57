/* SPDX-License-Identifier: BSD-3-Clause
 * One file, systems.h5. */
#include "cli/synth_systems.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "io/systems.h"
#include "stage/synth_systems.h"

#define AT(member) offsetof(struct systems_options, member)

const struct option_row systems_rows[SYSTEMS_ROWS] = {
    {"systems", OPTION_LONG, AT(systems), "0", 0, 1 << 30, NULL, "COUNT",
     "make so many arrow systems instead of rows and a dictionary; --frame is the size of their "
     "row blocks"},
    {"system-rows", OPTION_LONG, AT(system_rows), "256", 0, 1 << 28, NULL, "COUNT",
     "rows of a system"},
    {"lengths", OPTION_CHOICE, AT(lengths), "fixed", 0, 0, "fixed|uniform|power", NULL,
     "rows of each: as said, 0 to twice that, or 1 to 16 times that with as many in each octave"},
    {"border", OPTION_INT, AT(border), "8", 0, ARROW_BORDER_MOST, NULL, "COUNT",
     "size of the border"},
    {"mixed", OPTION_FLAG, AT(mixed), "no", 0, 1, NULL, NULL,
     "frames of 1 to --frame and borders of 0 to --border, side by side"},
    {"indefinite", OPTION_REAL, AT(indefinite), "0", 0, 1, NULL, "SHARE",
     "share of systems that are not positive definite, in a row or in the border"},
    {"ill", OPTION_REAL, AT(ill), "0", 0, 1, NULL, "SHARE",
     "share of systems with a condition number of 1e10 and more"},
};

static struct made_systems made_of(const struct systems_options *o, idx frame, gidx seed)
{
  return (struct made_systems){.seed = (uint64_t)seed,
                               .count = o->systems,
                               .lengths = strcmp(o->lengths, "fixed") == 0     ? LENGTHS_FIXED
                                          : strcmp(o->lengths, "uniform") == 0 ? LENGTHS_UNIFORM
                                                                               : LENGTHS_POWER,
                               .rows = o->system_rows,
                               .d = frame,
                               .k = o->border,
                               .mixed = o->mixed,
                               .indefinite = o->indefinite,
                               .ill = o->ill};
}

/* Each system is an atom; sixteen are a class. */
struct named {
  idx *atom, *color;
};

static int shape_make(const struct made_systems *made, struct arena *arena,
                      struct systems_shape *shape, struct named *named)
{
  CHECK(made->indefinite + made->ill <= 1, ERR_USAGE,
        "'--indefinite' and '--ill' are %g together, more than 1", made->indefinite + made->ill);
  TRY(systems_take(shape, made->count, arena));
  TRY(arena_take(arena, &named->atom, made->count, sizeof(idx)));
  TRY(arena_take(arena, &named->color, made->count, sizeof(idx)));
  made_shape(made, shape);
  for (gidx a = 0; a < made->count; a++) {
    named->atom[a] = (idx)a;
    named->color[a] = (idx)(a / 16);
  }
  TRY(systems_measure(shape, "synth"));
  return synth_systems_check(shape);
}

static int result_open(const struct run *run, struct systems_result *file, const char *path,
                       const struct systems_shape *shape, const struct named *named)
{
  if (run->comm.rank) return OK;
  return systems_create(file, path, shape, named->atom, named->color, 0);
}

static int result_close(const struct run *run, struct systems_result *file)
{
  struct run_fact facts[FACTS_MOST];
  if (run->comm.rank) return OK;
  return systems_finish(file, facts, run_facts(run, "cpu", 1, facts));
}

static void plan_print(const struct systems_shape *s, int ranks)
{
  printf("systems.h5     %.1f MB: %lld systems of %lld rows\n", 1e-6 * (double)systems_bytes(s, 0),
         (long long)s->count, (long long)s->row[s->count]);
  printf("memory         %.1f MB a rank\n", 1e-6 * (double)synth_systems_memory(s, ranks));
}

int systems_make(struct run *run, const struct output_options *output,
                 const struct systems_options *o, idx frame, gidx seed, int dry_run)
{
  static struct systems_result file;
  static struct arena arena;
  struct output_place place;
  struct systems_shape shape;
  struct named named;
  struct synth_systems_result result;
  struct made_systems made = made_of(o, frame, seed);
  struct comm *c = &run->comm;
  double begun = log_seconds();
  TRY(comm_agree(c, shape_make(&made, &arena, &shape, &named)));
  if (dry_run) {
    if (c->rank == 0) plan_print(&shape, c->size);
    return OK;
  }
  TRY(run_begin(run, output, "systems.h5", &place));
  TRY(comm_agree(c, result_open(run, &file, place.file, &shape, &named)));
  TRY(synth_systems_run(&made, &shape, c, &file.sink, &result));
  TRY(comm_agree(c, result_close(run, &file)));
  log_info("systems systems=%lld rows=%lld indefinite=%lld ill=%lld seconds=%.2f "
           "fingerprint=%016llx",
           (long long)shape.count, (long long)shape.row[shape.count],
           (long long)(result.kinds[MADE_BAD_ROW] + result.kinds[MADE_BAD_BORDER]),
           (long long)result.kinds[MADE_ILL], log_seconds() - begun,
           (unsigned long long)result.fingerprint);
  log_info("wrote   %s", place.file);
  arena_free(&arena);
  return OK;
}
