/* SPDX-License-Identifier: BSD-3-Clause
 * The lists are two matrices.  The check tests the order of each list. */
#include "io/top.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/check.h"
#include "io/identity.h"

enum { SLACK_BYTES = 4 << 20, PIECE_VALUES = 1 << 16 };

static const struct object_row object_rows[] = {
    {"/top/row", TYPE_I64, "K R", 1, "rows in which the atom is strongest, -1: no more"},
    {"/top/code", TYPE_F32, "K R", 1, "code of the atom in each of these rows"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

int top_write(const char *path, const struct top_rows *top, gidx n_rows,
              const struct identity *inputs, const struct run_fact *facts, int n_facts)
{
  static struct result_file r;
  const gidx shape[] = {top->k, top->r};
  TRY(result_create(&r, path, &top_kind, 12 * shape[0] * shape[1] + SLACK_BYTES));
  TRY(h5_attribute_long(&r.h5, "/top", "n_rows", n_rows));
  TRY(identity_write(&r.h5, INPUTS_GROUP, inputs));
  TRY(object_write(&r.h5, "/top/row", 2, shape, top->row));
  TRY(object_write(&r.h5, "/top/code", 2, shape, top->code));
  TRY(result_publish(&r, facts, n_facts));
  return OK;
}

/* Check the lists of atoms first .. first + t->k - 1. */
static int lists_check(const struct top_rows *t, idx first, gidx n_rows)
{
  for (gidx i = 0; i < (gidx)t->k * t->r; i++) {
    long long atom = first + i / t->r, row = t->row[i];
    int follows = i % t->r > 0;
    CHECK(row >= -1 && row < n_rows, ERR_INPUT, "atom %lld: row %lld is not in 0 .. %lld" ANEW,
          atom, row, (long long)n_rows - 1);
    CHECK((row < 0) == (t->code[i] == 0), ERR_INPUT, "atom %lld: the code in row %lld is %g" ANEW,
          atom, row, (double)t->code[i]);
    CHECK(row < 0 || !follows || top_before(t->code[i - 1], t->row[i - 1], t->code[i], row),
          ERR_INPUT, "atom %lld: row %lld comes after a weaker one" ANEW, atom, row);
  }
  return OK;
}

static int pieces_check(const struct verify *v, struct h5_array *a, struct arena *arena)
{
  struct top_rows t;
  gidx k = a[0].shape[0], r = a[0].shape[1], n_rows;
  TRY(h5_read_long(v->file, "/top", "n_rows", &n_rows));
  CHECK(r >= 1 && r <= MAX_TOP_ROWS, ERR_INPUT, "'/top/row' has lists of %lld rows, not 1 to %d",
        (long long)r, MAX_TOP_ROWS);
  gidx piece = imax(1, PIECE_VALUES / r);
  TRY(top_init(&t, arena, (idx)piece, (idx)r));
  for (gidx first = 0; first < k; first += piece) {
    t.k = (idx)imin(piece, k - first);
    TRY(h5_array_read(&a[0], first, t.k, TYPE_I64, t.row));
    TRY(h5_array_read(&a[1], first, t.k, TYPE_F32, t.code));
    TRY(lists_check(&t, (idx)first, n_rows));
  }
  return OK;
}

static int file_check(struct verify *v)
{
  struct h5_array a[2] = {{0}, {0}};
  struct arena arena = {0};
  if (!v->is_ours || strcmp(v->kind, top_kind.name) != 0) return OK;
  int status = h5_array_open(v->file, "/top/row", &a[0]);
  if (!status) status = h5_array_open(v->file, "/top/code", &a[1]);
  if (!status) status = pieces_check(v, a, &arena);
  for (int i = 0; i < 2; i++) h5_array_close(&a[i]);
  arena_free(&arena);
  TRY(status);
  check_note(v, "top       rows in range, each list in order");
  return OK;
}

const struct file_kind top_kind = {"top", {&objects}, file_check, NULL, NULL, NULL};
