/* SPDX-License-Identifier: BSD-3-Clause
 * These are plain loops over the rows and the codes of each row. */
#include "model/kept.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "model/codes.h"
#include "model/normal.h"
#include "model/state.h"

static int codes_find(const struct kept_model *m, const float *table, struct arena *arena,
                      float *codes)
{
  const float **vector;
  real *exact, *work;
  gidx longest = 0;
  for (idx i = 0; i < m->n; i++) longest = imax(longest, m->start[i + 1] - m->start[i]);
  TRY(arena_alloc(arena, &vector, longest, sizeof(void *)));
  TRY(arena_alloc(arena, &exact, longest, sizeof *exact));
  TRY(arena_alloc(arena, &work, codes_work((idx)longest), sizeof *work));
  for (idx i = 0; i < m->n; i++) {
    const float *row = m->x + (gidx)i * m->p;
    gidx from = m->start[i];
    idx length = (idx)(m->start[i + 1] - from);
    for (idx j = 0; j < length; j++) vector[j] = table + (gidx)m->atoms[from + j] * m->p;
    if (m->nonnegative)
      codes_nonnegative_reference(row, vector, length, m->p, m->rho, exact, work);
    else
      codes_reference(row, vector, length, m->p, m->rho, exact, work);
    for (idx j = 0; j < length; j++) codes[from + j] = (float)exact[j];
  }
  return OK;
}

int kept_codes_reference(const struct kept_model *m, const float *table, float *codes)
{
  struct arena arena = {0};
  int status = codes_find(m, table, &arena, codes);
  arena_free(&arena);
  return status;
}

/* out[p] <- the atom, scaled to unit norm and rounded.  An atom without codes (square 0) stays as
 * it was, and so does one whose norm is 0 or not finite. */
static void atom_round(const real *atom, real square, idx p, float *out)
{
  real norm = sqrt(chain_dot(atom, atom, p));
  if (!(square > 0) || !(norm > 0) || !isfinite(norm)) return;
  for (idx c = 0; c < p; c++) out[c] = (float)(atom[c] / norm);
}

static int atoms_move(const struct kept_model *m, const float *codes, idx passes,
                      struct arena *arena, float *table)
{
  real *gram, *target, *moved;
  gidx k = m->k, values = k * m->p;
  TRY(arena_alloc(arena, &gram, k * k, sizeof *gram));
  TRY(arena_alloc(arena, &target, values, sizeof *target));
  TRY(arena_alloc(arena, &moved, values, sizeof *moved));
  for (idx i = 0; i < m->n; i++) {
    gidx from = m->start[i];
    const struct normal_rows row = {.n = 1,
                                    .s = (idx)(m->start[i + 1] - from),
                                    .p = m->p,
                                    .atoms = m->atoms + from,
                                    .codes = codes + from,
                                    .x = m->x + (gidx)i * m->p};
    normal_add(&row, m->k, gram, target);
  }
  for (gidx i = 0; i < values; i++) moved[i] = table[i];
  for (idx i = 0; i < passes; i++) normal_descend(gram, target, m->k, m->p, moved);
  for (idx a = 0; a < m->k; a++)
    atom_round(moved + (gidx)a * m->p, gram[(gidx)a * k + a], m->p, table + (gidx)a * m->p);
  return OK;
}

int kept_atoms_reference(const struct kept_model *m, const float *codes, idx passes, float *table)
{
  struct arena arena = {0};
  int status = atoms_move(m, codes, passes, &arena, table);
  arena_free(&arena);
  return status;
}
