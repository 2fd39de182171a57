/* SPDX-License-Identifier: BSD-3-Clause
 * Solves the whole bordered matrix of an arrow system with PETSc's Cholesky factorisation.  The row
 * blocks come first and the border last, so that natural order has no fill-in outside the border.
 * PETSc is loaded at run time.  The types are those of Debian's build with double scalars and int
 * indices.  Another build may give a wrong solution: peer_petsc() compares it with ours. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "bench/arrow.h"

/* Each function returns 0 on success.  Handles are pointers; enumerations and indices are int. */
static struct petsc {
  int (*initialize)(void);
  int (*finalize)(void);
  void **world; /* PETSC_COMM_WORLD, which here has one rank */
  int (*matrix)(void *comm, int rows, int columns, int *start, int *column, real *a, void **out);
  int (*vector)(void *comm, int block, int n, const real *x, void **out);
  int (*create)(void *comm, void **ksp);
  int (*operators)(void *ksp, void *a, void *same);
  int (*type)(void *ksp, const char *name);
  int (*get)(void *ksp, void **pc);
  int (*factor)(void *pc, const char *name);
  int (*solve)(void *ksp, void *b, void *x);
  int (*free)(void **ksp), (*matrix_free)(void **a), (*vector_drop)(void **x);
} petsc;
static int state; /* 0: not tried yet; 1: loaded and initialised; -1: either failed */

static int petsc_load(void)
{
  static const char *const names[] = {"libpetsc_real.so.3.18", "libpetsc_real.so", "libpetsc.so"};
  const struct {
    const char *name;
    void *out;
  } symbols[] = {{"PetscInitializeNoArguments", &petsc.initialize},
                 {"PetscFinalize", &petsc.finalize},
                 {"PETSC_COMM_WORLD", &petsc.world},
                 {"MatCreateSeqAIJWithArrays", &petsc.matrix},
                 {"VecCreateSeqWithArray", &petsc.vector},
                 {"KSPCreate", &petsc.create},
                 {"KSPSetOperators", &petsc.operators},
                 {"KSPSetType", &petsc.type},
                 {"KSPGetPC", &petsc.get},
                 {"PCSetType", &petsc.factor},
                 {"KSPSolve", &petsc.solve},
                 {"KSPDestroy", &petsc.free},
                 {"MatDestroy", &petsc.matrix_free},
                 {"VecDestroy", &petsc.vector_drop}};
  void *library = NULL;
  for (int i = 0; i < LENGTH(names) && !library; i++) library = dlopen(names[i], RTLD_NOW);
  for (int i = 0; i < LENGTH(symbols); i++) {
    void *found = library ? dlsym(library, symbols[i].name) : NULL;
    if (!found) return 0;
    memcpy(symbols[i].out, &found, sizeof found);
  }
  setenv("PETSC_OPTIONS", "-no_signal_handler", 1);
  return petsc.initialize() == 0;
}

void peer_petsc_close(void)
{
  if (state == 1) petsc.finalize();
  state = 0;
}

/* A matrix in compressed row storage, with both triangles; its right side and solution. */
struct sparse {
  int n, *start, *column;
  real *a, *right, *x;
};

static void add(struct sparse *m, int *at, gidx column, real value)
{
  m->column[*at] = (int)column;
  m->a[(*at)++] = value;
}

static void sparse_fill(const struct arrow_system *s, struct sparse *m)
{
  gidx d = s->d, k = s->k, rows = s->n * d;
  int at = 0;
  for (gidx row = 0; row < rows; row++) {
    gidx i = row / d, r = row % d;
    const real *h = s->h + i * d * d;
    for (gidx j = 0; j < d; j++) add(m, &at, i * d + j, r > j ? h[j * d + r] : h[r * d + j]);
    for (gidx j = 0; j < k; j++) add(m, &at, rows + j, s->b[i * d * k + j * d + r]);
    m->right[row] = -s->g[row];
    m->start[row + 1] = at;
  }
  for (gidx r = 0; r < k; r++) {
    for (gidx row = 0; row < rows; row++) add(m, &at, row, s->b[row / d * d * k + r * d + row % d]);
    for (gidx j = 0; j < k; j++) add(m, &at, rows + j, r > j ? s->c[j * k + r] : s->c[r * k + j]);
    m->right[rows + r] = -s->g_b[r];
    m->start[rows + r + 1] = at;
  }
}

static int sparse_alloc(const struct arrow_system *s, struct arena *arena, struct sparse *m)
{
  gidx d = s->d, k = s->k, rows = s->n * d, entries = rows * (d + 2 * k) + k * k;
  if (entries > INT32_MAX || rows + k == 0) return -1;
  m->n = (int)(rows + k);
  int status = arena_alloc(arena, &m->start, m->n + 1, sizeof(int));
  if (!status) status = arena_alloc(arena, &m->column, entries, sizeof(int));
  if (!status) status = arena_alloc(arena, &m->a, entries, sizeof(real));
  if (!status) status = arena_alloc(arena, &m->right, m->n, sizeof(real));
  if (!status) status = arena_alloc(arena, &m->x, m->n, sizeof(real));
  return status ? -1 : 0;
}

/* Factor and solve.  Returns the seconds; -1: PETSc reported an error. */
static double sparse_solve(struct sparse *m)
{
  void *comm = *petsc.world, *a = NULL, *b = NULL, *x = NULL, *ksp = NULL, *pc = NULL;
  int bad = petsc.matrix(comm, m->n, m->n, m->start, m->column, m->a, &a) ||
            petsc.vector(comm, 1, m->n, m->right, &b) || petsc.vector(comm, 1, m->n, m->x, &x);
  double begun = log_seconds();
  bad = bad || petsc.create(comm, &ksp) || petsc.operators(ksp, a, a) ||
        petsc.type(ksp, "preonly") || petsc.get(ksp, &pc) || petsc.factor(pc, "cholesky") ||
        petsc.solve(ksp, b, x);
  double seconds = log_seconds() - begun;
  if (ksp) petsc.free(&ksp);
  if (x) petsc.vector_drop(&x);
  if (b) petsc.vector_drop(&b);
  if (a) petsc.matrix_free(&a);
  return bad ? -1 : seconds;
}

double peer_petsc(const struct arrow_system *s, const real *step_t, const real *step_b)
{
  struct arena arena = {0};
  struct sparse m = {0};
  double seconds = -1, apart = 0, size = 0;
  if (!state) state = petsc_load() ? 1 : -1;
  if (state == 1 && sparse_alloc(s, &arena, &m) == 0) {
    sparse_fill(s, &m);
    seconds = sparse_solve(&m);
  }
  for (gidx i = 0; seconds > 0 && i < m.n; i++) {
    gidx rows = s->n * s->d;
    real ours = i < rows ? step_t[i] : step_b[i - rows];
    apart = fmax(apart, fabs(ours - m.x[i]));
    size = fmax(size, fabs(ours));
  }
  arena_free(&arena);
  return apart <= 1e-9 * size ? seconds : -1;
}
