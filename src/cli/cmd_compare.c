/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta compare: two dictionaries -> which atoms of one are in the other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/comparison.h"
#include "io/density.h"
#include "io/dictionary.h"
#include "look/compare.h"
#include "look/pairs.h"

struct compare_options {
  struct general_options general;
  struct output_options output;
  const char *name[2];
  real above;
  const char *pairs;
  int normalize;
  idx threads;
  const char *variant;
};
#define AT(member) offsetof(struct compare_options, member)

static const struct option_row input_rows[] = {
    {"dictionary", OPTION_TEXT, AT(name[0]), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "A, the first dictionary (K, P), instead of the first argument (default path: /atoms)",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"other", OPTION_TEXT, AT(name[1]), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "B, the second dictionary (L, P), instead of the second argument", .effect = OPTION_BITS,
     .flags = OPTION_INPUT},
    {"normalize", OPTION_FLAG, AT(normalize), "no", 0, 1, NULL, NULL,
     "scale all atoms to unit norm first", .effect = OPTION_BITS},
    {"above", OPTION_REAL, AT(above), "0.9", 0, 1, NULL, "COSINE",
     "count atoms whose largest cosine is above this", .effect = OPTION_BITS},
    {"pairs", OPTION_CHOICE, AT(pairs), "yes", 0, 0, "yes|no", "WORD",
     "whether to pair atoms one to one, which takes 4 K L bytes of memory", .effect = OPTION_BITS},
};

static const struct option_row speed_rows[] = {
    THREADS_OPTION(AT(threads)),
    CPU_VARIANT_OPTION(AT(variant), "instruction set of CPU loops"),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result, where --output is given", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set compare_set = {
    .command = "sagitta compare",
    .arguments = "[DECK | A B]",
    .doc = "Match two dictionaries: find for every atom of each the nearest atom of the other."
           "\v"
           "First each atom is matched with the nearest atom of the other dictionary.  Printed "
           "are the mean of these cosines in both directions, how many are above --above, and the "
           "atoms whose cosine is not, the smallest cosine first.  If both dictionaries are for "
           "nonnegative codes, cosines keep their signs; otherwise their absolute values count.  "
           "Then atoms are paired one to one, with the largest possible sum of cosines.  Printed "
           "are the mean of these cosines (PW-MCC), the shares above 0.7 and 0.9, and, if "
           "supports.h5 is beside A, the means for the quarters of A's atoms that rows have most "
           "and least often.  With --output all of it is in comparison.h5.\n\n"
           "A single argument that ends in .in is a deck.\n\n"
           "  sagitta compare one/ other/\n"
           "  mpirun -n 2 sagitta compare one/dictionary.h5 other.npy --output compared/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 2,
    .takes_files = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct compare_job {
  struct dictionary_input in[2];
  struct compare_task task;
  struct compare_result result;
  struct density density; /* of A's atoms */
  struct pairs pairs;     /* k = 0: --pairs is no */
  struct arena arena;     /* of density and pairs */
  struct output_path place;
};

/* Store the arguments A and B as the values of --dictionary and --other, so that used.in has
 * them. */
static int names_take(struct compare_options *o, const char *const *arguments)
{
  for (int i = 0; i < 2 && arguments[0]; i++) {
    CHECK(arguments[1], ERR_USAGE,
          "one dictionary is missing: give two, as in sagitta compare A B");
    CHECK(!o->name[i], ERR_USAGE, "'%s' is given beside '--%s'", arguments[i],
          i ? "other" : "dictionary");
    o->name[i] = arguments[i];
  }
  CHECK(o->name[0] && o->name[1], ERR_USAGE,
        "two dictionaries are needed, as in: sagitta compare A B");
  return OK;
}

/* If a supports.h5 lies beside A, read how many rows have each atom of A. */
static int density_find(struct compare_job *j)
{
  int status = density_open(j->in[0].file, j->in[0].source.k, &j->arena, &j->density);
  if (status != ERR_INPUT && status != ERR_IO) return status;
  log_warn("the quarters by frequency are left out: %s", status_message());
  status_clear();
  j->density.rows = NULL;
  return OK;
}

static int inputs_open(struct compare_job *j, struct compare_options *o,
                       const char *const *arguments)
{
  TRY(names_take(o, arguments));
  for (int i = 0; i < 2; i++) {
    TRY(dictionary_input_open(&j->in[i], o->name[i]));
    j->task.atoms[i] = &j->in[i].source;
  }
  if (!strcmp(o->pairs, "no")) return OK;
  return density_find(j);
}

/* Print how many atoms of one dictionary have a |cosine| of `above` or less with their nearest atom
 * in the other one.  Name up to SHOWN of these atoms, the lowest |cosine| first. */
static void lonely_print(const struct matches *p, char name, real above)
{
  enum { SHOWN = 8 };
  idx worst[SHOWN], count = matches_lonely(p, above, SHOWN, worst);
  if (!count) return;
  printf("%lld of %c have no cosine above %g:", (long long)(p->k - p->matched), name, above);
  for (idx i = 0; i < count; i++)
    printf("%s %d (%.3f)", i ? "," : "", worst[i], (double)p->cosine[worst[i]]);
  printf("%s\n", p->k - p->matched > count ? ", ..." : "");
}

static void pairs_print(const struct pairs *p)
{
  printf("%d atoms of A and B, one to one, with the largest sum of cosines\n", p->count);
  printf("%-22s %10.6f\n", "pw_mcc", p->mean);
  printf("%-22s %10.4f\n", "  above 0.7", (double)p->low / p->count);
  printf("%-22s %10.4f\n", "  above 0.9", (double)p->high / p->count);
  if (p->density) {
    printf("%-22s %10.6f\n", "  most frequent of A", p->frequent);
    printf("%-22s %10.6f\n\n", "  least frequent of A", p->rare);
  } else {
    printf(
        "  no quarters by frequency: there is no supports.h5 beside A that was encoded with A\n\n");
  }
}

static void report_print(const struct compare_job *j)
{
  const struct compare_result *r = &j->result;
  real above = j->task.above;
  for (int i = 0; i < 2; i++)
    text_print(stdout, "%c  %s: %d atoms of %d columns\n", "AB"[i], j -> in[i].source.name,
               j->in[i].source.k, j->in[i].source.p);
  printf("\n%-22s %10s %10s\n", "", "A in B", "B in A");
  printf("%-22s %10.6f %10.6f\n", "mean_max_cosine", r->of[0].mean, r->of[1].mean);
  printf("above %-16g %10lld %10lld\n", above, (long long)r->of[0].matched,
         (long long)r->of[1].matched);
  printf("%-22s %10.4f %10.4f\n", "  of all atoms", (double)r->of[0].matched / r->of[0].k,
         (double)r->of[1].matched / r->of[1].k);
  printf("%-22s %10lld\n\n", "  each other's nearest", (long long)r->mutual);
  if (j->pairs.k) pairs_print(&j->pairs);
  for (int i = 0; i < 2; i++) lonely_print(&r->of[i], "AB"[i], above);
}

static void side_json(const struct compare_job *j, int i, struct json *out)
{
  const struct matches *p = &j->result.of[i];
  json_object(out, i ? "second" : "first");
  json_text(out, "name", j->in[i].source.name);
  json_long(out, "atoms", p->k);
  json_real(out, "mean_max_cosine", p->mean);
  json_long(out, "matched", p->matched);
  json_array(out, "alone");
  for (idx a = 0; a < p->k; a++) {
    if (fabs((real)p->cosine[a]) > j->task.above) continue;
    json_object(out, NULL);
    json_long(out, "atom", a);
    json_long(out, "nearest", p->nearest[a]);
    json_real(out, "cosine", p->cosine[a]);
    json_end(out);
  }
  json_end(out);
  json_end(out);
}

static void pairs_json(const struct pairs *p, struct json *out)
{
  json_object(out, "pairs");
  json_long(out, "count", p->count);
  json_real(out, "pw_mcc", p->mean);
  json_real(out, "above_07", (real)p->low / p->count);
  json_real(out, "above_09", (real)p->high / p->count);
  json_real(out, "most_frequent_quarter", p->frequent);
  json_real(out, "least_frequent_quarter", p->rare);
  json_end(out);
}

static int report_json(const struct run *run, const struct compare_job *j)
{
  struct json out;
  TRY(facts_begin(run, &out));
  json_long(&out, "columns", j->in[0].source.p);
  json_flag(&out, "nonnegative", j->task.nonnegative);
  json_real(&out, "above", j->task.above);
  json_long(&out, "mutual", j->result.mutual);
  for (int i = 0; i < 2; i++) side_json(j, i, &out);
  if (j->pairs.k) pairs_json(&j->pairs, &out);
  return facts_end(&out);
}

static int result_write(const struct run *run, const struct compare_job *j)
{
  struct run_fact facts[MAX_FACTS];
  const struct compare_result *r = &j->result;
  if (run->comm.rank) return OK;
  const struct comparison c = {.of = {&r->of[0], &r->of[1]},
                               .hash = {r->hash[0], r->hash[1]},
                               .nonnegative = j->task.nonnegative,
                               .above = j->task.above,
                               .mutual = r->mutual,
                               .pairs = j->pairs.k ? &j->pairs : NULL};
  return comparison_write(j->place.file, &c, facts, run_facts(run, "cpu", j->task.threads, facts));
}

/* Pair the atoms one to one.  If the supports.h5 beside A was made with another dictionary, it is
 * not used.  Collective. */
static int pairs_run(struct compare_job *j, struct comm *c)
{
  struct pairs *p = &j->pairs;
  double begun = log_seconds();
  idx k = j->in[0].source.k, *order = NULL;
  p->l = j->in[1].source.k;
  p->density = j->density.dictionary == j->result.hash[0] ? j->density.rows : NULL;
  if (j->density.rows && !p->density)
    log_warn("the supports.h5 beside '%s' is of another dictionary, and says nothing of its atoms",
             j->in[0].file);
  int status = arena_alloc(&j->arena, &p->match, k, sizeof *p->match);
  if (!status) status = arena_alloc(&j->arena, &p->cosine, k, sizeof *p->cosine);
  if (!status) status = arena_alloc(&j->arena, &order, k, sizeof *order);
  TRY(comm_agree(c, status));
  p->k = k;
  TRY(pairs_find(c, &j->task, p));
  pairs_count(p, order);
  log_info("pairs   count=%d pw_mcc=%.6f seconds=%.2f", p->count, p->mean, log_seconds() - begun);
  return OK;
}

static int job_run(struct compare_job *j, struct run *run, struct compare_options *o,
                   const char *const *arguments)
{
  struct comm *c = &run->comm;
  TRY(inputs_agree(c, inputs_open(j, o, arguments)));
  const struct run_inputs inputs = {.name = {j->in[0].file, j->in[1].file}};
  if (o->output.output) TRY(run_begin(run, &o->output, "comparison.h5", &inputs, &j->place));
  TRY(threads_report(run, o->threads));
  j->task.nonnegative = j->in[0].nonnegative && j->in[1].nonnegative;
  j->task.normalize = o->normalize;
  j->task.above = o->above;
  j->task.threads = threads_default(run, o->threads);
  j->task.variant = o->variant;
  double begun = log_seconds();
  TRY(compare_dictionaries(c, &j->task, &j->result));
  log_info("compare atoms=%d,%d columns=%d ranks=%d seconds=%.2f fingerprint=%016llx",
           j->in[0].source.k, j->in[1].source.k, j->in[0].source.p, c->size, log_seconds() - begun,
           (unsigned long long)j->result.fingerprint);
  if (!strcmp(o->pairs, "yes")) TRY(pairs_run(j, c));
  TRY(inputs_confirm(c));
  if (o->output.output) {
    TRY(comm_agree(c, result_write(run, j)));
    log_info("wrote   %s", j->place.shown);
  }
  if (c->rank == 0 && !run->wants_json) report_print(j);
  TRY(comm_agree(c, c->rank == 0 && run->wants_json ? report_json(run, j) : OK));
  return OK;
}

static int compare_command(struct run *run, const void *options, const char **arguments)
{
  static const char *const none[] = {NULL};
  struct compare_job *j;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(job_run(j, run, (struct compare_options *)options, run->deck ? none : arguments));
  compare_free(&j->result);
  arena_free(&j->arena);
  for (int i = 0; i < 2; i++) dictionary_input_close(&j->in[i]);
  free(j);
  return OK;
}

const struct command command_compare = {"compare",
                                        "two dictionaries: which atoms of one are in the other",
                                        &compare_set,
                                        sizeof(struct compare_options),
                                        1,
                                        compare_command};
