/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta bench: which work of src/bench is timed, and how much of it. */
#include <string.h>

#include "base/status.h"
#include "bench/arrow.h"
#include "bench/dense.h"
#include "bench/harvest.h"
#include "bench/route.h"
#include "bench/train.h"
#include "bench/triad.h"
#include "bench/update.h"
#include "cli/command.h"
#include "job/facts.h"

struct bench_options {
  struct general_options general;
  struct bench_common common;
  struct bench_route_options route;
  struct bench_arrow_options arrow;
  struct bench_dense_options dense;
  struct bench_harvest_options harvest;
};
#define AT(member) offsetof(struct bench_options, member)

static const struct option_row common_rows[] = {
    {"repeats", OPTION_INT, AT(common.repeats), "5", 1, 1000, NULL, "COUNT",
     "runs to take the median of", .effect = OPTION_RUN},
    {"threads", OPTION_INT, AT(common.threads), "1", 1, 4096, NULL, "COUNT", "threads",
     .effect = OPTION_RUN, .flags = OPTION_PER_RANK},
    CPU_VARIANT_OPTION(AT(common.cpu_variant), "instruction set"),
    {"device", OPTION_CHOICE, AT(common.device), "cpu", 0, 0, "cpu|cuda", NULL, "what computes",
     .effect = OPTION_RUN},
    {"kernels", OPTION_TEXT, AT(common.kernels), NULL, 0, 0, NULL, "FOLDER",
     "take GPU kernels from here instead of those built in", .effect = OPTION_RUN,
     .flags = OPTION_INPUT},
};

static const struct option_table tables[] = {
    {"All", common_rows, LENGTH(common_rows), 0},
    {"route, update, dense, train", bench_route_rows, BENCH_ROUTE_ROWS, AT(route)},
    {"solve", bench_arrow_rows, BENCH_ARROW_ROWS, AT(arrow)},
    {"terminal", bench_dense_rows, BENCH_DENSE_ROWS, AT(dense)},
    {"harvest", bench_harvest_rows, BENCH_HARVEST_ROWS, AT(harvest)},
    {"General", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set bench_set = {
    .command = "sagitta bench",
    .arguments = "route|solve|terminal|update|dense|train|harvest",
    .doc =
        "Measure routing and codes, the solving of arrow systems, the dense work of the terminal "
        "pass, the joint update of fit, products of matrices, steps of training or attention, "
        "beside limit and peer where there are some."
        "\v"
        "GMAC/s counts one multiply and one add of every row, atom and column.  `peak` is a loop "
        "of multiplies and adds on registers: an exact score cannot be faster.  `sgemm` is the "
        "dense product of the same shape by OpenBLAS, where that is installed.  `worst order` "
        "has equal rows and atoms that ascend by score, so that every atom enters the list.  "
        "`certified` is the same by way of the filter.  "
        "`codes` solves the codes of the routed rows.  On a GPU rows and atoms are there already, "
        "and `peak` is what the clock allows.\n\n"
        "`solve` counts every number of rows and steps once, in GB/s; `memory` is a loop that only "
        "reads and writes them, LAPACKE a loop of dpotrf, dtrsm and dsyrk, and PETSc, where that "
        "is "
        "installed, its Cholesky of each bordered system, in Mrows/s.  On a GPU the systems are "
        "there already, and are compared with copies inside its memory; `with copies` they come "
        "from page-locked memory of the host, as in `sagitta solve`, and steps go back.  Ranks of "
        "mpirun share them out, a GPU each; all take as long as the slowest.\n\n"
        "`terminal` factors one matrix, inverts the factor and multiplies the inverses, n^3 / 6 "
        "multiply-adds each; a CPU's peer is OpenBLAS's dpotrf on the same matrix, which a GPU has "
        "in its memory already.\n\n"
        "`update` adds up the normal equations of the rows, in which supports are drawn by a power "
        "law and one atom is in half of the rows, and takes four passes of the descent; in fused "
        "multiply-adds a second.\n\n"
        "`dense` takes the product of --n-rows rows with a matrix of --columns inputs and --atoms "
        "outputs, the way back, and the gradient, each sum in its order; `peak` is what the fused "
        "multiply-adds of the device allow, or its matrix unit with --precision, whose matrices "
        "are "
        "f32 in memory and narrowed on the way unless they are --stored.  `train` takes steps of "
        "`sagitta train` on one "
        "batch of --n-rows rows, on all ranks of mpirun.\n\n"
        "`harvest` takes causal attention of random streams whose queries, keys and values are "
        "there already; a multiply-add counts as two operations, and each number is moved once.  "
        "`peak` is what fused multiply-adds alone take, `copy`, on a GPU, a copy of as many bytes "
        "inside its memory; `paged` has blocks in a random order.\n\n"
        "  sagitta bench dense --n-rows 16384 --columns 768 --atoms 32768 --device cuda\n"
        "  sagitta bench train --n-rows 8192 --columns 768 --atoms 32768 --top-s 32 --device cuda\n"
        "  sagitta bench harvest --device cuda --heads 12 --positions 4096 --head-columns 64\n"
        "  sagitta bench harvest --device cuda --streams 32 --queries 1 --heads 32 --kv-heads 8 "
        "--head-columns 128 --cells f16\n"
        "  sagitta bench update --n-rows 24576 --atoms 4096 --columns 384 --top-s 32\n"
        "  sagitta bench terminal --schur 4096\n"
        "  sagitta bench terminal --schur 16384 --device cuda\n"
        "  sagitta bench solve --frame 2\n"
        "  sagitta bench solve --device cuda --systems 4096\n"
        "  mpirun -n 2 sagitta bench solve --device cuda --systems 200000 --system-rows 64 "
        "--border 8\n"
        "  sagitta bench route --columns 384 --atoms 32768 --top-s 32\n"
        "  sagitta bench route --device cuda --n-rows 16384 --columns 768",
    .tables = tables,
    .count = LENGTH(tables),
    .min_arguments = 1,
    .max_arguments = 1,
};

static int measure(const struct bench_options *o, const char *what,
                   const struct bench_common *common, struct comm *c)
{
  if (strcmp(what, "solve") == 0) return bench_arrow(&o->arrow, common, c);
  if (strcmp(what, "terminal") == 0) return bench_dense(&o->dense, common);
  if (strcmp(what, "update") == 0) return bench_update(&o->route, common);
  if (strcmp(what, "dense") == 0) return bench_triad(&o->route, common);
  if (strcmp(what, "train") == 0) return bench_train(&o->route, common, c);
  if (strcmp(what, "harvest") == 0) return bench_harvest(&o->harvest, common);
  CHECK(
      strcmp(what, "route") == 0, ERR_USAGE,
      "unknown benchmark '%s': there are 'route', 'solve', 'terminal', 'update', 'dense', 'train' "
      "and 'harvest'",
      what);
  return bench_route(&o->route, common);
}

static int ranks_check(const struct bench_options *o, const char *what, int ranks)
{
  int solve = strcmp(what, "solve") == 0, gpu = strcmp(o->common.device, "cuda") == 0;
  CHECK(ranks == 1 || strcmp(what, "train") == 0 || (solve && gpu), ERR_USAGE,
        "'bench %s' measures one rank: leave mpirun away%s", what,
        solve ? ", or add --device cuda" : "");
  return OK;
}

static int bench_command(struct run *run, const void *options, const char **arguments)
{
  const struct bench_options *o = options;
  struct bench_common common = o->common;
  TRY(comm_agree(&run->comm, ranks_check(o, arguments[0], run->comm.size)));
  struct json j;
  int tells = facts_wanted(run) && run->comm.rank == 0;
  if (!tells) return measure(o, arguments[0], &common, &run->comm);
  TRY(facts_begin(run, &j));
  common.json = &j;
  json_text(&j, "benchmark", arguments[0]);
  json_long(&j, "repeats", common.repeats);
  json_long(&j, "threads", common.threads);
  json_text(&j, "device", common.device);
  TRY(measure(o, arguments[0], &common, &run->comm));
  return facts_end(&j);
}

const struct command command_bench = {"bench",    "measure routing, codes, solves beside limits",
                                      &bench_set, sizeof(struct bench_options),
                                      1,          bench_command};
