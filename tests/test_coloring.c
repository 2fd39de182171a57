/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: ranks and threads together find the classes of the serial reference, for rows of any
 * length, atoms in no row, and ranks without rows.  The number of atoms need not be a multiple of
 * the number of atoms that are coloured at a time.
 * RUN: np=1 2 3 5 */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "refit/coloring.h"
#include "tap.h"

enum { LONGEST = 200 };

struct made {
  const char *name;
  gidx n;
  idx k, length; /* atoms; the most atoms per row */
  int varies;    /* rows have 0 to `length` */
  int skewed;    /* small indices are drawn far more often */
};

static idx atom_draw(const struct made *m, uint64_t at)
{
  gidx atom = (gidx)random_below(5, 1, at, (uint64_t)m->k);
  for (int i = 0; i < m->skewed; i++)
    atom = imin(atom, (gidx)random_below(5, 2 + (uint64_t)i, at, (uint64_t)m->k));
  return (idx)atom;
}

/* atoms[] <- the atoms of row i, each once.  Returns their number. */
static idx row_make(const struct made *m, gidx i, idx *atoms)
{
  idx wanted = m->length, n = 0;
  if (m->varies) wanted = (idx)random_below(6, 0, (uint64_t)i, (uint64_t)m->length + 1);
  for (idx j = 0; j < wanted; j++) {
    idx atom = atom_draw(m, (uint64_t)(i * LONGEST + j)), seen = 0;
    while (seen < n && atoms[seen] != atom) seen++;
    if (seen == n) atoms[n++] = atom;
  }
  return n;
}

/* *view <- rows first .. first + n - 1.  rows_free() frees its arrays. */
static void rows_make(const struct made *m, gidx first, gidx n, struct support_view *view)
{
  gidx *start = calloc((size_t)n + 1, sizeof *start);
  idx *atoms = malloc(((size_t)n * (size_t)m->length + LONGEST) * sizeof *atoms);
  for (gidx i = 0; i < n; i++) start[i + 1] = start[i] + row_make(m, first + i, atoms + start[i]);
  *view = (struct support_view){n, m->k, start, atoms};
}

static void rows_free(struct support_view *view)
{
  free((void *)view->start);
  free((void *)view->atoms);
}

static int same(const struct classes *a, const struct classes *b)
{
  return a->k == b->k && a->count == b->count &&
         !memcmp(a->color, b->color, (size_t)a->k * sizeof *a->color) &&
         !memcmp(a->start, b->start, ((size_t)a->count + 1) * sizeof *a->start) &&
         !memcmp(a->atoms, b->atoms, (size_t)a->start[a->count] * sizeof *a->atoms);
}

/* The function of a color_looker that finds conflicts by a plain walk through the rows. */
static int plain_look(void *self, const struct color_conflicts *look)
{
  const struct support_view *own = self;
  memset(look->sets, 0, (size_t)(look->count * look->words) * sizeof *look->sets);
  for (idx j = 0; j < look->count; j++)
    for (gidx i = 0; i < own->n; i++) {
      int is_there = 0;
      for (gidx e = own->start[i]; e < own->start[i + 1]; e++)
        is_there |= own->atoms[e] == look->atoms[j];
      for (gidx e = own->start[i]; e < own->start[i + 1] && is_there; e++) {
        uint32_t mark = look->marks[own->atoms[e]];
        if (mark < 64 * look->words)
          look->sets[j * look->words + mark / 64] |= UINT64_C(1) << mark % 64;
      }
    }
  return OK;
}

static int failing_look(void *self, const struct color_conflicts *look)
{
  (void)self, (void)look;
  FAIL(ERR_DEVICE, "a device that fails");
}

/* With a looker the classes are the same.  If a looker fails on one rank, all ranks learn of it. */
static int test_looker(struct comm *c, const struct made *m, struct support_view *own,
                       const struct classes *wanted)
{
  struct color_looker looker = {own, plain_look};
  struct classes found;
  TRY(coloring_run(c, own, 2, &looker, &found));
  ok(same(wanted, &found), "%s: a looker gives the same classes: %d, not %d", m->name, found.count,
     wanted->count);
  classes_free(&found);
  if (c->rank == c->size - 1) looker.look = failing_look;
  int status = coloring_run(c, own, 2, &looker, &found);
  ok(status == (wanted->count ? ERR_DEVICE : OK), "%s: a looker that fails: status %d", m->name,
     status);
  classes_free(&found);
  comm_recover(c);
  status_clear();
  return OK;
}

static int test_made(struct comm *c, const struct made *m)
{
  struct support_view whole, own;
  struct classes wanted, found;
  gidx first, n;
  comm_partition(m->n, c->size, c->rank, &first, &n);
  rows_make(m, 0, m->n, &whole);
  rows_make(m, first, n, &own);
  TRY(classes_color(&wanted, &whole));
  TRY(classes_check(&wanted, &whole, 0, m->name));
  for (int threads = 1; threads <= 3; threads += 2) {
    TRY(coloring_run(c, &own, threads, NULL, &found));
    ok(same(&wanted, &found), "%s: %lld rows, %d atoms, %d threads: %d classes, not %d", m->name,
       (long long)m->n, m->k, threads, found.count, wanted.count);
    classes_free(&found);
  }
  TRY(test_looker(c, m, &own, &wanted));
  classes_free(&wanted);
  rows_free(&whole);
  rows_free(&own);
  return OK;
}

int main(void)
{
  static const struct made all[] = {
      {"no rows", 0, 5, 4, 0, 0},
      {"one row", 1, 7, 4, 0, 0},
      {"rows with a single atom", 90, 40, 1, 0, 0},
      {"dead atoms", 50, 3000, 8, 1, 0},
      {"even", 3000, 700, 12, 0, 0},
      {"a lot", 900, 512, 6, 1, 0},
      {"a lot of atoms and one more", 900, 513, 6, 1, 0},
      {"long rows", 60, 2000, LONGEST, 1, 0},
      {"skewed", 2500, 1500, 20, 1, 3},
      {"every atom in a class of its own", 40, 130, LONGEST, 0, 0},
  };
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  for (int i = 0; i < LENGTH(all); i++) {
    claim_begin("%s: the classes of the serial reference", all[i].name);
    int status = test_made(&c, &all[i]);
    ok(status == OK, "status %d: %s", status, status_message());
    claim_end();
  }
  gidx bytes;
  claim_begin("too many entries are refused");
  status_clear();
  ok(coloring_bytes(10, (gidx)1 << 32, &bytes) == ERR_INPUT &&
         strstr(status_message(), "more ranks") && strstr(status_message(), "--minibatch"),
     "the message about too many entries says what to do: %s", status_message());
  ok(coloring_bytes(10, 100, &bytes) == OK && bytes > 0, "few entries are accepted");
  claim_end();
  int status = done_testing();
  return comm_close(&c) || status;
}
