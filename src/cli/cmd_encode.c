/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta encode and sagitta route: rows + dictionary -> supports.h5. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/pace.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/sums.h"
#include "base/team.h"
#include "job/checkpoint.h"
#include "model/advice.h"
#include "io/input_agreement.h"
#include "cli/captured.h"
#include "cli/command.h"
#include "encoding/encode_files.h"
#include "encoding/encode_ranges.h"
#include "encoding/encode_ranks.h"
#include "cli/encode_report.h"
#include "cli/report.h"
#include "encoding/encode_saves.h"
#include "job/threads.h"
#include "encode/encode.h"
#include "encode/grid.h"
#include "encode/times.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "io/row_range.h"
#include "io/score_cuts.h"
#include "io/rows.h"
#include "model/route.h"
#include "model/split.h"
#include "seed/mean.h"

struct encode_options {
  struct general_options general;
  struct output_options output;
  struct compute_options compute;
  const char *rows, *capture, *row_range, *dictionary, *encoder, *codes, *rates;
  idx top_s, rounds, cosine_limit;
  int center, normalize, resume, dry_run, detect, join;
  real rho, l0, max_seconds, save_seconds;
};
#define AT(member) offsetof(struct encode_options, member)

static const struct option_row input_rows[] = {
    ROWS_OPTION(AT(rows)),
    CAPTURE_OPTION(AT(capture)),
    {"row-range", OPTION_TEXT, AT(row_range), NULL, 0, 0, NULL, "FIRST:END",
     "encode only rows FIRST to END - 1, or to the last row if END is left out. FIRST and END are "
     "multiples of 4096; END may also be the number of rows. The result is a part; `sagitta "
     "merge` joins the parts. If both are after the last row, nothing is done",
     .effect = OPTION_BITS},
    {"join", OPTION_FLAG, AT(join), "no", 0, 1, NULL, NULL,
     "with --row-range: write the range into a file in the folder --output. Other jobs write "
     "their ranges into the same file, at the same time or later; `sagitta merge FOLDER` then "
     "publishes it. --dry-run says where ranges may begin and end. --join is refused with "
     "--encoder "
     "and --l0, because rows then have different numbers of atoms",
     .effect = OPTION_RUN},
    DICTIONARY_OPTION(AT(dictionary)),
    {"center", OPTION_FLAG, AT(center), "no", 0, 1, NULL, NULL,
     "first subtract the rows' column means; for a dictionary without a mean",
     .effect = OPTION_BITS},
    NORMALIZE_OPTION(AT(normalize)),
};

static const struct option_row route_rows[] = {
    TOP_S_OPTION(AT(top_s)),
    {"rounds", OPTION_INT, AT(rounds), NULL, 1, MAX_TOP_S, NULL, "COUNT",
     "rounds in which the atoms of a row are chosen: the first takes the largest scores, each "
     "later one the largest scores of the residual, the part of the row that the codes so far do "
     "not explain. More rounds explain more and take longer; with --top-s rounds it is orthogonal "
     "matching pursuit (default: the number that the dictionary was fitted with; 1 if it has none)",
     .effect = OPTION_BITS},
    {"codes", OPTION_CHOICE, AT(codes), "auto", 0, 0, "auto|signed|nonnegative|own", NULL,
     "may codes be negative? nonnegative: no, and the atoms of a row are those with its largest "
     "positive scores; auto: as the dictionary says, signed if it says nothing. With --encoder, "
     "own: the codes of the encoder; signed or nonnegative: codes are solved on the encoder's "
     "supports; auto: own, but solved if the encoder comes from `refit --encoder` or `refit "
     "--keep-supports`. Results of `fit --find features` have solved codes, and take only auto",
     .effect = OPTION_BITS},
    COSINE_LIMIT_OPTION(AT(cosine_limit)),
    RESUME_OPTION(AT(resume)),
    MAX_SECONDS_OPTION(AT(max_seconds), "a block"),
    {"save-seconds", OPTION_REAL, AT(save_seconds), "300", 0, 1e9, NULL, "SECONDS",
     "save the finished blocks every SECONDS, less often if a save takes more than a tenth of "
     "SECONDS; a killed job loses what came after the last save; 0: save only when the job is "
     "stopped",
     .effect = OPTION_RUN},
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory and disk that the whole job needs and how the work is split, then end; "
     "--output is not touched, and an earlier run there does not matter",
     .effect = OPTION_RUN},
    RATES_OPTION(AT(rates)),
};

static const struct option_row codes_rows[] = {
    {"encoder", OPTION_TEXT, AT(encoder), NULL, 0, 0, NULL, "FILE",
     "in place of --dictionary: take supports and codes from the encoder of FILE, which is a "
     "result of `sagitta train`, `import` or `fit --find features`, or a dictionary with "
     "detectors. The encoder decides how many atoms a row has; with --codes signed or nonnegative "
     "the codes of these atoms are solved instead",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"l0", OPTION_REAL, AT(l0), "0", 0, 1 << 30, NULL, "ATOMS",
     "choose among the scores of all rows together, and keep the largest, so that a row has ATOMS "
     "codes on average, such as 32 or 2.5. With --encoder, --l0 replaces the encoder's own "
     "threshold or number of atoms; it is refused for jumprelu encoders and detectors, where each "
     "atom has its own threshold. With --dictionary, atoms are chosen as by `fit --find "
     "features`, with nonnegative codes. To find the smallest score to keep, the job first "
     "computes the scores of all rows at least once with --encoder, and at least four times with "
     "--dictionary or an encoder of `fit --find features`. 0: not used",
     .effect = OPTION_BITS},
    RHO_OPTION(AT(rho)),
    {"detect", OPTION_FLAG, AT(detect), "no", 0, 1, NULL, NULL,
     "use the detectors of --dictionary, which `sagitta fit --detectors` or `sagitta detect` "
     "made: a row has the atoms whose scores are above their thresholds, and no codes are solved; "
     "--encoder with the same file does the same",
     .effect = OPTION_BITS},
};

static const struct option_table encode_tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Routing", route_rows, LENGTH(route_rows), 0},
    {"Codes", codes_rows, LENGTH(codes_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed and memory; no bit of the result changes", compute_rows, COMPUTE_ROWS, AT(compute)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_table route_tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Routing", route_rows, LENGTH(route_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed and memory; no bit of the result changes", compute_rows, COMPUTE_ROWS, AT(compute)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set encode_set = {
    .command = "sagitta encode",
    .arguments = "[DECK]",
    .doc =
        "Find the top-s atoms of every row, solve their codes, and report how much is explained."
        "\v"
        "The result, supports.h5, holds the metrics, the scores, the codes, and the supports as a "
        "CSR matrix that SciPy and AnnData can open.  The atoms of a row are in the order of "
        "their selection; with --l0, and from encoders other than topk, their numbers ascend.  "
        "The bytes of the datasets do not depend on the number of ranks, tiles, blocks or "
        "threads.\n\n"
        "With --encoder the codes are those of an autoencoder's own encoder (topk, relu, jumprelu "
        "or batchtopk), or of a result of `fit --find features`; `sagitta evaluate` compares them "
        "with others.  Each rank, or its GPU, holds the whole encoder and takes some of the "
        "rows.  With --codes nonnegative or signed the supports are the encoder's, and their "
        "codes are solved by least squares.\n\n"
        "With --row-range a job encodes some of the rows, so that an array of jobs can encode "
        "all; `sagitta merge` joins their parts into the file that one job would write.  With "
        "--join the jobs write their rows directly into that file, and `sagitta merge FOLDER` "
        "publishes it.\n\n"
        "--max-seconds stops a job after a given time.  To stop a running job, create a file STOP "
        "beside the result, " STOP_SIGNALS
        "A stopped job ends with exit code 75 after the current block.  It leaves a part, which "
        "is a file with the rows encoded so far.  Where several ranks write at the same time "
        "(--grid Rx1, no --encoder), it leaves an unfinished file and its journal instead.  "
        "--resume checks that the rows encoded so far are unchanged, and encodes the rest, on any "
        "number of ranks.  A killed job leaves what --save-seconds saved last.\n\n"
        "  mpirun -n 4 sagitta encode --rows acts.h5 --dictionary d.h5 \\\n"
        "      --top-s 32 --output run/\n"
        "  sagitta inspect run/supports.h5\n"
        "  sagitta encode --rows acts.h5 --encoder dict/ --output own/",
    .tables = encode_tables,
    .count = LENGTH(encode_tables),
    .max_arguments = 1,
    .has_config = 1,
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
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct encode_state {
  struct rows_input rows;
  struct captured captured; /* with --capture */
  struct dictionary_input dictionary;
  struct encoder_input encoder; /* with --encoder or --l0 */
  int detects;                  /* --detect was given: --encoder took the value of --dictionary */
  struct score_cuts cuts;       /* with --l0 */
  struct encode_task task;
  struct row_part part;     /* the rows of --row-range, or all rows */
  struct row_source source; /* these rows as a source */
  idx top_s, rounds;        /* as wanted, even if the dictionary has fewer atoms */
  struct encode_files files;
  struct encode_saves saves;
  struct encode_result result;
  struct arena arena; /* of the mean, and of the bias of active atoms */
};

/* Refuse the options that have no meaning with an encoder; the message has the reason. */
static int encoder_options_check(const struct encode_options *o)
{
  static const struct option_advice all[] = {
      {"dictionary", "the encoder's file has its atoms"},
      {"top-s", "the encoder says how many atoms a row has"},
      {"rounds", "an encoder has no rounds"},
      {"normalize", "the atoms of an import have unit norm"},
      {"center", "the mean of an import is subtracted where its encoder wants it"},
      {"grid", "each rank holds the encoder and takes rows"},
  };
  const struct option_advice *bad = options_first_set(&encode_set, o, all, LENGTH(all));
  CHECK(!bad, ERR_USAGE, "'--%s' does not go with '--encoder': %s; leave it out", bad->key,
        bad->advice);
  return OK;
}

/* Are codes solved on the encoder's supports? */
static int encoder_solves(const struct encode_options *o, const struct encode_state *job)
{
  int is_auto = strcmp(o->codes, "auto") == 0;
  return is_auto ? job->encoder.stored.solved : strcmp(o->codes, "own") != 0;
}

/* With --detect the detectors of --dictionary are the encoder: the value of --dictionary becomes
 * the value of --encoder. */
static int detect_take(struct encode_state *job, struct encode_options *o)
{
  if (!o->detect) return OK;
  CHECK(!o->encoder, ERR_USAGE,
        "'--detect' does not go with '--encoder', since it takes the detectors of '--dictionary': "
        "leave one of them out");
  CHECK(o->dictionary, ERR_USAGE,
        "'--dictionary' is missing: give the one whose detectors '--detect' takes");
  job->detects = 1;
  o->encoder = o->dictionary;
  o->dictionary = NULL;
  o->detect = 0;
  return OK;
}

static int detectors_check(const struct encode_state *job)
{
  int there;
  if (!job->detects) return OK;
  TRY(detectors_there(&job->dictionary, &there));
  CHECK(there, ERR_USAGE,
        "'%s' has no detectors, which '--detect' takes: make a dictionary that has them with "
        "`sagitta fit --detectors` or `sagitta detect`",
        job->dictionary.file);
  return OK;
}

/* --l0 with --dictionary, unless active_take() took the dictionary as an encoder: make an encoder
 * that chooses active atoms, as `fit --find features` does (N.58). */
static int active_make(struct encode_state *job, const struct encode_options *o)
{
  const struct atom_source *atoms = &job->dictionary.source;
  int is_auto = strcmp(o->codes, "auto") == 0;
  float *bias;
  CHECK(!o->top_s && !o->rounds, ERR_USAGE,
        "'--%s' does not go with '--l0', which says how many atoms rows have on average: leave "
        "one of them out",
        o->top_s ? "top-s" : "rounds");
  CHECK(strcmp(o->compute.grid, "auto") == 0, ERR_USAGE,
        "'--grid' does not go with '--l0', with which each rank holds all atoms: leave it out");
  CHECK(atoms->d == 1, ERR_USAGE,
        "'--l0' takes positive scores, and the atoms of '%s' are frames of %d vectors: leave it "
        "out, and give '--top-s'",
        atoms->name, atoms->d);
  CHECK(is_auto ? job->dictionary.nonnegative : strcmp(o->codes, "nonnegative") == 0, ERR_USAGE,
        "'--l0' takes positive scores, and the codes of '%s' may be negative: add '--codes "
        "nonnegative', or give '--top-s' in its place",
        atoms->name);
  TRY(arena_alloc(&job->arena, &bias, atoms->k, sizeof *bias));
  struct found_encoder active = find_standard(0);
  active.rho = o->rho;
  job->encoder.stored.encoder = (struct encoder){.kind = ENCODER_ACTIVE,
                                                 .k = atoms->k,
                                                 .p = atoms->p,
                                                 .centered = 1,
                                                 .bias = bias,
                                                 .active = active};
  job->encoder.weights = *atoms;
  return OK;
}

/* --l0 with --dictionary: if the dictionary is a result of `fit --find features`, *is <- 1, and the
 * value of --dictionary becomes the value of --encoder. */
static int active_take(struct encode_state *job, struct encode_options *o, int *is)
{
  *is = 0;
  if (!o->encoder && o->l0 > 0) TRY(encoder_is_active(&job->dictionary, is));
  if (!*is) return OK;
  o->encoder = o->dictionary;
  o->dictionary = NULL;
  return encoder_options_check(o);
}

/* With --l0 the largest scores of all rows are kept, whatever the encoder would choose.  Refuse
 * encoders in which each atom has a threshold of its own. */
static int l0_encoder_check(const struct encode_state *job, const struct encode_options *o)
{
  if (!(o->l0 > 0)) return OK;
  CHECK(!job->detects, ERR_USAGE,
        "'--l0' does not go with '--detect', by which each atom has a threshold of its own: leave "
        "one of them out");
  CHECK(job->encoder.stored.encoder.kind != ENCODER_JUMPRELU, ERR_USAGE,
        "'--l0' does not go with the encoder of '%s', in which each atom has a threshold of its "
        "own: leave '--l0' out, or give the file as '--dictionary'",
        job->dictionary.file);
  return OK;
}

/* Check that --l0 gives at least one code in all, and not more codes per row than a row can
 * have. */
static int l0_check(const struct encode_state *job, const struct encode_options *o)
{
  gidx n = job->rows.source.n, most = job->dictionary.source.k;
  int is_active = job->encoder.stored.encoder.kind == ENCODER_ACTIVE;
  if (!(o->l0 > 0)) return OK;
  CHECK(o->l0 <= (real)most, ERR_USAGE,
        "'--l0' is %g, and '%s' has %lld atoms: ask for that many at most", o->l0,
        job->dictionary.file, (long long)most);
  CHECK(!is_active || o->l0 <= ACTIVE_MOST, ERR_USAGE,
        "'--l0' is %g, and a row has %d active atoms at most: ask for fewer", o->l0, ACTIVE_MOST);
  CHECK(n > 0, ERR_INPUT,
        "'%s' has no rows, so '--l0' has no scores to choose from: give rows, or leave '--l0' out",
        job->rows.source.name);
  CHECK(cuts_most(o->l0, n) >= 1, ERR_USAGE,
        "'--l0' is %g, less than one code in all the %lld rows: ask for %.3g or more", o->l0,
        (long long)n, 1 / (real)n);
  return OK;
}

/* --join needs --row-range, and a folder as --output, in which all jobs write. */
static int join_check(const struct encode_options *o)
{
  size_t length = o->output.output ? strlen(o->output.output) : 0;
  if (!o->join) return OK;
  CHECK(o->row_range, ERR_USAGE,
        "'--join' is given without '--row-range': give '--row-range', the rows of this job");
  CHECK(length < 3 || strcmp(o->output.output + length - 3, ".h5") != 0, ERR_USAGE,
        "'--output' is '%s', a file: with '--join' give the folder in which all jobs write",
        o->output.output);
  return OK;
}

/* Open --dictionary, or the file of --encoder.  Then open or make the encoder, if one gives the
 * supports. */
static int dictionary_open(struct encode_state *job, struct encode_options *o)
{
  int is_active;
  if (!o->encoder) {
    CHECK(o->dictionary, ERR_USAGE, "'--dictionary' is missing: make one with `sagitta seed`");
    CHECK(strcmp(o->codes, "own") != 0, ERR_USAGE,
          "'--codes' is own, so the codes come from an encoder: give it as '--encoder', in place "
          "of '--dictionary'");
    TRY(dictionary_input_open(&job->dictionary, o->dictionary));
    TRY(active_take(job, o, &is_active));
    if (!is_active) return o->l0 > 0 ? active_make(job, o) : OK;
  } else {
    TRY(encoder_options_check(o));
    TRY(encoder_dictionary_open(&job->dictionary, o->encoder));
  }
  TRY(detectors_check(job));
  TRY(encoder_input_open(&job->encoder, &job->dictionary));
  TRY(l0_encoder_check(job, o));
  CHECK(job->encoder.stored.encoder.kind != ENCODER_ACTIVE || !encoder_solves(o, job), ERR_USAGE,
        "'--codes' is %s, but features of '%s' have nonnegative codes, which are solved: leave "
        "'--codes' out",
        o->codes, job->dictionary.file);
  CHECK(o->rho == 0 || encoder_solves(o, job), ERR_USAGE,
        "'--rho' does not go with the codes of an encoder, of which nothing is solved: leave it "
        "out, or have '--codes nonnegative' or 'signed' solve them");
  return OK;
}

static int inputs_open(struct run *run, struct encode_state *job, struct encode_options *o)
{
  const struct device_options harvests = {.p = 1,
                                          .d = 1,
                                          .threads = threads_default(run, o->compute.threads),
                                          .variant = o->compute.cpu_variant,
                                          .kind = o->compute.device,
                                          .kernels = o->compute.kernels,
                                          .local_rank = run->comm.local_rank};
  TRY(rows_or_capture_check(o->rows, o->capture));
  TRY(report_rates_check(o->rates, o->dry_run));
  if (!o->dry_run) TRY(output_check_given(o->output.output));
  TRY(join_check(o));
  TRY(rows_or_capture_open(&job->rows, &job->captured, &run->comm, o->rows, o->capture, &harvests));
  TRY(dictionary_open(job, o));
  if (harvests.threads > 1 || run->comm.size > 1) dictionary_input_concurrent(&job->dictionary);
  const struct row_source *rows = &job->rows.source;
  const struct atom_source *atoms = &job->dictionary.source;
  TRY(columns_check(rows, atoms));
  CHECK(atoms->k > 0, ERR_INPUT, "'%s' has no atoms: give a dictionary that has some", atoms->name);
  CHECK(atoms->d == 1 || strcmp(o->codes, "nonnegative") != 0, ERR_USAGE,
        "'--codes' is nonnegative, but the atoms of '%s' are frames of %d vectors, whose codes "
        "have no sign: leave it out",
        atoms->name, atoms->d);
  CHECK(
      !(o->center && job->dictionary.mean), ERR_USAGE,
      "'--center' is given, but '%s' brings its own mean, which is always subtracted: leave it out",
      atoms->name);
  TRY(l0_check(job, o));
  gidx first = 0, end = rows->n;
  if (o->row_range) TRY(row_range_parse(o->row_range, rows, &first, &end));
  part_source(&job->part, rows, first, end - first, &job->source);
  return OK;
}

/* Set the atoms per row and the rounds of routing.  The log says where they come from, unless both
 * options were given. */
static void numbers_fill(const struct run *run, const struct encode_options *o,
                         struct encode_state *job)
{
  const struct dictionary_input *d = &job->dictionary;
  const char *top_by, *rounds_by;
  job->top_s = encode_number_choose(o->top_s, d->top_s, MAX_TOP_S, 32, &top_by);
  job->rounds = encode_number_choose(o->rounds, d->rounds, job->top_s, 1, &rounds_by);
  if (run->comm.rank == 0 && !(o->top_s && o->rounds))
    log_info("numbers top-s %d: %s; rounds %d: %s", job->top_s, top_by, job->rounds, rounds_by);
}

/* Choose the grid, and the tile and block for it; log the reason. */
static int grid_fill(struct run *run, const struct compute_options *o, struct encode_task *task)
{
  char reason[128] = "as asked";
  struct comm *c = &run->comm;
  TRY(comm_agree(c, grid_parse(o->grid, c->size, &task->groups)));
  if (task->encoder) {
    task->groups = c->size;
    snprintf(reason, sizeof reason, "each rank holds the encoder");
  }
  if (task->groups)
    encode_cut_choose(task, c->size);
  else
    TRY(encode_grid_choose(task, c, reason, sizeof reason));
  if (c->rank == 0 && c->size > 1)
    log_info("grid    %dx%d: %s", task->groups, c->size / task->groups, reason);
  if (c->rank == 0 && o->block && task->block != o->block)
    log_info("block   %d: several groups take whole sum blocks of %d rows", task->block, ROW_BLOCK);
  return OK;
}

/* Set the task to take the encoder's supports, and its own codes or solved ones; the log says which
 * codes. */
static void encoder_fill(const struct run *run, const struct encode_options *o,
                         struct encode_state *job)
{
  const struct stored_encoder *s = &job->encoder.stored;
  const struct encoder *e = &s->encoder;
  struct encode_task *t = &job->task;
  int is_auto = strcmp(o->codes, "auto") == 0, is_signed = strcmp(o->codes, "signed") == 0;
  t->encoder = e;
  t->weights = &job->encoder.weights;
  if (o->l0 > 0) t->cuts = &job->cuts;
  job->cuts = (struct score_cuts){.l0 = o->l0};
  t->top_s = e->kind == ENCODER_TOPK && !t->cuts ? e->top : e->k;
  if (e->kind == ENCODER_ACTIVE) t->top_s = (idx)imin(e->k, ACTIVE_MOST);
  t->rounds = 1;
  t->solves = o->encoder && encoder_solves(o, job);
  t->nonnegative = !t->solves || (is_auto ? job->dictionary.nonnegative : !is_signed);
  if (run->comm.rank) return;
  if (t->cuts)
    log_info("l0      %g: the codes are the %lld largest scores of all rows, which are looked "
             "through first",
             o->l0, (long long)cuts_most(o->l0, job->rows.source.n));
  else if (e->kind == ENCODER_TOPK)
    log_info("encoder %s of %s %s: up to %d atoms a row", encoder_names[e->kind], s->program,
             s->architecture, e->top);
  else
    log_info("encoder %s of %s %s: rows have any number of atoms", encoder_names[e->kind],
             s->program, s->architecture);
  if (t->solves)
    log_info("codes   solved on the supports of the encoder, %s",
             t->nonnegative ? "nonnegative" : "of either sign");
}

/* Fill in the task from options and inputs.  Without an encoder, warn if rows get fewer atoms or
 * rounds than were chosen, or fewer rounds than the dictionary was fitted with. */
static int task_fill(struct run *run, const struct encode_options *o, struct encode_state *job)
{
  idx k = job->dictionary.source.k;
  int has_encoder = o->encoder || o->l0 > 0;
  if (!has_encoder) numbers_fill(run, o, job);
  struct encode_task *task = &job->task;
  *task = (struct encode_task){.rows = o->row_range ? &job->source : &job->rows.source,
                               .whole = o->row_range ? &job->rows.source : NULL,
                               .first = job->part.first,
                               .atoms = &job->dictionary.source,
                               .mean = job->dictionary.mean,
                               .sink = &job->files.file.sink,
                               .top_s = (idx)imin(job->top_s, k),
                               .rounds = job->rounds,
                               .tile = o->compute.tile,
                               .block = o->compute.block,
                               .threads = threads_default(run, o->compute.threads),
                               .device = o->compute.device,
                               .variant = o->compute.cpu_variant,
                               .filter = o->compute.filter,
                               .kernels = o->compute.kernels,
                               .codes = run->command == &command_encode,
                               .normalize = o->normalize,
                               .nonnegative = strcmp(o->codes, "auto") == 0
                                                  ? job->dictionary.nonnegative
                                                  : strcmp(o->codes, "nonnegative") == 0,
                               .rho = o->rho,
                               .max_cosine = o->cosine_limit,
                               .no_cosine = job->part.first > 0};
  if (has_encoder) {
    encoder_fill(run, o, job);
    return grid_fill(run, &o->compute, task);
  }
  if (task->top_s < job->top_s)
    log_warn_named("top-s", "top-s is %d, but the dictionary has only %d atoms: each row gets %d",
                   job->top_s, k, k);
  if (task->rounds > task->top_s) {
    log_warn("rounds is %d, but a row gets only %d atoms: they are chosen in %d rounds of one atom",
             job->rounds, task->top_s, task->top_s);
    task->rounds = task->top_s;
  }
  idx fitted = (idx)imin(job->dictionary.rounds, task->top_s);
  if (task->rounds < fitted && run->comm.rank == 0)
    log_warn("'%s' was fitted with %d rounds of routing, but this run takes %d: rows are described "
             "worse than with '--rounds %d'",
             job->dictionary.file, job->dictionary.rounds, task->rounds, fitted);
  return grid_fill(run, &o->compute, task);
}

/* With --center: compute the column means of the rows. */
static int mean_find(struct run *run, const struct encode_options *o, struct encode_state *job)
{
  real *mean = NULL;
  if (!o->center) return OK;
  TRY(comm_agree(&run->comm, arena_alloc(&job->arena, &mean, job->rows.source.p, sizeof *mean)));
  const struct stops wishes = job_wishes(&job->files.job);
  TRY(mean_compute(&run->comm, &job->rows.source, &wishes, mean));
  job->task.mean = mean;
  return OK;
}

static void job_free(struct encode_state *job)
{
  encode_free(&job->result);
  encode_files_free(&job->files);
  rows_input_close(&job->rows);
  captured_close(&job->captured);
  encoder_input_close(&job->encoder);
  dictionary_input_close(&job->dictionary);
  arena_free(&job->arena);
  free(job);
}

/* Begin the identity with the values of options that take effect.  With --row-range, but without
 * --join, the range of rows is one of them. */
static int identity_begin(struct run *run, const struct encode_options *o,
                          const struct encode_state *job)
{
  const struct encode_task *t = &job->task;
  struct encode_options r = *o;
  char range[64];
  snprintf(range, sizeof range, "%lld:%lld", (long long)job->part.first,
           (long long)(job->part.first + job->source.n));
  if (o->join) r.row_range = NULL; /* the ranges make one result of all rows */
  if (r.row_range)
    r.row_range = range; /* the cosine limit stays as it was given */
  else
    r.cosine_limit = cosine_limit_resolved(r.cosine_limit, t->atoms->k);
  r.top_s = t->top_s;
  r.rounds = t->rounds;
  r.codes = t->nonnegative ? "nonnegative" : "signed";
  if (o->encoder && !t->solves) r.codes = "own";
  return identity_text_begin(&run->identity, run->command->options, &r);
}

int encode_identity_begin(struct identity_text *identity, const struct encode_task *t)
{
  const struct encode_options o = {.top_s = t->top_s,
                                   .rounds = t->rounds,
                                   .codes = t->nonnegative ? "nonnegative" : "signed",
                                   .normalize = t->normalize,
                                   .rho = t->rho,
                                   .cosine_limit =
                                       cosine_limit_resolved(t->max_cosine, t->atoms->k)};
  return identity_text_begin(identity, command_encode.options, &o);
}

/* Publish the result so far, at a save or at the end.  Called on rank 0. */
static int result_close(void *self)
{
  struct encode_state *job = self;
  return encode_close(&job->files, &job->result);
}

/* Claim the output path.  If an earlier run has done some rows, the task is for the other rows. */
static int files_open(struct run *run, const struct encode_options *o, struct encode_state *job)
{
  struct encode_files *f = &job->files;
  struct encode_task *task = &job->task;
  const struct run_inputs inputs = {.name = {job->dictionary.file}, .rows = &job->rows};
  f->first = job->part.first;
  f->n = job->source.n;
  f->is_part = o->row_range != NULL;
  f->joins = o->join;
  f->task = task;
  f->all = &job->rows.source;
  if (run->comm.rank == 0) f->rows_files = rows_input_mark(&job->rows);
  if (run->comm.rank == 0) f->inputs = rows_input_facts(&job->rows);
  f->common.grows = task->by_ranks || o->join;
  f->job = (struct job){.run = run, .output = o->output, .resume = o->resume};
  TRY(encode_files_open(f, &inputs));
  run->max_seconds = o->max_seconds;
  job->saves = (struct encode_saves){.files = f, .publish = result_close, .self = job};
  f->job.save_seconds = o->save_seconds; /* 0: never */
  task->wishes = job_wishes(&f->job);
  return OK;
}

/* With --l0: take the cuts of the earlier run, if there was one. */
static int cuts_resume(struct run *run, struct encode_state *job)
{
  struct encode_files *f = &job->files;
  int has = f->job.done > 0 || f->job.is_complete;
  if (!job->task.cuts || !has) return OK;
  if (run->comm.rank == 0) job->cuts = f->before.supports.cuts;
  TRY(comm_agree(&run->comm, OK));
  return comm_broadcast(&run->comm, &job->cuts, sizeof job->cuts, 1);
}

/* With --l0: check that the cuts were found from the rows that were encoded.  `merge` does this for
 * parts. */
static int cuts_confirm(struct run *run, const struct encode_state *job)
{
  uint64_t rows = job->result.inputs.rows;
  int is_whole = run->comm.rank == 0 && rows;
  return comm_agree(&run->comm,
                    is_whole ? cuts_rows_check(job->task.cuts, rows, job->files.job.place.shown)
                             : OK);
}

/* If a mean is subtracted: warn if these rows have another scale than the fitted rows.  If none is,
 * advise to subtract it, unless the dictionary was fitted without a mean or --encoder is given. */
static void mean_advise(const struct run *run, const struct encode_options *o,
                        const struct encode_state *job)
{
  static const char mend[] = "subtract it by --center";
  const struct encode_task *t = &job->task;
  if (t->mean && t->codes)
    advice_scale(&job->result.metrics, job->dictionary.norm, job->dictionary.file);
  if (run->comm.rank || t->mean || o->encoder || job->dictionary.rounds) return;
  if (t->codes)
    advice_mean(&job->result.metrics, job->dictionary.file, mend);
  else if (o->rows)
    advice_first_mean(t->rows, job->dictionary.file, mend);
}

/* Announce how many bytes the job writes and reads after it is asked to stop.  It writes the three
 * blocks that are in flight.  Then it reads the finished part of the result again as a whole; but
 * of a growing file it reads only the bytes that are not yet checked, at most 256 MiB. */
static void ending_set(const struct encode_state *job)
{
  const struct encode_task *t = &job->task;
  gidx entry = 2 * (gidx)sizeof(float) + (t->codes ? t->atoms->d * (gidx)sizeof(float) : 0);
  gidx turn = (gidx)t->block * (job->files.common.grows ? 1 : t->groups) * t->top_s * entry;
  pace_ending_set(3 * turn, job->files.common.grows ? 256 << 20 : INT64_MAX);
}

/* Print the lines or the object of --dry-run.  Other ranks than 0 return at once. */
static int plan_print(const struct run *run, const struct encode_options *o,
                      const struct encode_task *t)
{
  struct plan_rates r;
  struct times times;
  if (run->comm.rank) return OK;
  CHECK(!o->rates || !(t->encoder || o->capture), ERR_USAGE,
        "'--rates' does not go with '--%s', for which no rate is measured: leave it out",
        o->capture  ? "capture"
        : o->l0 > 0 ? "l0"
                    : "encoder");
  TRY(report_rates_read(run, o->rates, t->threads, t->device, &r, &times));
  if (r.path) encode_times(t, run->comm.size, &r.rates, &times);
  if (r.path && o->center)
    times_add(&times, "mean",
              (double)t->rows->n * t->rows->row_bytes / rate_at(&r.rates, RATE_READ, 1, 1, 1));
  return encode_plan_print(run, t, &r, &times);
}

static int encode_command(struct run *run, const void *options, const char **arguments)
{
  const struct encode_options *o = options;
  struct encode_state *job;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&job, sizeof *job)));
  TRY(comm_agree(&run->comm, detect_take(job, (struct encode_options *)options)));
  TRY(inputs_agree(&run->comm, inputs_open(run, job, (struct encode_options *)options)));
  if (o->row_range && job->source.n == 0 && job->rows.source.n > 0) {
    log_info("'%s' has %lld rows, and '--row-range' is %s: this task has no rows, and does nothing",
             job->rows.source.name, (long long)job->rows.source.n, o->row_range);
    job_free(job);
    return OK;
  }
  TRY(task_fill(run, o, job));
  if (o->join)
    TRY(comm_agree(&run->comm, encode_ranges_check(&job->task, job->rows.source.n, job->part.first,
                                                   job->part.first + job->source.n)));
  job->task.by_ranks = encode_ranks_may(&job->task, run->comm.size);
  if (o->dry_run) {
    TRY(comm_agree(&run->comm, plan_print(run, o, &job->task)));
    job_free(job);
    return OK;
  }
  TRY(encode_memory_check(&job->task, &run->comm));
  TRY(comm_agree(&run->comm, identity_begin(run, o, job)));
  TRY(files_open(run, o, job));
  TRY(cuts_resume(run, job));
  ending_set(job);
  stop_listen();
  TRY(threads_report(run, o->compute.threads));
  TRY(mean_find(run, o, job));
  if (job->files.job.is_complete) {
    TRY(job_complete(&job->files.job));
    job_free(job);
    return OK;
  }
  TRY(job_begin(&job->files.job));
  TRY(encode_ranks_begin(&job->files));
  double begun = log_seconds();
  encode_saves_begin(&job->saves);
  for (int more = 1; more;) {
    TRY(encode_run(&job->task, &run->comm, &job->result));
    TRY(encode_saves_take(&job->saves, &job->result, &more));
  }
  team_spare_set((int)job->task.threads); /* all threads are free: nothing computes any more */
  TRY(encode_files_join(&job->files, &job->result));
  TRY(cuts_confirm(run, job));
  TRY(encode_report(run, &job->files, &job->task, &job->result, log_seconds() - begun));
  if (o->capture) TRY(captured_report(&run->comm, &job->captured.in));
  mean_advise(run, o, job);
  TRY(job_finish(&job->files.job, result_close, job));
  if (o->join && !run->stopped)
    log_info("joined  rows %lld to %lld: when all rows are done, `sagitta merge` of the folder "
             "publishes them",
             (long long)job->files.first, (long long)(job->files.first + job->files.n - 1));
  else if (!(run->stopped && job->files.common.grows))
    log_info("wrote   %s", job->files.job.place.shown);
  job_free(job);
  return OK;
}

const struct command command_encode = {"encode",    "rows + dictionary -> supports, codes, metrics",
                                       &encode_set, sizeof(struct encode_options),
                                       1,           encode_command};

const struct command command_route = {
    "route",    "rows + dictionary -> supports and scores, no codes",
    &route_set, sizeof(struct encode_options),
    1,          encode_command};
