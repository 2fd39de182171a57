/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta encode and sagitta route: rows + dictionary -> supports.h5. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/report.h"
#include "io/inputs.h"
#include "stage/encode.h"
#include "stage/mean.h"
#include "stage/tiles.h"

struct encode_options {
  struct job_options job;
  struct output_options output;
  struct compute_options compute;
  const char *rows, *dictionary;
  idx top_s, rounds, cosine_limit;
  int center, normalize, dry_run;
  real rho;
};
#define AT(member) offsetof(struct encode_options, member)

static const struct option_row input_rows[] = {
    ROWS_OPTION(AT(rows)),
    {"dictionary", OPTION_TEXT, AT(dictionary), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "atoms (K, P) or frames (K, d, P), unit norm (default path: /atoms); /mean beside them is "
     "subtracted from the rows"},
    {"center", OPTION_FLAG, AT(center), "no", 0, 1, NULL, NULL,
     "subtract the rows' column means first, for a dictionary that brings no mean"},
    {"normalize", OPTION_FLAG, AT(normalize), "no", 0, 1, NULL, NULL,
     "scale the atoms to unit norm instead of refusing those that are not"},
};

static const struct option_row route_rows[] = {
    {"top-s", OPTION_INT, AT(top_s), "32", 1, TOP_S_MOST, NULL, "ATOMS", "atoms for each row"},
    {"rounds", OPTION_INT, AT(rounds), "1", 1, TOP_S_MOST, NULL, "COUNT",
     "rounds of routing: later ones route what the codes so far leave over; more of them explain "
     "more and take longer, as many as --top-s are orthogonal matching pursuit"},
    {"cosine-limit", OPTION_INT, AT(cosine_limit), "65536", 0, 1 << 30, NULL, "ATOMS",
     "compute the largest decoder cosine of dictionaries up to this size"},
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory and disk needed and how the work is split, and do nothing"},
};

static const struct option_row codes_rows[] = {
    {"rho", OPTION_REAL, AT(rho), "0", 0, 1e30, NULL, "PENALTY",
     "ridge penalty on the codes: 1/2 |x - sum c d|^2 + 1/2 rho |c|^2"},
};

static const struct option_table encode_tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Routing", route_rows, LENGTH(route_rows), 0},
    {"Codes", codes_rows, LENGTH(codes_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed and memory, never a bit of the result", compute_rows, COMPUTE_ROWS, AT(compute)},
    {"Job", job_rows, JOB_ROWS, AT(job)},
};

static const struct option_table route_tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Routing", route_rows, LENGTH(route_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed and memory, never a bit of the result", compute_rows, COMPUTE_ROWS, AT(compute)},
    {"Job", job_rows, JOB_ROWS, AT(job)},
};

static const struct option_set encode_set = {
    .command = "sagitta encode",
    .arguments = "[DECK]",
    .doc =
        "Route every row to its top-s atoms, solve the codes, and report how much is explained."
        "\v"
        "The result, supports.h5, holds the supports in selection order as a CSR matrix that scipy "
        "and AnnData open, the scores, the codes and the metrics.  Its bytes do not depend on the "
        "number of ranks, tiles, blocks or threads.\n\n"
        "A deck is a text file of `top-s = 32` lines; options win over it.\n\n"
        "  mpirun -n 4 sagitta encode --rows acts.h5 --dictionary d.h5 \\\n"
        "      --top-s 32 --output run/\n"
        "  sagitta inspect run/supports.h5",
    .tables = encode_tables,
    .count = LENGTH(encode_tables),
    .most_arguments = 1,
    .has_deck = 1,
};

static const struct option_set route_set = {
    .command = "sagitta route",
    .arguments = "[DECK]",
    .doc = "Route every row to its top-s atoms: `sagitta encode` without codes."
           "\v"
           "  mpirun -n 4 sagitta route --rows acts.h5 --dictionary d.h5 \\\n"
           "      --top-s 32 --output run/",
    .tables = route_tables,
    .count = LENGTH(route_tables),
    .most_arguments = 1,
    .has_deck = 1,
};

struct inputs {
  struct rows_file rows;
  struct dictionary_file dictionary;
};

static int inputs_open(struct inputs *in, const struct encode_options *o)
{
  CHECK(o->rows, ERR_USAGE, "'--rows' is missing: the file with the activation rows");
  CHECK(o->dictionary, ERR_USAGE, "'--dictionary' is missing: make one with `sagitta seed`");
  CHECK(o->output.output || o->dry_run, ERR_USAGE,
        "'--output' is missing: a folder, or a file that ends in .h5");
  TRY(rows_open(&in->rows, o->rows));
  TRY(dictionary_open(&in->dictionary, o->dictionary));
  const struct row_source *rows = &in->rows.source;
  const struct atom_source *atoms = &in->dictionary.source;
  CHECK(rows->p == atoms->p, ERR_INPUT, "'%s' has %d columns, the atoms of '%s' have %d",
        rows->name, rows->p, atoms->name, atoms->p);
  CHECK(atoms->k > 0, ERR_INPUT, "'%s' has no atoms", atoms->name);
  CHECK(!(o->center && in->dictionary.mean), ERR_USAGE,
        "'--center' is given, but '%s' brings its own mean, which is always subtracted",
        atoms->name);
  return OK;
}

static struct encode_task task_of(const struct run *run, const struct encode_options *o,
                                  const struct inputs *in)
{
  idx k = in->dictionary.source.k;
  struct encode_task task = {.rows = &in->rows.source,
                             .atoms = &in->dictionary.source,
                             .mean = in->dictionary.mean,
                             .top_s = o->top_s < k ? o->top_s : k,
                             .rounds = o->rounds,
                             .tile = o->compute.tile,
                             .block = o->compute.block,
                             .threads = threads_choose(&run->comm, o->compute.threads),
                             .device = o->compute.device,
                             .variant = o->compute.cpu_variant,
                             .filter = o->compute.filter,
                             .kernels = o->compute.kernels,
                             .codes = run->command == &command_encode,
                             .normalize = o->normalize,
                             .rho = o->rho,
                             .cosine_most = o->cosine_limit};
  if (!task.tile) task.tile = tile_choose(k, run->comm.size);
  if (task.tile > k) task.tile = k;
  if (!task.block) task.block = encode_block(&task, run->comm.size);
  if (task.top_s < o->top_s)
    log_warn("top-s is %d, the dictionary has %d atoms: each row gets %d", o->top_s, k, k);
  if (task.rounds > task.top_s) {
    log_warn("rounds is %d, a row gets %d atoms: it takes %d rounds of one atom", o->rounds,
             task.top_s, task.top_s);
    task.rounds = task.top_s;
  }
  return task;
}

static struct supports_shape shape_of(const struct encode_task *t)
{
  return (struct supports_shape){.n = t->rows->n,
                                 .k = t->atoms->k,
                                 .s = t->top_s,
                                 .d = t->atoms->d,
                                 .p = t->rows->p,
                                 .has_codes = t->codes};
}

static void plan_print(const struct run *run, const struct encode_task *t)
{
  struct supports_shape shape = shape_of(t);
  struct encode_memory m;
  int ranks = run->comm.size;
  if (run->comm.rank) return;
  encode_memory(t, ranks, &m);
  gidx tiles = ((gidx)t->atoms->k + t->tile - 1) / t->tile;
  gidx blocks = (t->rows->n + t->block - 1) / t->block;
  printf("rows        %lld x %d in %lld blocks of %d, %d a rank and block\n", (long long)t->rows->n,
         t->rows->p, (long long)blocks, t->block, (t->block + ranks - 1) / ranks);
  printf("dictionary  %d atoms of %d x %d in %lld tiles of %d, up to %lld tiles a rank\n",
         t->atoms->k, t->atoms->d, t->atoms->p, (long long)tiles, t->tile,
         (long long)((tiles + ranks - 1) / ranks));
  printf("work        %.3g multiply-adds, %.3g a rank\n",
         (double)t->rows->n * t->atoms->k * t->atoms->d * t->atoms->p * t->rounds,
         (double)t->rows->n * t->atoms->k * t->atoms->d * t->atoms->p * t->rounds / ranks);
  gidx total = m.dictionary + m.rows + m.lists + m.codes + m.table;
  printf("memory      %.1f MB a rank: dictionary %.1f, rows %.1f, lists %.1f, codes %.1f, fetched "
         "atoms %.1f\n",
         1e-6 * (double)total, 1e-6 * (double)m.dictionary, 1e-6 * (double)m.rows,
         1e-6 * (double)m.lists, 1e-6 * (double)m.codes, 1e-6 * (double)m.table);
  printf("disk        %.1f MB\n", 1e-6 * (double)supports_bytes(&shape));
}

static int result_open(const struct run *run, struct supports_file *file,
                       const struct output_place *place, const struct inputs *in,
                       const struct encode_task *t)
{
  struct supports_shape shape = shape_of(t);
  if (run->comm.rank) return OK;
  TRY(output_spares(place, in->rows.file));
  TRY(output_spares(place, in->dictionary.file));
  return supports_create(file, place->file, &shape);
}

/* route=cuda codes=cuda ... of the phases that ran. */
static void phases_join(const struct encode_result *result, char *text, size_t room)
{
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < ENCODE_PHASES; i++) {
    const struct phase *p = &result->phases[i];
    if (p->calls && p->device && used < room)
      used += (size_t)snprintf(text + used, room - used, "%s%s=%s", used ? " " : "", p->name,
                               p->device);
  }
}

/* moved[3] <- kernels launched and bytes copied to and from devices, all ranks together. */
static int counts_sum(struct comm *c, const struct device_counts *counts, double *moved)
{
  gidx sums[] = {counts->kernels, (gidx)counts->put, (gidx)counts->got};
  TRY(comm_sum(c, sums, LENGTH(sums)));
  for (int i = 0; i < LENGTH(sums); i++) moved[i] = (double)sums[i];
  return OK;
}

static int result_close(const struct run *run, struct supports_file *file,
                        const struct encode_task *t, const struct encode_result *result,
                        const double *moved, const struct filter_counts *filter)
{
  if (run->comm.rank) return OK;
  struct run_fact facts[FACTS_MOST];
  char device[128], phases[256];
  snprintf(device, sizeof device, "%s %s", result->device, result->variant);
  phases_join(result, phases, sizeof phases);
  int n = run_facts(run, device, t->threads, facts);
  facts[n++] = (struct run_fact){"phase_devices", phases, 0};
  facts[n++] = (struct run_fact){"kernels", NULL, moved[0]};
  facts[n++] = (struct run_fact){"bytes_to_device", NULL, moved[1]};
  facts[n++] = (struct run_fact){"bytes_from_device", NULL, moved[2]};
  facts[n++] = (struct run_fact){"rows_certified", NULL, (double)filter->rows[FILTER_CERTIFIED]};
  facts[n++] = (struct run_fact){"rows_left_by_list", NULL, (double)filter->rows[FILTER_LIST]};
  facts[n++] = (struct run_fact){"rows_left_by_score", NULL, (double)filter->rows[FILTER_SCORE]};
  facts[n++] = (struct run_fact){"rows_left_by_guess", NULL, (double)filter->rows[FILTER_GUESS]};
  facts[n++] = (struct run_fact){"rows_left_small", NULL, (double)filter->rows[FILTER_SMALL]};
  facts[n++] = (struct run_fact){"candidates", NULL, (double)filter->candidates};
  struct supports_ending ending = {&result->metrics, t->mean, t->rho, t->rounds, 0};
  return supports_finish(file, &ending, facts, n);
}

static int center_rows(struct run *run, const struct encode_options *o, struct inputs *in,
                       struct encode_task *task, struct arena *arena)
{
  if (!o->center) return OK;
  real *mean = NULL;
  TRY(comm_agree(&run->comm, arena_take(arena, &mean, in->rows.source.p, sizeof *mean)));
  TRY(mean_compute(&run->comm, &in->rows.source, mean));
  task->mean = mean;
  return OK;
}

static int encode_command(struct run *run, const void *options, const char **arguments)
{
  const struct encode_options *o = options;
  static struct inputs in; /* static: a worker may be at work when the job fails */
  static struct encode_task task;
  static struct supports_file file;
  static struct encode_result result;
  struct arena arena = {0};
  (void)arguments;
  TRY(comm_agree(&run->comm, inputs_open(&in, o)));
  task = task_of(run, o, &in);
  if (o->dry_run) {
    plan_print(run, &task);
    return OK;
  }
  struct output_place place;
  TRY(run_begin(run, &o->output, "supports.h5", &place));
  TRY(center_rows(run, o, &in, &task, &arena));
  TRY(comm_agree(&run->comm, result_open(run, &file, &place, &in, &task)));
  task.sink = &file.sink;
  double begun = log_seconds();
  TRY(encode_run(&task, &run->comm, &result));
  double seconds = log_seconds() - begun;
  int gpu = strcmp(result.device, "cpu") != 0; /* its name is in the table of ranks */
  log_info("%-7s rows=%lld atoms=%d top_s=%d rounds=%d ranks=%d device=%s%s%s seconds=%.2f "
           "fingerprint=%016llx",
           run->command->name, (long long)task.rows->n, task.atoms->k, task.top_s, task.rounds,
           run->comm.size, result.device, gpu ? "" : "/", gpu ? "" : result.variant, seconds,
           (unsigned long long)result.fingerprint);
  TRY(report_phases(&run->comm, result.phases, ENCODE_PHASES));
  double moved[3] = {0};
  TRY(counts_sum(&run->comm, &result.counts, moved));
  if (moved[0] > 0)
    log_info("GPU: %.0f kernels, %.3f GB to and %.3f GB from the device", moved[0], 1e-9 * moved[1],
             1e-9 * moved[2]);
  struct filter_counts filter = result.filter;
  TRY(report_filter(&run->comm, &filter));
  if (run->comm.rank == 0) report_metrics(&result.metrics, task.codes);
  TRY(comm_agree(&run->comm, result_close(run, &file, &task, &result, moved, &filter)));
  log_info("wrote   %s", place.file);
  encode_free(&result);
  rows_close(&in.rows);
  dictionary_close(&in.dictionary);
  arena_free(&arena);
  return OK;
}

const struct command command_encode = {"encode",    "rows + dictionary -> supports, codes, metrics",
                                       &encode_set, sizeof(struct encode_options),
                                       1,           encode_command};

const struct command command_route = {
    "route",    "rows + dictionary -> supports and scores, no codes",
    &route_set, sizeof(struct encode_options),
    1,          encode_command};
