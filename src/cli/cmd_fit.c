/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta fit: rows -> a dictionary, evaluated on held-out rows, and codes of all rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/pace.h"
#include "base/status.h"
#include "base/stop.h"
#include "job/checkpoint.h"
#include "model/advice.h"
#include "io/input_agreement.h"
#include "cli/encode_report.h"
#include "cli/fit_choose.h"
#include "cli/fit_find.h"
#include "cli/fit_atoms.h"
#include "cli/fit_job.h"
#include "cli/report.h"
#include "encoding/encode_ranks.h"
#include "encoding/encode_saves.h"
#include "job/threads.h"
#include "io/dictionary.h"
#include "io/labels.h"
#include "io/supports.h"
#include "job/summary.h"
#include "model/directions.h"
#include "refit/frames.h"
#include "model/identity.h"
#include "model/route.h"
#include "model/split.h"

#define AT(member) offsetof(struct fit_options, member)

static const struct option_row input_rows[] = {
    ROWS_OPTION(AT(rows)),
    CAPTURE_OPTION(AT(capture)),
    HOLDOUT_OPTION(AT(holdout)),
    {"holdout-share", OPTION_REAL, AT(asked.held_out_fraction), "0.1", 0, 0.9, NULL, "SHARE",
     "hold out about this share of --rows, at most about 65,536 rows: each window of 128 rows is "
     "drawn with this probability, so with few rows the share may be far off. No atom is "
     "fitted to held-out rows: they decide when the fit ends and which sweep is its result; 0: "
     "no row is held out, and the fitted rows decide",
     .effect = OPTION_BITS},
    MAX_NORM_OPTION(AT(max_norm)),
    UNCENTERED_OPTION(AT(uncentered)),
};

static const struct option_row fit_rows[] = {
    {"atoms", OPTION_INT, AT(asked.k), NULL, 1, 1 << 30, NULL, "COUNT", "number of atoms to learn",
     .effect = OPTION_BITS},
    {"find", OPTION_CHOICE, AT(find), "stable", 0, 0, "stable|codes|features", NULL,
     "stable: atoms that another seed finds again; rows have few atoms while atoms are fitted, "
     "and four times as many when they are encoded. codes: atoms that describe rows best; rows "
     "have the same number of atoms in both steps. features: atoms that fire where the features "
     "of rows do; --l0 says how many per row on average; such a fit makes a fixed number of "
     "updates instead of sweeps, and of the options of this group it takes only --atoms, --l0 and "
     "--seed",
     .effect = OPTION_BITS},
    {"l0", OPTION_REAL, AT(l0), "0", 0, 1 << 30, NULL, "ATOMS",
     "required with --find features: active atoms per row on average, such as 25 or 2.5; at "
     "most 100",
     .effect = OPTION_BITS},
    {"top-s", OPTION_TEXT, AT(top_s_text), NULL, 0, 0, NULL, "ATOMS",
     "atoms per row while atoms are fitted, 1 to 256: if it is small, another seed finds more of "
     "the atoms again. auto tries four numbers: --encode-s, and 1/2, 1/4 and 1/8 of it. Without "
     "--encode-s, which --find codes requires, the first is 32, or --atoms if that is less. It "
     "fits each half of the rows with each number, and drops numbers whose atoms explain rows, "
     "or predict --labels, "
     "clearly worse than the best. Of the others it takes the largest, unless atoms of a smaller "
     "one agree clearly more between the two halves (default: 8, at most --encode-s; with --find "
     "codes 32)",
     .effect = OPTION_BITS},
    {"labels", OPTION_TEXT, AT(labels), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "for --top-s auto: labels that atoms should predict, a whole number for each row, such as "
     "its token (default path: /token)",
     .effect = OPTION_RUN, .flags = OPTION_INPUT},
    {"encode-s", OPTION_INT, AT(encode_s), "0", 0, MAX_TOP_S, NULL, "ATOMS",
     "atoms per row in supports.h5; `encode` with this dictionary takes the same number by "
     "default. More atoms explain more; 0: four times --top-s, but at most 256 and at most "
     "--atoms; with --find codes: --top-s",
     .effect = OPTION_BITS},
    {"codes", OPTION_CHOICE, AT(codes), "nonnegative", 0, 0, "nonnegative|signed", NULL,
     "may codes be negative?", .effect = OPTION_BITS},
    {"rounds", OPTION_INT, AT(asked.rounds), "8", 1, MAX_TOP_S, NULL, "COUNT",
     "rounds in which the atoms of a row are chosen: the first takes the largest scores, each "
     "later one the largest scores of the residual, the part of the row that the codes so far do "
     "not explain; at most the number of atoms per row",
     .effect = OPTION_BITS},
    {"rho", OPTION_REAL, AT(asked.rho), "0.1", 0, 1e30, NULL, "PENALTY",
     "ridge penalty on the codes while fitting; the final codes have none", .effect = OPTION_BITS},
    {"update", OPTION_CHOICE, AT(update), "auto", 0, 0, "auto|atoms|joint|conjugate", NULL,
     "how a sweep moves the atoms. atoms: each by a system of equations of its own; joint: all at "
     "once by the normal equations; conjugate: all at once by conjugate gradients, on CPUs, "
     "without joint's matrix of --atoms times --atoms numbers. auto with --minibatch: joint, or "
     "conjugate if --atoms is above 131072. auto without it: joint if --atoms is at most 16384 "
     "and the square of --atoms is at most 16 * --top-s times the number of rows; otherwise atoms",
     .effect = OPTION_BITS},
    {"passes", OPTION_INT, AT(asked.passes), "4", 1, 1000, NULL, "COUNT",
     "with --update joint: passes of the solver over all atoms in one sweep; with --update "
     "conjugate: steps of the solver in one sweep",
     .effect = OPTION_BITS},
    {"directions", OPTION_INT, AT(asked.directions), "1", 1, MAX_DIRECTIONS, NULL, "COUNT",
     "number of directions in which an atom can move in a sweep of --update atoms; 1: only along "
     "the gradient. Each further direction costs a pass over the rows of the atom, and explains a "
     "little more per sweep",
     .effect = OPTION_BITS},
    {"relaxation", OPTION_REAL, AT(asked.relaxation), "0", 0, 1.99, NULL, "FACTOR",
     "factor that lengthens the step of each atom: with a factor above 1, fewer sweeps reach the "
     "same result; 0: 1.5 if --rho is at most 0.1, otherwise 1. With --minibatch the factor is "
     "always 1. Once a sweep explains less of the fitted rows than the sweep before, the factor "
     "is 1 for the rest of the fit",
     .effect = OPTION_BITS},
    {"revive-share", OPTION_REAL, AT(asked.resample_fraction), "0.05", 0, 1, NULL, "SHARE",
     "largest share of the atoms that a sweep replaces. Unused atoms, and near copies of "
     "others, are replaced by the worst described rows",
     .effect = OPTION_BITS},
    {"twin-cosine", OPTION_REAL, AT(asked.duplicate_cosine), "0.95", 0.5, 1, NULL, "COSINE",
     "two atoms are near copies if their |cosine| is above this; the one with fewer rows is "
     "replaced; 1: no atom is replaced as a copy",
     .effect = OPTION_BITS},
    {"minibatch", OPTION_TEXT, AT(minibatch), "auto", 0, 0, NULL, "ROWS",
     "number of fitted rows that are in memory at a time. If it is less than all, each sweep "
     "reads one minibatch of this many rows, and moves the atoms by sums over this minibatch and "
     "all earlier ones; the weight of a minibatch falls with its age. none or 0: all rows. auto: "
     "all rows if they fit, otherwise the smallest power of 4 that is at least 65536 and at least "
     "256 * --atoms / --top-s. The atoms depend on this number. With --update atoms, auto is none",
     .effect = OPTION_BITS},
    {"seed", OPTION_LONG, AT(asked.seed), "0", 0, 0x1p53, NULL, "NUMBER",
     "number from which the first atoms and the held-out rows are drawn", .effect = OPTION_BITS},
    {"seeds", OPTION_INT, AT(seeds), "1", 1, SEEDS_MOST, NULL, "COUNT",
     "seeds to fit, one after another: --seed and the numbers that follow it. The first fit is "
     "the result; the others show which of its atoms another seed finds again; 2 or 3 seeds are "
     "usually enough",
     .effect = OPTION_BITS},
    {"detectors", OPTION_FLAG, AT(detectors), "no", 0, 1, NULL, NULL,
     "also make a detector for each atom, a linear score and a threshold, as `sagitta detect` "
     "does: `encode --detect` then says which atoms fire in a row, and solves no codes",
     .effect = OPTION_BITS},
};

static const struct option_row end_rows[] = {
    {"tolerance", OPTION_REAL, AT(asked.tolerance), "0.0001", 0, 1, NULL, "GAIN",
     "end when five sweeps (with --minibatch, five passes over the rows) together raise the "
     "explained variance of the held-out rows by less than this",
     .effect = OPTION_EXTENT},
    {"sweeps", OPTION_LONG, AT(asked.sweeps), "100", 0, 1 << 20, NULL, "COUNT",
     "largest number of sweeps; with --minibatch, largest number of passes over the rows",
     .effect = OPTION_EXTENT},
    {"max-seconds", OPTION_REAL, AT(asked.max_seconds), "0", 0, 1e9, NULL, "SECONDS",
     "begin no sweep that is expected to end more than SECONDS after the start; 0: no limit",
     .effect = OPTION_EXTENT},
};

static const struct option_row speed_rows[] = {
    THREADS_OPTION(AT(asked.threads)),
    DEVICE_OPTION(AT(asked.device)),
    CPU_VARIANT_OPTION(AT(asked.variant), "instruction set of CPU loops"),
    FILTER_OPTION(AT(asked.filter)),
    {"share", OPTION_CHOICE, AT(asked.share), "auto", 0, 0, SHARE_CHOICES, NULL,
     "with --update joint or conjugate on CPUs: the ranks of a node share one copy of the "
     "supports and codes of all rows (8 bytes per code), and of the rows of the Gram "
     "matrix that are exchanged, about 256 MB at a time. "
     "auto: if the node allows shared memory; no: every rank has its own copy, as it always has "
     "with joint on GPUs. The choice changes no bit",
     .effect = OPTION_RUN},
    {"resume", OPTION_FLAG, AT(resume), "no", 0, 1, NULL, NULL,
     "continue the earlier run at --output with the same rows. You may change only --sweeps, "
     "--tolerance, --max-seconds and options that change no bit of the result. A resumed run "
     "gives the bytes of a run without a stop. Without an earlier run the fit starts anew",
     .effect = OPTION_RUN},
    SAVE_SECONDS_OPTION(AT(save_seconds), ", or the unfinished encoding after the last sweep,",
                        "save only on a stop request, or with --find features after each update"),
    COSINE_LIMIT_OPTION(AT(cosine_limit)),
    DRY_RUN_OPTION(AT(dry_run)),
    RATES_OPTION(AT(rates)),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Dictionary", fit_rows, LENGTH(fit_rows), 0},
    {"End", end_rows, LENGTH(end_rows), 0},
    {"Result", folder_rows, OUTPUT_ROWS, AT(output)},
    {"Speed and report", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set fit_set = {
    .command = "sagitta fit",
    .arguments = "[DECK]",
    .doc =
        "Learn a dictionary from rows, and say how much it explains of rows that it never saw."
        "\v"
        "The first atoms are drawn from the rows.  A sweep moves every atom, replaces atoms that "
        "no row uses, and finds the supports and codes of the fitted rows again; then the "
        "held-out rows are encoded.  The fit ends when further sweeps explain no more of the "
        "held-out rows.  The result is the sweep with the largest explained variance of the "
        "held-out rows.  There is no learning rate.  The bytes of the datasets depend on the rows "
        "and the options alone, not on ranks or threads.  There are two exceptions.  With "
        "--max-seconds the bytes also depend on how many sweeps the machine made in that time.  "
        "Where the rows do not fit in memory, the bytes are those of a fit with --minibatch.\n\n"
        "If rows have few atoms during the fit, another seed finds far more of the atoms again.  "
        "If rows are then encoded with more atoms per row, they are described nearly as well as "
        "in a fit with that many.  So --find stable, the default, fits with 8 atoms per row and "
        "encodes with 32; --find codes fits with 32, and explains a little more.\n\n"
        "--seeds 3 also fits two other seeds, and pairs each atom of the first fit with one atom "
        "of each other fit.  The stability of an atom is the larger of its two cosines with these "
        "partners; dictionary.h5 has it as /stability.  `inspect` and the log summarise it, and "
        "`export --stable 0.9` takes the atoms whose stability is at least 0.9.\n\n"
        "After each sweep that is the best so far, the folder of --output gets dictionary.h5.  "
        "After each of the other sweeps it gets state.h5; with --minibatch it gets state.h5 after "
        "every sweep.  --resume continues from these files.  At the end the folder gets "
        "supports.h5, with the codes of all rows.\n\n"
        "To stop a running job, create a file STOP in the folder of --output, " STOP_SIGNALS
        "A stopped job ends with exit code 75 as soon as it can.  Usually it stops in the part of "
        "a sweep that moves atoms, and sweep.h5 has the atoms that have moved.  If it stops later "
        "in the sweep, while it chooses atoms for rows or solves codes, the stop saves "
        "nothing.  If an earlier save has all moved atoms (see --save-seconds), --resume repeats "
        "only this choice and these codes, otherwise the whole sweep.  With --minibatch, and with "
        "--update atoms on a GPU, "
        "sweep.h5 is never written.  If it is encoding all rows at the end, it stops after the "
        "current block of rows.  If it is fitting another seed, --resume repeats that fit.\n\n"
        "  mpirun -n 4 sagitta fit --rows acts.h5 --atoms 4096 --output run/\n"
        "  sagitta inspect run/dictionary.h5\n"
        "  sagitta encode --rows more.h5 --dictionary run/dictionary.h5 --output more/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* Refuse an option that the update does not use.  If auto chose the update, only warn. */
static int update_options_check(const struct fit_job *j, enum fit_update update)
{
  static const struct option_advice of_all = {"directions", "all atoms move at once"};
  static const struct option_advice of_each = {"passes", "each atom is solved by itself"};
  const struct option_advice *bad = fit_moves_all(update) ? &of_all : &of_each;
  if (update == UPDATE_AUTO || !options_first_set(j->run->command->options, j->o, bad, 1))
    return OK;
  CHECK(!strcmp(j->o->update, "auto"), ERR_USAGE,
        "'--%s' does not go with '--update %s': %s; leave it out", bad->key, j->o->update,
        bad->advice);
  if (j->run->comm.rank == 0)
    log_warn("'--%s' does nothing: '--update auto' took '%s', and %s", bad->key,
             fit_update_name(update), bad->advice);
  return OK;
}

/* Refuse --rates without --dry-run, and with options whose work is not known, or for which no rate
 * is measured. */
static int rates_option_check(const struct fit_options *o)
{
  TRY(report_rates_check(o->rates, o->dry_run));
  CHECK(!o->rates || !(o->capture || o->detectors || o->labels || !o->top_s), ERR_USAGE,
        "'--rates' does not go with '--%s', for which no rate is measured: leave it out",
        o->capture     ? "capture"
        : o->detectors ? "detectors"
        : o->labels    ? "labels"
                       : "top-s auto");
  return OK;
}

static int inputs_open(struct fit_job *j)
{
  const struct fit_options *o = j->o;
  struct comm *c = &j->run->comm;
  TRY(rows_or_capture_check(o->rows, o->capture));
  TRY(fit_numbers_settle((struct fit_options *)o));
  CHECK(o->l0 == 0, ERR_USAGE,
        "'--l0' is an average number of atoms: add '--find features', or give '--top-s', the "
        "number in each row");
  CHECK(o->asked.k, ERR_USAGE, "'--atoms' is missing: give the number of atoms to learn");
  TRY(rates_option_check(o));
  if (!o->dry_run) TRY(output_folder_check(&o->output));
  const struct device_options harvests = {.p = 1,
                                          .d = 1,
                                          .threads = threads_default(j->run, o->asked.threads),
                                          .variant = o->asked.variant,
                                          .kind = o->asked.device,
                                          .local_rank = c->local_rank};
  TRY(rows_or_capture_open(&j->rows, &j->captured, c, o->rows, o->capture, &harvests));
  if (o->labels)
    TRY(labels_read(o->labels, j->rows.source.n, j->rows.source.name, &j->arena, &j->labels));
  if (o->holdout) TRY(rows_input_open(&j->holdout, c, o->holdout));
  if (o->holdout) TRY(rows_inputs_disjoint(&j->holdout, "--holdout", &j->rows, "--rows"));
  CHECK(!o->asked.relaxation || o->asked.relaxation >= 1, ERR_USAGE,
        "'--relaxation' is %g: give 1 to 1.99, or 0, so that fit chooses it", o->asked.relaxation);
  CHECK(!o->encode_s || o->encode_s >= o->top_s, ERR_USAGE,
        "'--encode-s' is %d, less than the %d of '--top-s': rows are encoded with as many atoms as "
        "they are fitted with, or more",
        o->encode_s, o->top_s);
  TRY(fit_parts_parse(&j->parts, o->minibatch));
  CHECK(j->parts.rows <= 0 || strcmp(o->update, "atoms"), ERR_USAGE,
        "'--minibatch' does not go with '--update atoms': leave one of them out");
  TRY(update_options_check(j, fit_update_of(o->update)));
  return arena_alloc(&j->arena, &j->mean, j->rows.source.p, sizeof *j->mean);
}

/* With a large penalty, codes leave a part of each row unexplained, and all atoms of the row move
 * towards this part.  So a longer step would overshoot. */
static real relaxation_of(const struct fit_task *t)
{
  if (t->relaxation > 0) return t->relaxation;
  return t->rho <= 0.1 ? 1.5 : 1;
}

static void task_fill(struct fit_job *j)
{
  const struct fit_options *o = j->o;
  struct fit_task *t = &j->task;
  *t = o->asked;
  t->rows = &j->rows.source;
  t->held = o->holdout ? &j->holdout.source : NULL;
  t->d = 1;
  t->top_s = o->top_s ? o->top_s : o->encode_s;
  t->rounds = (idx)imin(t->rounds, imin(o->top_s, t->k));
  t->center = !o->uncentered;
  t->nonnegative = strcmp(o->codes, "nonnegative") == 0;
  t->relaxation = relaxation_of(t);
  t->update = fit_update_of(o->update);
  /* a copy of the best atoms, and with --seeds the atoms of another seed */
  t->beside = (o->seeds > 1 ? 2 : 1) * (gidx)t->k * j->rows.source.p * (gidx)sizeof(float);
  t->threads = threads_default(j->run, t->threads);
}

/* The number of atoms per row in supports.h5: at most K. */
static idx encode_width(const struct fit_options *o)
{
  return (idx)imin(o->encode_s ? o->encode_s : o->top_s, o->asked.k);
}

static idx encode_rounds(const struct fit_options *o)
{
  return (idx)imin(o->asked.rounds, encode_width(o));
}

/* Options with the values that take effect; options without effect in this fit get a fixed
 * value. */
static struct fit_options options_resolve(const struct fit_job *j)
{
  const struct fit_task *t = &j->task;
  struct fit_options r = j->settled;
  r.update = fit_update_name(t->update);
  r.asked.relaxation = t->relaxation;
  r.asked.rounds = encode_rounds(j->o); /* sweeps use no more than --top-s rounds */
  r.encode_s = encode_width(j->o);
  r.find = "codes"; /* --find only sets the numbers above */
  r.cosine_limit = cosine_limit_resolved(r.cosine_limit, t->k);
  if (fit_moves_all(t->update))
    r.asked.directions = 0;
  else
    r.asked.passes = 0;
  if (r.holdout) r.asked.held_out_fraction = 0;
  return r;
}

/* Add the shape of the rows to the identity, as encode does.  A fit by parts (--minibatch) has no
 * hash of all rows, so it adds the hash of a sample. */
static int rows_name(const struct fit_job *j, struct identity_text *t)
{
  const struct row_source *rows = &j->rows.source;
  uint64_t sample;
  TRY(identity_text_input(t, "rows_shape", "%lld x %d", (long long)rows->n, rows->p));
  if (!j->files.has_parts) return OK;
  TRY(encode_sample(rows, &sample));
  return identity_text_hash(t, "rows_sample", sample);
}

/* Begin the identity: what the atoms depend on, as far as it is known before rows are read. */
static int identity_begin(struct fit_job *j)
{
  struct identity_text *t = &j->run->identity;
  const struct fit_options r = options_resolve(j);
  TRY(identity_text_begin(t, j->run->command->options, &r));
  TRY(identity_text_input(t, "held_out_rows", r.holdout ? "of --holdout" : "of --rows"));
  return j->run->comm.rank ? OK : rows_name(j, t);
}

/* Decide the rows per part (--minibatch); used.in then has the number.  earlier: as for
 * fit_parts_settle(). */
static int parts_settle(struct fit_job *j, gidx earlier)
{
  TRY(fit_parts_settle(&j->parts, &j->task, &j->run->comm, earlier));
  j->settled = *j->o;
  j->settled.minibatch = j->parts.text;
  j->run->options = &j->settled;
  return OK;
}

static int outputs_open(struct fit_job *j)
{
  const struct run_inputs inputs = {.rows = &j->rows,
                                    .holdout = j->o->holdout ? &j->holdout : NULL};
  struct fit_files *files = &j->files;
  struct fit_task *t = &j->task;
  gidx earlier;
  files->extra = &j->extra;
  files->mean = t->center ? j->mean : NULL;
  files->write = &j->result.phases[FIT_WRITE];
  files->job = (struct job){.run = j->run, .output = j->o->output, .resume = j->o->resume};
  TRY(fit_files_claim(files, &earlier));
  TRY(fit_top_s_choose(j));
  TRY(parts_settle(j, earlier));
  t->update = fit_update_choose(t, (idx)imin(t->top_s, t->k));
  files->k = t->k;
  files->p = j->rows.source.p;
  files->nonnegative = t->nonnegative;
  files->is_conjugate = t->update == UPDATE_CONJUGATE;
  files->has_parts = t->minibatch > 0 && t->minibatch < j->fitted;
  files->rounds = encode_rounds(j->o);
  files->job.device = j->result.device;
  files->job.threads = t->threads;
  files->top_s = encode_width(j->o);
  TRY(comm_agree(&j->run->comm, identity_begin(j)));
  TRY(fit_files_open(files, &inputs));
  if (files->job.is_resumed) t->start = &files->start;
  if (files->start.gram) t->beside += (gidx)t->k * (t->k + files->p) * (gidx)sizeof(real);
  summary_format_set("sagitta fit");
  if (j->run->comm.rank == 0 && files->job.is_resumed)
    log_info("resume  after sweep %lld of '%s'%s", (long long)files->start.sweep,
             files->job.place.shown,
             files->start.sweep < t->sweeps
                 ? ""
                 : ": no sweep is left of --sweeps, so only the rows are encoded again");
  if (j->run->comm.rank == 0) fit_top_s_log(j);
  if (j->run->comm.rank == 0) fit_parts_log(&j->parts);
  if (j->run->comm.rank == 0) log_info("update  %s", fit_update_says(t->update));
  TRY(update_options_check(j, t->update));
  if (!j->o->capture) advice_shape(t->rows); /* harvested rows are not transposed */
  advice_top_s((idx)imax(t->top_s, j->o->encode_s), t->k);
  TRY(fit_seeds_open(j));
  TRY(fit_detectors_check(j));
  return threads_report(j->run, j->o->asked.threads);
}

static int facts_of(const struct fit_job *j, struct run_fact *facts)
{
  return run_facts(j->run, j->result.device, j->task.threads, facts);
}

static void encode_fill(struct fit_job *j)
{
  const struct fit_task *t = &j->task;
  j->atoms = (struct atom_array){j->files.best, t->k, 1, j->rows.source.p};
  j->source = atom_array_source(&j->atoms, j->o->output.output);
  j->encode = (struct encode_task){.rows = &j->rows.source,
                                   .atoms = &j->source,
                                   .mean = t->center ? j->mean : NULL,
                                   .sink = &j->supports.file.sink,
                                   .top_s = encode_width(j->o),
                                   .rounds = encode_rounds(j->o),
                                   .threads = t->threads,
                                   .device = t->device,
                                   .variant = t->variant,
                                   .filter = t->filter,
                                   .codes = 1,
                                   .nonnegative = t->nonnegative,
                                   .max_cosine = j->o->cosine_limit};
}

/* Announce the bytes that a stop writes: the atoms of the last two sweeps, since the atoms of the
 * earlier one may not be on disk yet.  Without --minibatch also sweep.h5.  With --minibatch also
 * the Gram matrix and the sums of rows, or with --update conjugate one weight per atom. */
static void ending_set(const struct fit_job *j)
{
  gidx k = j->task.k, p = j->rows.source.p;
  gidx bytes = 2 * k * p * (gidx)sizeof(float);
  if (!j->task.minibatch) bytes += k * p * (gidx)sizeof(real); /* sweep.h5 */
  int has_weights = j->task.update == UPDATE_CONJUGATE;
  if (j->task.minibatch) bytes += k * (has_weights ? 1 : k + p) * (gidx)sizeof(real);
  pace_ending_set(bytes, 0);
}

static int block_drop(void *self, const struct support_block *block)
{
  (void)self;
  (void)block;
  return OK;
}

/* If encode_s is set: evaluate the held-out rows with as many atoms per row as supports.h5 has.
 * Collective. */
static int held_out_encode(struct fit_job *j)
{
  static const struct support_sink nowhere = {NULL, block_drop};
  const struct fit_task *t = &j->task;
  const struct split_task task = {t->rows, t->held, t->held_out_fraction, FIT_HELD_MOST, t->seed};
  struct comm *c = &j->run->comm;
  struct row_split split = {0};
  struct row_source fitted, held_out = {0};
  struct encode_result result = {0};
  char reason[128];
  j->held_out_explained = nan_canonical();
  if (!j->o->encode_s || j->result.held_out_rows == 0) return OK;
  int status = comm_agree(c, split_open(&split, &task, &fitted, &held_out));
  encode_fill(j);
  j->encode.rows = &held_out;
  j->encode.sink = &nowhere;
  j->encode.no_cosine = 1;
  if (!status) status = encode_grid_choose(&j->encode, c, reason, sizeof reason);
  if (!status) status = encode_run(&j->encode, c, &result);
  if (!status && c->rank == 0) j->held_out_explained = result.metrics.explained_variance;
  encode_free(&result);
  split_free(&split);
  return status;
}

static int supports_end(void *self)
{
  struct fit_job *j = self;
  struct run_fact facts[MAX_FACTS];
  return encode_files_end(&j->supports, &j->encoded, facts, facts_of(j, facts));
}

/* Encode all rows with the best dictionary, without penalty, into supports.h5.  A resumed run
 * encodes only the rows that are left.  Like encode, this can be stopped between two blocks, and
 * finished blocks are saved every --save-seconds.  Collective. */
static int rows_encode(struct fit_job *j)
{
  struct run *run = j->run;
  struct comm *c = &run->comm;
  struct encode_files *f = &j->supports;
  struct encode_saves saves = {.files = f, .publish = supports_end, .self = j, .keeps_whole = 1};
  const struct row_source *rows = &j->rows.source;
  idx k = j->task.k, p = rows->p;
  char reason[128];
  uint64_t best = content_hash(items_terms(j->files.best, k, p, 0), k, 1, p);
  encode_fill(j);
  f->n = rows->n;
  f->task = &j->encode;
  f->all = rows;
  TRY(encode_files_resume(f, run, &j->files.job.more[FIT_SUPPORTS], j->files.job.is_resumed, best));
  TRY(encode_grid_choose(&j->encode, c, reason, sizeof reason));
  f->job.save_seconds = j->o->save_seconds;
  f->job.summary = j->files.job.summary;
  f->job.of = j;
  TRY(job_begin(&f->job));
  TRY(encode_ranks_begin(f));
  encode_saves_begin(&saves);
  for (int more = 1; more;) {
    TRY(encode_run(&j->encode, c, &j->encoded));
    TRY(encode_saves_take(&saves, &j->encoded, &more));
  }
  TRY(encode_files_join(f, &j->encoded));
  return job_finish(&f->job, supports_end, j);
}

/* Print the plan of the whole job; with --top-s auto, for the largest number that may be chosen.
 * Collective. */
static int plan_show(struct fit_job *j)
{
  struct fit_task *t = &j->task;
  struct comm *c = &j->run->comm;
  struct fit_forecast forecast;
  char reason[128];
  t->rounds = (idx)imin(j->o->asked.rounds, imin(t->top_s, t->k));
  j->files.top_s = encode_width(j->o);
  TRY(parts_settle(j, -1));
  TRY(fit_forecast(t, c, &forecast));
  encode_fill(j);
  j->encode.device = forecast.device;
  TRY(encode_grid_choose(&j->encode, c, reason, sizeof reason));
  return comm_agree(c, c->rank ? OK : fit_plan_show(j, &forecast));
}

/* Report the fit, after all files are written. */
static int end_report(struct fit_job *j)
{
  TRY(fit_seeds_count(j));
  j->has_ended = 1;
  j->seconds = log_seconds() - j->begun;
  fit_report(j);
  return OK;
}

/* Report, and write run.json.  This comes before the job is freed, since run.json has the options
 * in j->settled.  Rank 0. */
static int job_end(struct fit_job *j)
{
  if (!j->run->stopped) TRY(end_report(j));
  TRY(job_summary(&j->files.job));
  return summary_end(j->run);
}

static void job_free(struct fit_job *j)
{
  detect_free(&j->detected);
  encode_free(&j->encoded);
  encode_files_free(&j->supports);
  rows_input_close(&j->rows);
  captured_close(&j->captured);
  if (j->o->holdout) rows_input_close(&j->holdout);
  outliers_free(&j->outliers);
  fit_files_free(&j->files);
  j->run->options = j->o;
  arena_free(&j->arena);
  free(j);
}

static int fit_command(struct run *run, const void *options, const char **arguments)
{
  struct fit_job *j;
  (void)arguments;
  if (fit_finds_features(options)) return fit_find_command(run, options);
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  j->run = run;
  j->o = options;
  TRY(inputs_agree(&run->comm, inputs_open(j)));
  task_fill(j);
  /* A dry run does not read the rows, and so does not know which of them would be left out. */
  real most = j->o->dry_run ? 0 : j->o->max_norm;
  TRY(outliers_leave_out(&j->outliers, &run->comm, most, &j->task.rows, &j->task.held));
  TRY(comm_agree(&run->comm, fit_task_check(&j->task, &j->fitted)));
  if (j->o->dry_run) {
    TRY(plan_show(j));
    job_free(j);
    return OK;
  }
  TRY(outputs_open(j));
  outliers_log(&j->outliers, j->o->max_norm);
  j->begun = log_seconds();
  ending_set(j);
  stop_listen();
  fit_files_sink(j);
  TRY(fit_files_settle(j, fit_run(&j->task, &run->comm, &j->sink, &j->result)));
  if (!run->stopped) {
    TRY(fit_seeds_run(j));
  }
  if (!run->stopped) {
    TRY(held_out_encode(j));
    TRY(rows_encode(j));
  }
  if (!run->stopped) {
    TRY(fit_detectors_run(j));
  }
  TRY(report_phases(&run->comm, j->result.phases, FIT_PHASES));
  if (j->o->capture) TRY(captured_report(&run->comm, &j->captured.in));
  TRY(comm_agree(&run->comm, run->comm.rank ? OK : job_end(j)));
  job_free(j);
  return OK;
}

const struct command command_fit = {"fit",    "rows -> a dictionary, judged on unseen rows",
                                    &fit_set, sizeof(struct fit_options),
                                    1,        fit_command};
