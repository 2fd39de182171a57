/* SPDX-License-Identifier: BSD-3-Clause
 * All commands of sagitta-bench except verify, and their options. */
#include "bench/commands.h"

#include <string.h>

#include "base/status.h"
#include "bench/arrow.h"
#include "bench/dense.h"
#include "bench/harvest.h"
#include "bench/mixer.h"
#include "bench/rates.h"
#include "bench/route.h"
#include "bench/serve.h"
#include "bench/train.h"
#include "bench/triad.h"
#include "bench/update.h"
#include "bench/write.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"

struct bench_options {
  struct general_options general;
  struct bench_common common;
  struct bench_route_options route;
  struct bench_arrow_options arrow;
  struct bench_dense_options dense;
  struct bench_harvest_options harvest;
  struct bench_mixer_options mixer;
  struct bench_serve_options serve;
  struct bench_write_options write;
};
#define AT(member) offsetof(struct bench_options, member)

static const struct option_row common_rows[] = {
    {"repeats", OPTION_INT, AT(common.repeats), "5", 1, 1000, NULL, "COUNT",
     "number of runs, of which the median is taken", .effect = OPTION_RUN},
    {"threads", OPTION_INT, AT(common.threads), "1", 1, 4096, NULL, "COUNT", "threads",
     .effect = OPTION_RUN, .flags = OPTION_PER_RANK},
    CPU_VARIANT_OPTION(AT(common.cpu_variant), "instruction set"),
    {"device", OPTION_CHOICE, AT(common.device), "cpu", 0, 0, "cpu|cuda", NULL, "what computes",
     .effect = OPTION_RUN},
    {"kernels", OPTION_TEXT, AT(common.kernels), NULL, 0, 0, NULL, "FOLDER",
     "load GPU kernels from this folder instead of the built-in ones", .effect = OPTION_RUN,
     .flags = OPTION_INPUT},
};

static const struct option_table route_tables[] = {
    {"Shape", bench_shape_rows, BENCH_SHAPE_ROWS, AT(route)},
    {"Routing", bench_route_rows, BENCH_ROUTE_ROWS, AT(route)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};
static const struct option_table solve_tables[] = {
    {"Systems", bench_arrow_rows, BENCH_ARROW_ROWS, AT(arrow)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};
static const struct option_table terminal_tables[] = {
    {"Matrix", bench_dense_rows, BENCH_DENSE_ROWS, AT(dense)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};
static const struct option_table update_tables[] = {
    {"Shape", bench_shape_rows, BENCH_SHAPE_ROWS, AT(route)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};
static const struct option_table dense_tables[] = {
    {"Shape", bench_shape_rows, BENCH_SHAPE_ROWS - 1, AT(route)},
    {"Products", bench_product_rows, BENCH_PRODUCT_ROWS, AT(route)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};
static const struct option_table train_tables[] = {
    {"Shape", bench_shape_rows, BENCH_SHAPE_ROWS, AT(route)},
    {"Products", bench_product_rows, BENCH_PRODUCT_ROWS - 1, AT(route)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};
static const struct option_table harvest_tables[] = {
    {"Attention", bench_harvest_rows, BENCH_HARVEST_ROWS, AT(harvest)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static const struct option_table mixer_tables[] = {
    {"Gated delta net", bench_mixer_rows, BENCH_MIXER_ROWS, AT(mixer)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static const struct option_table serve_tables[] = {
    {"Shape", bench_shape_rows, BENCH_SHAPE_ROWS, AT(route)},
    {"Clients", bench_serve_rows, BENCH_SERVE_ROWS, AT(serve)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static const struct option_table write_tables[] = {
    {"Shape", bench_shape_rows, BENCH_SHAPE_ROWS, AT(route)},
    {"Files", bench_write_rows, BENCH_WRITE_ROWS, AT(write)},
    {"Measuring", common_rows, LENGTH(common_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static const struct option_row rates_rows[] = {
    {"repeats", OPTION_INT, AT(common.repeats), "2", 1, 64, NULL, "COUNT",
     "number of runs, of which the median is taken", .effect = OPTION_RUN},
    THREADS_OPTION(AT(common.threads)),
    CPU_VARIANT_OPTION(AT(common.cpu_variant), "instruction set"),
    {"device", OPTION_CHOICE, AT(common.device), "cpu", 0, 0, "cpu|cuda", NULL, "what computes",
     .effect = OPTION_RUN},
};

static const struct option_table rates_tables[] = {
    {"Files", bench_write_rows, BENCH_WRITE_ROWS, AT(write)},
    {"Measuring", rates_rows, LENGTH(rates_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static int measure(const struct bench_options *o, const char *what,
                   const struct bench_common *common, struct run *run)
{
  struct comm *c = &run->comm;
  if (strcmp(what, "rates") == 0) return bench_rates(&o->write, common, run);
  if (strcmp(what, "solve") == 0) return bench_arrow(&o->arrow, common, c);
  if (strcmp(what, "terminal") == 0) return bench_dense(&o->dense, common);
  if (strcmp(what, "update") == 0) return bench_update(&o->route, common);
  if (strcmp(what, "dense") == 0) return bench_triad(&o->route, common);
  if (strcmp(what, "train") == 0) return bench_train(&o->route, common, c);
  if (strcmp(what, "harvest") == 0) return bench_harvest(&o->harvest, common);
  if (strcmp(what, "mixer") == 0) return bench_mixer(&o->mixer, common);
  if (strcmp(what, "serve") == 0) return bench_serve(&o->serve, &o->route, common, c);
  if (strcmp(what, "write") == 0) return bench_write(&o->write, &o->route, common, c);
  return bench_route(&o->route, common);
}

static int ranks_check(const struct bench_options *o, const char *what, int ranks)
{
  int solve = strcmp(what, "solve") == 0, gpu = strcmp(o->common.device, "cuda") == 0;
  int several = !strcmp(what, "train") || !strcmp(what, "write") || !strcmp(what, "rates");
  CHECK(ranks == 1 || several || (solve && gpu), ERR_USAGE,
        "'%s' measures one rank: run it without mpirun%s", what,
        solve ? ", or add --device cuda" : "");
  return OK;
}

static int bench_command(struct run *run, const void *options, const char **arguments)
{
  const struct bench_options *o = options;
  const char *what = run->command->name;
  struct bench_common common = o->common;
  (void)arguments;
  if (strcmp(what, "rates") == 0) common.threads = threads_default(run, common.threads);
  TRY(comm_agree(&run->comm, ranks_check(o, what, run->comm.size)));
  struct json j;
  int tells = run->wants_json && run->comm.rank == 0;
  if (!tells) return measure(o, what, &common, run);
  TRY(facts_begin(run, &j));
  common.json = &j;
  json_text(&j, "benchmark", what);
  json_long(&j, "repeats", common.repeats);
  json_long(&j, "threads", common.threads);
  json_text(&j, "device", common.device);
  TRY(measure(o, what, &common, run));
  return facts_end(&j);
}

static const struct option_set route_set = {
    .command = "sagitta-bench route",
    .doc =
        "Measure routing and codes beside their limit and their peer."
        "\v"
        "GMAC/s counts one multiply and one add for every row, atom and column.  `peak` is a loop "
        "of multiplies and adds on registers: exact scores cannot be faster.  `sgemm` is the "
        "dense product of the same shape by OpenBLAS, if that is installed.  `worst order` has "
        "equal rows, and atoms that ascend by score, so that every atom enters the list.  "
        "`certified` routes the same rows with the filter.  `codes` solves the codes of the "
        "routed rows.  On a GPU, rows and atoms are in its memory already, and `peak` is what the "
        "clock allows.\n\n"
        "  sagitta-bench route --columns 384 --atoms 32768 --top-s 32\n"
        "  sagitta-bench route --device cuda --n-rows 16384 --columns 768",
    .tables = route_tables,
    .count = LENGTH(route_tables),
};
const struct command bench_route_command = {
    "route",    "routing and codes, beside their limit and a dense product",
    &route_set, sizeof(struct bench_options),
    1,          bench_command};

static const struct option_set solve_set = {
    .command = "sagitta-bench solve",
    .doc =
        "Measure the solving of arrow systems beside memory and two peers."
        "\v"
        "GB/s counts every number of the systems and of the steps once.  `memory` is a loop that "
        "only reads and writes these numbers; LAPACKE is a loop of dpotrf, dtrsm and dsyrk; "
        "PETSc, if it is installed, is its Cholesky of each bordered system, in Mrows/s.  On a "
        "GPU the systems are in its memory already, and are compared with copies inside its "
        "memory; `with copies` the systems come from page-locked memory of the host, as in "
        "`sagitta solve`, and the steps are copied back.  Ranks of mpirun divide the systems, and "
        "each has a GPU; the time is that of the slowest rank.\n\n"
        "  sagitta-bench solve --frame 2\n"
        "  sagitta-bench solve --device cuda --systems 4096\n"
        "  mpirun -n 2 sagitta-bench solve --device cuda --systems 200000 \\\n"
        "      --system-rows 64 --border 8",
    .tables = solve_tables,
    .count = LENGTH(solve_tables),
};
const struct command bench_solve_command = {
    "solve",    "arrow systems, beside the bandwidth of memory, LAPACKE and PETSc",
    &solve_set, sizeof(struct bench_options),
    1,          bench_command};

static const struct option_set terminal_set = {
    .command = "sagitta-bench terminal",
    .doc = "Measure the dense work of the terminal pass beside its peer."
           "\v"
           "One matrix is factored, its factor is inverted, and the inverse is multiplied with its "
           "transpose: n^3 / 6 multiply-adds each.  The peer of a CPU is dpotrf of OpenBLAS on the "
           "same matrix; a GPU has the matrix in its memory already.\n\n"
           "  sagitta-bench terminal --schur 4096\n"
           "  sagitta-bench terminal --schur 16384 --device cuda",
    .tables = terminal_tables,
    .count = LENGTH(terminal_tables),
};
const struct command bench_terminal_command = {
    "terminal",
    "dense work of the terminal pass, beside a Cholesky factor",
    &terminal_set,
    sizeof(struct bench_options),
    1,
    bench_command};

static const struct option_set update_set = {
    .command = "sagitta-bench update",
    .doc = "Measure the joint update of fit, without routing and codes."
           "\v"
           "The normal equations of the rows are added up; then come four passes of the descent.  "
           "The supports of the rows are drawn by a power law, with one atom in half of the rows.  "
           "Rates count fused multiply-adds.\n\n"
           "  sagitta-bench update --n-rows 24576 --atoms 4096 --columns 384 --top-s 32",
    .tables = update_tables,
    .count = LENGTH(update_tables),
};
const struct command bench_update_command = {"update",    "the joint update of fit",
                                             &update_set, sizeof(struct bench_options),
                                             1,           bench_command};

static const struct option_set dense_set = {
    .command = "sagitta-bench dense",
    .doc = "Measure products of dense matrices whose sums have an order."
           "\v"
           "Three products are measured: of --n-rows rows with a matrix of --columns inputs and "
           "--atoms outputs, of the outputs with its transpose, and the gradient of the matrix.  "
           "`peak` is what the fused multiply-adds of the device allow, or with --precision its "
           "matrix unit.  Without --stored matrices are f32 in memory, and are narrowed when they "
           "are read.\n\n"
           "  sagitta-bench dense --n-rows 16384 --columns 768 --atoms 32768 --device cuda",
    .tables = dense_tables,
    .count = LENGTH(dense_tables),
};
const struct command bench_dense_command = {"dense",    "products of dense matrices in their order",
                                            &dense_set, sizeof(struct bench_options),
                                            1,          bench_command};

static const struct option_set train_set = {
    .command = "sagitta-bench train",
    .doc = "Measure steps of `sagitta train` on one batch of rows."
           "\v"
           "A batch has --n-rows rows, divided among the ranks of mpirun.\n\n"
           "  sagitta-bench train --n-rows 8192 --columns 768 --atoms 32768 \\\n"
           "      --top-s 32 --device cuda",
    .tables = train_tables,
    .count = LENGTH(train_tables),
};
const struct command bench_train_command = {"train",    "steps of training, on all ranks",
                                            &train_set, sizeof(struct bench_options),
                                            1,          bench_command};

static const struct option_set harvest_set = {
    .command = "sagitta-bench harvest",
    .doc =
        "Measure causal attention of random streams."
        "\v"
        "Queries, keys and values are in memory already.  A multiply-add counts as two "
        "operations, and each number as moved once.  `peak` is the time of the fused "
        "multiply-adds alone; `copy` is a copy of the same number of bytes inside the memory of a "
        "GPU; `paged` has blocks in a random order.\n\n"
        "  sagitta-bench harvest --device cuda --heads 12 --positions 4096 \\\n"
        "      --head-columns 64\n"
        "  sagitta-bench harvest --device cuda --streams 32 --queries 1 --heads 32 \\\n"
        "      --kv-heads 8 --head-columns 128 --cells f16",
    .tables = harvest_tables,
    .count = LENGTH(harvest_tables),
};
const struct command bench_harvest_command = {"harvest",
                                              "attention, beside the peak and copies in memory",
                                              &harvest_set,
                                              sizeof(struct bench_options),
                                              1,
                                              bench_command};

static const struct option_set mixer_set = {
    .command = "sagitta-bench mixer",
    .doc =
        "Measure a call of a gated delta net for random streams."
        "\v"
        "`call` computes the convolution, the norms and the states; `states` computes only the "
        "states, each read and written once.  `copy` is a copy of the same number of bytes inside "
        "the memory of a GPU; `peak` is the time of four instructions for each number of a state "
        "and each token.  A CPU runs the plain loops.\n\n"
        "  sagitta-bench mixer --device cuda --streams 128\n"
        "  sagitta-bench mixer --device cuda --streams 1 --tokens 4096",
    .tables = mixer_tables,
    .count = LENGTH(mixer_tables),
};
const struct command bench_mixer_command = {
    "mixer",    "gated delta nets, beside copies of their states",
    &mixer_set, sizeof(struct bench_options),
    1,          bench_command};

static const struct option_set serve_set = {
    .command = "sagitta-bench serve",
    .doc =
        "Measure how long live requests of `sagitta serve` wait, and how many rows of a backlog "
        "are encoded beside them."
        "\v"
        "A server in this process answers --streams clients.  Their requests of one row are due "
        "at random times, which do not depend on replies; ms count from the time when a request "
        "was due.  `alone` is without a backlog.  `off`, `static` and `dynamic` also have a "
        "backlog that never ends, with these policies.  `unwatched` has only the backlog, and "
        "`encode` is `sagitta encode` of the same rows from memory.  A step has at most --n-rows "
        "rows.  `status ms` is the longest time that a request for the status took.  --repeats "
        "has no effect.\n\n"
        "  sagitta-bench serve --n-rows 1024 --atoms 1024 --columns 64 \\\n"
        "      --streams 4 --seconds 2\n"
        "  sagitta-bench serve --device cuda --n-rows 16384 --threads 8",
    .tables = serve_tables,
    .count = LENGTH(serve_tables),
};
const struct command bench_serve_command = {
    "serve",    "live requests beside a backlog, by each policy",
    &serve_set, sizeof(struct bench_options),
    1,          bench_command};

static const struct option_set write_set = {
    .command = "sagitta-bench write",
    .doc =
        "Measure how all ranks write a result, beside a plain writer."
        "\v"
        "`result` writes supports.h5 of --n-rows rows as `sagitta encode` does: with hashes, read "
        "again and checked, recorded in a journal if there are several ranks, and published.  "
        "`plain` writes the same number of bytes at the same offsets, and syncs them.  `hash` is "
        "SHA-256 of the same number of bytes, on one core per rank.  All run on the same ranks, "
        "in turn; the removal of files is not timed.\n\n"
        "  mpirun -n 2 sagitta-bench write --n-rows 524288 --output /scratch",
    .tables = write_tables,
    .count = LENGTH(write_tables),
};
const struct command bench_write_command = {
    "write",    "a result that all ranks write, beside a plain writer",
    &write_set, sizeof(struct bench_options),
    1,          bench_command};

static const struct option_set rates_set = {
    .command = "sagitta-bench rates",
    .doc =
        "Measure the rates from which `--dry-run --rates FILE` forecasts how long a job takes."
        "\v"
        "FILE is what --json prints.  All ranks of mpirun measure at the same time, with the "
        "threads that a job would have; a forecast is for the same machine, and the same numbers "
        "of ranks and threads.  Rows and atoms are random.  Files of --output are read from the "
        "cache of the system, and removed.\n\n"
        "  mpirun -n 2 sagitta-bench rates --output /scratch --json > rates.json\n"
        "  mpirun -n 2 sagitta encode encode.in --dry-run --rates rates.json",
    .tables = rates_tables,
    .count = LENGTH(rates_tables),
};
const struct command bench_rates_command = {"rates",    "rates of this machine, for --dry-run",
                                            &rates_set, sizeof(struct bench_options),
                                            1,          bench_command};
