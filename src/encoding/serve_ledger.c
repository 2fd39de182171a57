/* SPDX-License-Identifier: BSD-3-Clause
 * Both files are written after the server has ended.  Before that, only the server's thread of
 * files may use HDF5. */
#include "encoding/serve_ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "io/inputs.h"
#include "io/ledger.h"
#include "io/rows.h"
#include "io/writer.h"
#include "io/input_agreement.h"
#include "job/summary.h"
#include "serve/replay.h"

#define LEDGER_FILE "ledger.h5"
#define ROWS_FILE "live.h5"

/* path[4096] <- live.h5 beside a ledger. */
static int rows_path(const char *ledger, char *path)
{
  char folder[4096];
  path_folder(ledger, folder);
  int n = snprintf(path, 4096, "%s/" ROWS_FILE, folder);
  CHECK(n < 4096, ERR_USAGE, "the name of '%s' is too long: give a shorter --ledger", ledger);
  return OK;
}

int serve_ledger_claim(struct serve_ledger *l, const char *folder, int has_rows, int force)
{
  char rows[4096];
  TRY(output_path(&l->place, folder, LEDGER_FILE, force));
  if (!has_rows) return OK;
  TRY(rows_path(l->place.shown, rows));
  return output_claim(rows, force, l->rows);
}

static int rows_write(const char *path, const struct serve_record *record,
                      const struct run_fact *facts, int n_facts)
{
  static struct matrix_output file;
  TRY(rows_output_create(&file, path, record->n_rows, record->p));
  if (record->n_rows) TRY(matrix_output_write(&file, 0, record->n_rows, record->rows));
  TRY(matrix_output_finish(&file, facts, n_facts));
  matrix_output_close(&file);
  return OK;
}

int serve_ledger_write(struct serve_ledger *l, const struct run *run, const char *identity,
                       const struct encode_task *encode, const struct serve_facts *begun,
                       const struct serve_record *record)
{
  char device[128];
  struct run copy = *run;
  struct run_fact facts[MAX_FACTS];
  const struct ledger_facts said = {record->dictionary, record->left_out};
  const struct ledger *all = record->ledger;
  copy.identity.text = (char *)identity; /* borrowed: it is only read */
  snprintf(device, sizeof device, "%s %s", begun->device, begun->variant);
  int n = run_facts(&copy, device, encode->threads, facts);
  if (l->rows[0]) TRY(rows_write(l->rows, record, facts, n));
  TRY(ledger_write(l->place.file, all, &said, facts, n));
  log_info("wrote   %s: %lld steps, %lld requests%s", l->place.shown, (long long)all->steps.count,
           (long long)all->requests.count, l->rows[0] ? ", and their rows" : "");
  if (record->left_out)
    log_warn("the ledger ends with step %lld, and %lld more steps are not in it: give a larger "
             "--ledger-mib to record them",
             (long long)all->steps.count, (long long)record->left_out);
  return OK;
}

struct replayed {
  struct arena arena;
  struct ledger ledger;
  struct ledger_facts said;
  struct rows_input rows;
};

static int ledger_open(struct replayed *r, const char *path)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  TRY(h5_close_after(&f, ledger_read(&f, &r->arena, &r->ledger, &r->said)));
  return ledger_check(&r->ledger);
}

static int rows_open(struct replayed *r, const char *ledger, idx p)
{
  char path[4096];
  TRY(rows_path(ledger, path));
  CHECK(input_is_there(path), ERR_INPUT, "'%s' is missing: record the rows with `serve --record`",
        path);
  TRY(rows_input_open(&r->rows, NULL, path));
  CHECK(r->rows.source.p == p, ERR_INPUT, "'%s' has %d columns, the dictionary has %d", path,
        r->rows.source.p, p);
  return OK;
}

static int identity_compare(const char *path, const char *identity)
{
  struct identity_difference d;
  char *was;
  TRY(writer_identity(path, &was));
  int differs = identity_text_differs(was, identity, &d);
  free(was);
  CHECK(!differs, ERR_INPUT, "'%s' is of a server with %s, this run has %s: give the same", path,
        d.was, d.is);
  return OK;
}

static int answer(const struct replay_result *result, const struct ledger *ledger)
{
  const gidx *first = ledger->requests.values + result->first * REQUEST_COLUMNS;
  log_info("replayed %lld steps: %lld replies, %lld of them other than they were",
           (long long)result->steps, (long long)result->requests, (long long)result->differ);
  CHECK(!result->differ, ERR_ANSWER,
        "%lld of %lld replies differ from the recorded ones, the first of them request %lld, of "
        "%lld rows, last in step %lld",
        (long long)result->differ, (long long)result->requests, (long long)result->first,
        (long long)first[REQUEST_ROWS], (long long)first[REQUEST_GONE] - 1);
  return OK;
}

/* *path <- the ledger in `folder`, or `folder` itself if it is a file. */
static int ledger_path(const char *folder, char *path)
{
  size_t length = strlen(folder);
  int is_file = length > 3 && !strcmp(folder + length - 3, ".h5");
  int n = snprintf(path, 4096, "%s%s", folder, is_file ? "" : "/" LEDGER_FILE);
  CHECK(n < 4096, ERR_USAGE, "the name of '%s' is too long", folder);
  return OK;
}

static int replay_open(struct replayed *r, struct encode_task *encode, const char *path,
                       const char *identity)
{
  TRY(ledger_open(r, path));
  TRY(rows_open(r, path, encode->atoms->p));
  return identity_compare(path, identity);
}

int serve_replay(struct run *run, const char *folder, struct encode_task *encode,
                 const char *identity)
{
  char path[4096];
  struct replayed *r;
  struct replay_result result;
  TRY(struct_alloc(&r, sizeof *r));
  TRY(ledger_path(folder, path));
  TRY(inputs_agree(&run->comm, replay_open(r, encode, path, identity)));
  encode->block = (idx)r->ledger.knobs.step_rows;
  struct row_source shape = *encode->rows;
  shape.n = encode->block;
  encode->rows = &shape;
  const struct replay_task task = {encode, &r->ledger, &r->rows.source, r->said.dictionary};
  TRY(replay_run(&task, &run->comm, &result));
  TRY(inputs_confirm(&run->comm));
  TRY(comm_agree(&run->comm, run->comm.rank ? OK : answer(&result, &r->ledger)));
  rows_input_close(&r->rows);
  arena_free(&r->arena);
  free(r);
  return OK;
}
