/* SPDX-License-Identifier: BSD-3-Clause
 * All data are below /run, since arrival times differ from run to run.  The check recomputes the
 * plan of each step. */
#include "io/ledger.h"

#include <string.h>

#include "base/status.h"
#include "io/check.h"

enum { SLACK_BYTES = 4 << 20 };

static const struct object_row object_rows[] = {
    {"/run/steps", TYPE_I64, "S F", 1, "what each step was planned from"},
    {"/run/admitted", TYPE_I64, "A G", 1, "rows that the steps took"},
    {"/run/requests", TYPE_I64, "R H", 1, "requests in the order in which plans saw them first"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static const int widths[LEDGER_TABLES] = {STEP_COLUMNS, PART_COLUMNS, REQUEST_COLUMNS};
static const char *const columns[LEDGER_TABLES] = {
    "step,begun,ended,watched,live_rows,target,allowance,cap,file_rows",
    "step,request,file,first,rows",
    "client,number,class,rows,arrived,answered,seen,gone,status,fingerprint"};

/* The tables of a ledger in the order of object_rows[]. */
static void tables_of(struct ledger *l, struct ledger_table **tables)
{
  tables[0] = &l->steps;
  tables[1] = &l->parts;
  tables[2] = &l->requests;
}

static int knobs_write(const struct h5_file *f, const struct admission_knobs *knobs)
{
  TRY(h5_attribute_long(f, "/run/steps", "policy", (gidx)knobs->policy));
  for (int i = 0; i < ADMISSION_KNOBS; i++) {
    const struct admission_knob *k = &admission_knobs[i];
    gidx value;
    memcpy(&value, (const char *)knobs + k->offset, sizeof value);
    TRY(h5_attribute_long(f, "/run/steps", k->name, value));
  }
  return OK;
}

static int knobs_read(const struct h5_file *f, struct admission_knobs *knobs)
{
  gidx policy;
  TRY(h5_read_long(f, "/run/steps", "policy", &policy));
  for (int i = 0; i < ADMISSION_KNOBS; i++) {
    const struct admission_knob *k = &admission_knobs[i];
    gidx value;
    TRY(h5_read_long(f, "/run/steps", k->name, &value));
    memcpy((char *)knobs + k->offset, &value, sizeof value);
  }
  CHECK(policy >= ADMISSION_OFF && policy <= ADMISSION_DYNAMIC, ERR_INPUT,
        "the policy of '%s' is %lld: 0 is off, 1 static, 2 dynamic" ANEW, f->path,
        (long long)policy);
  knobs->policy = (enum admission_policy)policy;
  return OK;
}

static int tables_write(const struct h5_file *f, const struct ledger *ledger)
{
  struct ledger copy = *ledger;
  struct ledger_table *tables[LEDGER_TABLES];
  tables_of(&copy, tables);
  TRY(h5_group_create(f, "/run"));
  for (int t = 0; t < LEDGER_TABLES; t++) {
    const gidx shape[] = {tables[t]->count, widths[t]};
    TRY(object_write(f, object_rows[t].path, 2, shape, tables[t]->values));
    TRY(h5_attribute_text(f, object_rows[t].path, "columns", columns[t]));
  }
  return knobs_write(f, &ledger->knobs);
}

int ledger_write(const char *path, const struct ledger *l, const struct ledger_facts *said,
                 const struct run_fact *facts, int n_facts)
{
  static struct result_file r;
  gidx values = l->steps.count * STEP_COLUMNS + l->parts.count * PART_COLUMNS +
                l->requests.count * REQUEST_COLUMNS;
  TRY(result_create(&r, path, &ledger_kind, 8 * values + SLACK_BYTES));
  TRY(tables_write(&r.h5, l));
  TRY(h5_attribute_long(&r.h5, "/run/steps", "dictionary", (gidx)said->dictionary));
  TRY(h5_attribute_long(&r.h5, "/run/steps", "left_out", said->left_out));
  return result_publish(&r, facts, n_facts);
}

static int table_read(const struct h5_file *f, int t, struct arena *arena,
                      struct ledger_table *table)
{
  struct h5_array a;
  const char *path = object_rows[t].path;
  TRY(h5_array_open(f, path, &a));
  gidx count = a.rank == 2 ? a.shape[0] : -1;
  TRY(h5_array_close(&a));
  CHECK(count >= 0, ERR_INPUT, "'%s' of '%s' is no table" ANEW, path, f->path);
  table->count = count;
  return object_take(f, path, count, widths[t], TYPE_I64, arena, &table->values);
}

int ledger_read(const struct h5_file *f, struct arena *arena, struct ledger *l,
                struct ledger_facts *said)
{
  struct ledger_table *tables[LEDGER_TABLES];
  gidx dictionary;
  *l = (struct ledger){0};
  tables_of(l, tables);
  for (int t = 0; t < LEDGER_TABLES; t++) TRY(table_read(f, t, arena, tables[t]));
  TRY(knobs_read(f, &l->knobs));
  TRY(h5_read_long(f, "/run/steps", "dictionary", &dictionary));
  TRY(h5_read_long(f, "/run/steps", "left_out", &said->left_out));
  said->dictionary = (uint64_t)dictionary;
  return OK;
}

static int file_check(struct verify *v)
{
  int there;
  struct arena arena = {0};
  struct ledger l;
  struct ledger_facts said;
  if (!v->is_ours) return OK; /* files of other programs have no such tables */
  TRY(h5_exists(v->file, object_rows[0].path, &there));
  if (!there) return OK;
  for (int t = 0; t < LEDGER_TABLES; t++)
    TRY(check_text(v, object_rows[t].path, "columns", columns[t]));
  int status = ledger_read(v->file, &arena, &l, &said);
  if (!status) status = ledger_check(&l);
  arena_free(&arena);
  TRY(status);
  check_note(v, "ledger    %lld steps, planned again: %lld requests, %lld runs of rows",
             (long long)l.steps.count, (long long)l.requests.count, (long long)l.parts.count);
  return OK;
}

const struct file_kind ledger_kind = {"ledger", {&objects}, file_check, NULL, NULL, NULL};
