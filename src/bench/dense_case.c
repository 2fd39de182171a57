/* SPDX-License-Identifier: BSD-3-Clause
 * Each operation copies its arrays to the device, and copies the result back. */
#include "bench/dense_case.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/triad.h"

enum { ITEM = sizeof(float) };

int dense_case_alloc(struct dense_case *c, gidx entries)
{
  struct arena *a = &c->arena;
  gidx n = c->n, k = c->k, p = c->p;
  c->entries = entries;
  TRY(arena_alloc(a, &c->start, n + 1, sizeof *c->start));
  TRY(arena_alloc(a, &c->atom, entries, sizeof *c->atom));
  TRY(arena_alloc(a, &c->code, entries, sizeof *c->code));
  TRY(arena_alloc(a, &c->begin, k + 1, sizeof *c->begin));
  TRY(arena_alloc(a, &c->row, entries, sizeof *c->row));
  TRY(arena_alloc(a, &c->value, entries, sizeof *c->value));
  TRY(arena_alloc(a, &c->atoms, k * p, sizeof *c->atoms));
  TRY(arena_alloc(a, &c->error, n * p, sizeof *c->error));
  TRY(arena_alloc(a, &c->full, n * k, sizeof *c->full));
  gidx most = imax(imax(n * p, k * p), n * k);
  TRY(arena_alloc(a, &c->sparse, imax(imax(n * p, k * p), entries), sizeof *c->sparse));
  return arena_alloc(a, &c->dense, most, sizeof *c->dense);
}

/* Sort the codes of a row by atom. */
static void row_sort(idx *atom, float *code, gidx n)
{
  for (gidx i = 1; i < n; i++)
    for (gidx j = i; j > 0 && atom[j] < atom[j - 1]; j--) {
      idx a = atom[j];
      float c = code[j];
      atom[j] = atom[j - 1];
      code[j] = code[j - 1];
      atom[j - 1] = a;
      code[j - 1] = c;
    }
}

void dense_case_next(struct dense_case *c)
{
  for (idx i = 0; i < c->n; i++)
    row_sort(c->atom + c->start[i], c->code + c->start[i], c->start[i + 1] - c->start[i]);
  for (gidx e = 0; e < c->entries; e++) c->begin[c->atom[e] + 1]++;
  for (idx a = 0; a < c->k; a++) c->begin[a + 1] += c->begin[a];
  for (idx i = 0; i < c->n; i++)
    for (gidx e = c->start[i]; e < c->start[i + 1]; e++) {
      gidx at = c->begin[c->atom[e]]++;
      c->row[at] = i;
      c->value[at] = c->code[e];
      c->full[(gidx)i * c->k + c->atom[e]] = c->code[e];
    }
  for (idx a = c->k; a > 0; a--) c->begin[a] = c->begin[a - 1];
  c->begin[0] = 0;
}

/* The arrays on the device while an operation runs; the last is the result. */
enum { MAX_SIDES = 6 };
struct sides {
  struct device *dev;
  struct buffer all[MAX_SIDES];
  int count, status;
};

static void *side_put(struct sides *s, const void *host, gidx bytes)
{
  struct buffer *b = &s->all[s->count++];
  if (s->status) return NULL;
  s->status = buffer_wrap(s->dev, b, (void *)host, bytes);
  if (!s->status) s->status = device_put(s->dev, b, 0, bytes);
  return b->device;
}

/* Copy the result back to the host, and free all arrays on the device.  Returns the status. */
static int sides_end(struct sides *s)
{
  if (!s->status)
    s->status = device_get(s->dev, &s->all[s->count - 1], 0, s->all[s->count - 1].bytes);
  for (int i = 0; i < s->count; i++) buffer_free(s->dev, &s->all[i]);
  return s->status;
}

int dense_case_sparse(struct device *dev, struct dense_case *c, enum dense_operation which)
{
  struct sides s = {.dev = dev};
  gidx n = c->n, k = c->k, p = c->p;
  int turned = which == DENSE_GRADIENT;
  struct triad_lists lists = {.count = turned ? k : n, .width = c->p};
  gidx many = lists.count + 1;
  lists.start = side_put(&s, turned ? c->begin : c->start, many * (gidx)sizeof *c->start);
  lists.index = side_put(&s, turned ? c->row : c->atom, c->entries * (gidx)sizeof *c->atom);
  lists.matrix = side_put(&s, turned ? c->error : c->atoms, (turned ? n : k) * p * ITEM);
  if (which == DENSE_BACK) {
    float *rows = side_put(&s, c->error, n * p * ITEM);
    float *out = side_put(&s, c->sparse, c->entries * ITEM);
    if (!s.status) s.status = device_triad_dots(dev, &lists, rows, out);
    return sides_end(&s);
  }
  lists.value = side_put(&s, turned ? c->value : c->code, c->entries * ITEM);
  float *out = side_put(&s, c->sparse, lists.count * p * ITEM);
  if (!s.status)
    s.status = turned ? device_triad_sparse_gradient(dev, &lists, out)
                      : device_triad_sparse(dev, &lists, out);
  return sides_end(&s);
}

static void *side_work(struct sides *s, gidx bytes)
{
  struct buffer *b = &s->all[s->count];
  if (s->status || !bytes) return NULL;
  s->count++;
  s->status = buffer_alloc_device(s->dev, b, bytes);
  return b->device;
}

/* c->dense <- the operation with whole matrices.  A gradient is added to c->dense. */
static int dense_run(struct device *dev, const struct dense_case *c, enum dense_operation which)
{
  struct sides s = {.dev = dev};
  const enum precision f32 = PRECISION_F32;
  gidx n = c->n, k = c->k, p = c->p;
  float *full = which == DENSE_BACK ? NULL : side_put(&s, c->full, n * k * ITEM);
  float *atoms = which == DENSE_GRADIENT ? NULL : side_put(&s, c->atoms, k * p * ITEM);
  float *error = which == DENSE_FORWARD ? NULL : side_put(&s, c->error, n * p * ITEM);
  gidx outputs = which == DENSE_FORWARD ? n * p : which == DENSE_BACK ? n * k : k * p;
  struct triad_product product = {full, {atoms, p, 1}, NULL, NULL, k, p, c->n, c->k, c->p};
  struct triad_gradient gradient = {full, error, NULL, k, p, p, c->n, c->k, c->p};
  if (which == DENSE_BACK)
    product = (struct triad_product){error, {atoms, 1, p}, NULL, NULL, p, k, c->n, c->p, c->k};
  gidx bytes = which == DENSE_GRADIENT ? device_triad_gradient_bytes(dev, f32, &gradient)
                                       : device_triad_product_bytes(dev, f32, &product);
  void *work = side_work(&s, bytes);
  gradient.dw = product.y = side_put(&s, c->dense, outputs * ITEM);
  if (!s.status)
    s.status = which == DENSE_GRADIENT ? device_triad_gradient(dev, f32, &gradient, work)
                                       : device_triad_product(dev, f32, &product, work);
  return sides_end(&s);
}

/* Returns the index in the dense result of number i of the sparse result.  i ascends from call to
 * call; *row is 0 before the first call. */
static gidx position_of(const struct dense_case *c, enum dense_operation which, gidx i, idx *row)
{
  if (which != DENSE_BACK) return i;
  while (i >= c->start[*row + 1]) ++*row;
  return (gidx)*row * c->k + c->atom[i];
}

int dense_case_compare(struct device *dev, struct dense_case *c, enum dense_operation which,
                       struct dense_finding *finding)
{
  gidx p = c->p, atoms = c->k * p;
  struct dense_finding f = {.outputs = which == DENSE_FORWARD ? c->n * p
                                       : which == DENSE_BACK  ? c->entries
                                                              : atoms};
  idx row = 0;
  if (which == DENSE_GRADIENT) { /* a gradient is added to these values */
    memcpy(c->sparse, c->atoms, (size_t)atoms * ITEM);
    memcpy(c->dense, c->atoms, (size_t)atoms * ITEM);
  }
  TRY(dense_case_sparse(dev, c, which));
  TRY(dense_run(dev, c, which));
  for (gidx i = 0; i < f.outputs; i++) {
    float a = c->sparse[i], b = c->dense[position_of(c, which, i, &row)];
    if (memcmp(&a, &b, ITEM) == 0 || (a == 0 && b == 0)) continue;
    if (f.differ++ > 0) continue;
    f.first = i;
    f.sparse = a;
    f.dense = b;
  }
  *finding = f;
  return OK;
}
