/* SPDX-License-Identifier: BSD-3-Clause
 * The command writes one file, systems.h5. */
#include "cli/synth_systems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "job/summary.h"
#include "io/systems.h"
#include "synth/systems.h"

#define AT(member) offsetof(struct systems_options, member)

const struct option_row systems_rows[SYSTEMS_ROWS] = {
    {"systems", OPTION_LONG, AT(systems), "0", 0, 1 << 30, NULL, "COUNT",
     "make this number of arrow systems instead of rows and a dictionary; --frame is the size of "
     "their row blocks",
     .effect = OPTION_BITS},
    {"system-rows", OPTION_LONG, AT(system_rows), "256", 0, 1 << 28, NULL, "COUNT",
     "number of rows of a system", .effect = OPTION_BITS},
    {"lengths", OPTION_CHOICE, AT(lengths), "fixed", 0, 0, "fixed|uniform|power", NULL,
     "number of rows of each system. fixed: --system-rows; uniform: 0 to twice --system-rows; "
     "power: 1 to 16 times --system-rows, with equally many systems in each octave",
     .effect = OPTION_BITS},
    {"border", OPTION_INT, AT(border), "8", 0, ARROW_MAX_BORDER, NULL, "COUNT",
     "size of the border", .effect = OPTION_BITS},
    {"mixed", OPTION_FLAG, AT(mixed), "no", 0, 1, NULL, NULL,
     "systems differ: row blocks have sizes of 1 to --frame, borders of 0 to --border",
     .effect = OPTION_BITS},
    {"indefinite", OPTION_REAL, AT(indefinite), "0", 0, 1, NULL, "SHARE",
     "share of systems that are not positive definite, in a row or in the border",
     .effect = OPTION_BITS},
    {"ill", OPTION_REAL, AT(ill), "0", 0, 1, NULL, "SHARE",
     "share of systems with a condition number of 1e10 or more", .effect = OPTION_BITS},
};

static struct synthetic_systems made_of(const struct systems_options *o, idx frame, gidx seed)
{
  return (struct synthetic_systems){.seed = (uint64_t)seed,
                                    .count = o->systems,
                                    .lengths = strcmp(o->lengths, "fixed") == 0 ? LENGTHS_FIXED
                                               : strcmp(o->lengths, "uniform") == 0
                                                   ? LENGTHS_UNIFORM
                                                   : LENGTHS_POWER,
                                    .rows = o->system_rows,
                                    .d = frame,
                                    .k = o->border,
                                    .mixed = o->mixed,
                                    .indefinite = o->indefinite,
                                    .ill = o->ill};
}

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct systems_run {
  struct synthetic_systems made;
  struct systems_shape shape;
  idx *atom, *color; /* [shape.count] */
  struct output_path place;
  struct systems_output file; /* rank 0 */
  struct arena arena;         /* of shape, atom and color */
};

/* Give each system an atom of its own, and each sixteen consecutive systems a class. */
static int shape_make(struct systems_run *job)
{
  const struct synthetic_systems *made = &job->made;
  CHECK(made->indefinite + made->ill <= 1, ERR_USAGE,
        "'--indefinite' and '--ill' are %g together, more than 1: lower one of them",
        made->indefinite + made->ill);
  TRY(systems_alloc(&job->shape, made->count, &job->arena));
  TRY(arena_alloc(&job->arena, &job->atom, made->count, sizeof *job->atom));
  TRY(arena_alloc(&job->arena, &job->color, made->count, sizeof *job->color));
  synthetic_shape(made, &job->shape);
  for (gidx a = 0; a < made->count; a++) {
    job->atom[a] = (idx)a;
    job->color[a] = (idx)(a / 16);
  }
  TRY(systems_measure(&job->shape, "synth"));
  return synth_systems_check(&job->shape);
}

static int result_open(const struct run *run, struct systems_run *job)
{
  if (run->comm.rank) return OK;
  return systems_output_create(&job->file, job->place.file, &job->shape, job->atom, job->color, 0);
}

static int result_close(const struct run *run, struct systems_output *file)
{
  struct run_fact facts[MAX_FACTS];
  if (run->comm.rank) return OK;
  return systems_output_finish(file, &(struct identity){0}, NULL, facts,
                               run_facts(run, "cpu", 1, facts));
}

static int plan_json(const struct run *run, const struct systems_shape *s, gidx memory)
{
  struct json j;
  TRY(facts_begin(run, &j));
  json_long(&j, "systems", s->count);
  json_long(&j, "rows", s->row[s->count]);
  json_long(&j, "systems_bytes", systems_bytes(s, 0));
  json_long(&j, "memory_bytes", memory);
  return facts_end(&j);
}

/* Print the lines of --dry-run, or with --json the object. */
static int plan_print(const struct run *run, const struct systems_run *job)
{
  const struct systems_shape *s = &job->shape;
  gidx memory;
  if (run->comm.rank) return OK;
  TRY(synth_systems_memory(s, run->comm.size, &memory));
  memory += (gidx)job->arena.bytes;
  if (run->wants_json) return plan_json(run, s, memory);
  printf("systems.h5     %.1f MB: %lld systems of %lld rows\n", 1e-6 * (double)systems_bytes(s, 0),
         (long long)s->count, (long long)s->row[s->count]);
  printf("memory         %.1f MB a rank\n", 1e-6 * (double)memory);
  return OK;
}

static int entries_json(const struct systems_shape *s, const struct synth_systems_result *r)
{
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "systems", s->count);
  json_long(own, "rows", s->row[s->count]);
  json_long(own, "indefinite", r->kinds[SYNTHETIC_BAD_ROW] + r->kinds[SYNTHETIC_BAD_BORDER]);
  json_long(own, "ill", r->kinds[SYNTHETIC_ILL]);
  json_hash(own, "fingerprint", r->fingerprint);
  return OK;
}

static int file_make(struct run *run, const struct output_options *output, struct systems_run *job)
{
  const struct systems_shape *shape = &job->shape;
  struct comm *c = &run->comm;
  struct synth_systems_result result;
  double begun = log_seconds();
  TRY(run_begin(run, output, "systems.h5", &(const struct run_inputs){.name = {NULL}},
                &job->place));
  TRY(comm_agree(c, result_open(run, job)));
  TRY(synth_systems_run(&job->made, shape, c, &job->file.sink, &result));
  TRY(comm_agree(c, result_close(run, &job->file)));
  TRY(comm_agree(c, c->rank ? OK : entries_json(shape, &result)));
  log_info("systems systems=%lld rows=%lld indefinite=%lld ill=%lld seconds=%.2f "
           "fingerprint=%016llx",
           (long long)shape->count, (long long)shape->row[shape->count],
           (long long)(result.kinds[SYNTHETIC_BAD_ROW] + result.kinds[SYNTHETIC_BAD_BORDER]),
           (long long)result.kinds[SYNTHETIC_ILL], log_seconds() - begun,
           (unsigned long long)result.fingerprint);
  log_info("wrote   %s", job->place.shown);
  return OK;
}

int systems_make(struct run *run, const struct output_options *output,
                 const struct systems_options *o, idx frame, gidx seed, int dry_run)
{
  struct comm *c = &run->comm;
  struct systems_run *job;
  TRY(comm_agree(c, struct_alloc(&job, sizeof *job)));
  job->made = made_of(o, frame, seed);
  TRY(comm_agree(c, shape_make(job)));
  if (dry_run)
    TRY(comm_agree(c, plan_print(run, job)));
  else
    TRY(file_make(run, output, job));
  arena_free(&job->arena);
  free(job);
  return OK;
}
