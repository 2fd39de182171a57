/* SPDX-License-Identifier: BSD-3-Clause
 * Cells are copied to the device piece by piece, in their stored order: they are never
 * reordered. */
#include "harvest/resident_capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/attribution.h"

_Static_assert((int)CAPTURE_F32 == (int)ATTEND_F32 && (int)CAPTURE_F16 == (int)ATTEND_F16 &&
                   (int)CAPTURE_BF16 == (int)ATTEND_BF16,
               "types of cells");

enum { PIECE_BYTES = 64 << 20, OTHERS = 4 /* 1 / OTHERS of the free memory is left to others */ };

struct resident_capture {
  const struct capture_source *capture;
  struct device *device;
  struct buffer k, v, q, rows, lse;
  struct buffer m, l, atoms;             /* for attribution */
  struct buffer atom_of, row, code, sum; /* of pairs; they grow */
  struct attend walk;                    /* of the last queries */
  gidx *start, *at;                      /* [sequences + 1] of a partition */
  struct arena arena;
};

int resident_capture_wanted(const struct device *device)
{
  return strcmp(device->kind, "cuda") == 0;
}

/* Bytes of a unit (struct capture_cells) of keys, or of values. */
static gidx unit_bytes(const struct capture_source *s, idx columns)
{
  return (gidx)s->cells.size * s->attention.kv_heads * columns *
         (s->cells.type == CAPTURE_F32 ? 4 : 2);
}

/* The device copies words of 4 bytes: units are copied in pairs if the bytes of one are not a
 * multiple of 4. */
static gidx units_together(gidx k, gidx v)
{
  return k % 4 || v % 4 ? 2 : 1;
}

/* Read units first .. first + n - 1, and put them at their positions. */
static int piece_put(struct resident_capture *r, struct buffer *const pieces[2], gidx first, gidx n,
                     const gidx unit[2])
{
  const struct capture_source *s = r->capture;
  struct buffer *const to[] = {&r->k, &r->v};
  gidx together = units_together(unit[0], unit[1]);
  TRY(s->cells.read(s->self, first, n, pieces[0]->host, pieces[1]->host));
  for (int i = 0; i < 2; i++) {
    struct gather_job job = {.from = pieces[i],
                             .n = ceil_div(n, together),
                             .unit = unit[i] * together,
                             .to = to[i],
                             .at = first / together};
    TRY(device_put(r->device, pieces[i], 0, n * unit[i]));
    TRY(device_gather(r->device, &job));
  }
  return OK;
}

static int pieces_put(struct resident_capture *r, struct buffer *const pieces[2])
{
  const struct capture_source *s = r->capture;
  const gidx unit[] = {unit_bytes(s, s->attention.d), unit_bytes(s, s->attention.dv)};
  gidx most = imax(PIECE_BYTES / imax(unit[0], unit[1]), 1);
  most = imin((most + 1) / 2 * 2, s->cells.units + s->cells.units % 2); /* an even number */
  gidx room = ceil_div(s->cells.units, 2) * 2;
  TRY(buffer_alloc_device(r->device, &r->k, room * unit[0]));
  TRY(buffer_alloc_device(r->device, &r->v, room * unit[1]));
  for (int i = 0; i < 2; i++) TRY(buffer_alloc(r->device, pieces[i], most * unit[i]));
  for (gidx first = 0; first < s->cells.units; first += most)
    TRY(piece_put(r, pieces, first, imin(most, s->cells.units - first), unit));
  return OK;
}

static int cells_put(struct resident_capture *r)
{
  struct buffer k = {0}, v = {0};
  struct buffer *const pieces[] = {&k, &v};
  int status = pieces_put(r, pieces);
  buffer_free(r->device, &k);
  buffer_free(r->device, &v);
  return status;
}

/* The plan for the sequences of queries first .. first + count - 1 of all; `from` is the first
 * sequence. */
static struct attend_plan plan_make(struct resident_capture *r, gidx from, gidx first, idx count)
{
  const struct capture_source *s = r->capture;
  const struct capture_cells *c = &s->cells;
  gidx n = 0;
  r->start[0] = 0;
  for (gidx i = from; i < s->sequences && s->start[i] < first + count; i++, n++) {
    gidx begin = imax(s->start[i], first), end = imin(s->start[i + 1], first + count);
    gidx queries = s->start[i + 1] - s->start[i];
    r->start[n + 1] = end - first;
    r->at[n] = begin - s->start[i] + s->length[i] - queries;
  }
  return (struct attend_plan){.attention = &s->attention,
                              .sequences = (idx)n,
                              .start = r->start,
                              .at = r->at,
                              .length = s->length + from,
                              .cell = c->first ? c->first + from : NULL,
                              .table = c->table ? c->table + from * c->width : NULL,
                              .width = c->width,
                              .size = c->size,
                              .cells = c->units * c->size,
                              .type = (enum attend_type)c->type};
}

int resident_capture_heads_check(const struct capture_source *s, struct device *device, gidx cells,
                                 enum capture_type type)
{
  const gidx none[2] = {0}, length = 0;
  const struct attend_plan plan = {.attention = &s->attention,
                                   .start = none,
                                   .at = none,
                                   .length = &length,
                                   .cell = none,
                                   .cells = cells,
                                   .type = (enum attend_type)type};
  struct attend w;
  int status = attend_open(&w, device, &plan);
  attend_close(&w);
  return status;
}

int resident_capture_check(const struct capture_source *s, struct device *device, gidx beside)
{
  gidx available, unit = unit_bytes(s, s->attention.d) + unit_bytes(s, s->attention.dv);
  TRY(buffer_bytes_available(device, &available));
  available = imax(available - available / OTHERS - beside, 0);
  CHECK(s->cells.units <= available / unit, ERR_MEMORY,
        "keys and values of '%s' take %.1f MB, and %.1f MB are free on the GPU for them", s->name,
        1e-6 * (double)(s->cells.units * unit), 1e-6 * (double)available);
  return resident_capture_heads_check(s, device, s->cells.units * s->cells.size, s->cells.type);
}

static gidx atoms_bytes(const struct attention *a, idx k)
{
  return (gidx)k * a->heads * a->dv * (gidx)sizeof(float);
}

/* Put the atoms on the device, and make room for the sums of a partition of queries. */
static int atoms_put(struct resident_capture *r, const struct resident_capture_arrays *arrays)
{
  const struct attention *a = &r->capture->attention;
  gidx sums = (gidx)arrays->partition * a->heads * (gidx)sizeof(float);
  gidx bytes = atoms_bytes(a, arrays->atoms.k);
  TRY(buffer_alloc_device(r->device, &r->m, sums));
  TRY(buffer_alloc_device(r->device, &r->l, sums));
  TRY(buffer_wrap(r->device, &r->atoms, (void *)(uintptr_t)arrays->atoms.atoms, bytes));
  return device_put(r->device, &r->atoms, 0, bytes);
}

int resident_capture_open(struct resident_capture **out, const struct capture_source *capture,
                          struct device *device, const struct resident_capture_arrays *arrays)
{
  const struct attention *a = &capture->attention;
  gidx row = (gidx)arrays->partition * a->heads * (gidx)sizeof(float);
  TRY(struct_alloc(out, sizeof **out));
  struct resident_capture *r = *out;
  r->capture = capture;
  r->device = device;
  CHECK(capture->cells.read, ERR_INTERNAL, "a capture whose cells cannot be read");
  TRY(arena_alloc(&r->arena, &r->start, capture->sequences + 1, sizeof *r->start));
  TRY(arena_alloc(&r->arena, &r->at, capture->sequences + 1, sizeof *r->at));
  TRY(resident_capture_check(capture, device, arrays->atoms.beside));
  TRY(cells_put(r));
  if (arrays->atoms.k) TRY(atoms_put(r, arrays));
  TRY(buffer_wrap(device, &r->q, arrays->q, row * a->d));
  TRY(buffer_wrap(device, &r->rows, arrays->rows, row * a->dv));
  return buffer_wrap(device, &r->lse, arrays->lse, row);
}

void resident_capture_close(struct resident_capture *r)
{
  if (!r) return;
  struct buffer *const all[] = {&r->k, &r->v,     &r->q,       &r->rows, &r->lse,  &r->m,
                                &r->l, &r->atoms, &r->atom_of, &r->row,  &r->code, &r->sum};
  attend_close(&r->walk);
  for (int i = 0; i < LENGTH(all); i++) buffer_free(r->device, all[i]);
  arena_free(&r->arena);
  free(r);
}

/* Run the queries that are in q; their rows go to a buffer. */
static int queries_run(struct resident_capture *r, gidx sequence, gidx first, idx count,
                       struct buffer *rows)
{
  const struct attention *a = &r->capture->attention;
  struct attend_plan plan = plan_make(r, sequence, first, count);
  const struct attend_job job = {.q = &r->q,
                                 .k = &r->k,
                                 .v = &r->v,
                                 .rows = rows,
                                 .lse = &r->lse,
                                 .m = r->m.bytes ? &r->m : NULL,
                                 .l = r->l.bytes ? &r->l : NULL};
  gidx row = (gidx)count * a->heads * (gidx)sizeof(float);
  TRY(device_put(r->device, &r->q, 0, row * a->d));
  attend_close(&r->walk);
  TRY(attend_open(&r->walk, r->device, &plan));
  return attend_run(&r->walk, &job);
}

int resident_capture_make(struct resident_capture *r, gidx sequence, gidx first, idx count,
                          float *to)
{
  const struct attention *a = &r->capture->attention;
  gidx bytes = (gidx)count * a->heads * a->dv * (gidx)sizeof *to;
  struct buffer rows = {.device = to, .bytes = bytes};
  TRY(queries_run(r, sequence, first, count, &rows));
  TRY(device_get(r->device, &r->lse, 0, sizeof(float))); /* this waits for the device */
  attend_close(&r->walk);                                /* others may want its memory */
  return OK;
}

int resident_capture_run(struct resident_capture *r, gidx sequence, gidx first, idx count)
{
  const struct attention *a = &r->capture->attention;
  gidx row = (gidx)count * a->heads * (gidx)sizeof(float);
  TRY(queries_run(r, sequence, first, count, &r->rows));
  TRY(device_get(r->device, &r->rows, 0, row * a->dv));
  TRY(device_get(r->device, &r->lse, 0, row));
  if (!r->atoms.bytes) attend_close(&r->walk); /* others may want its memory */
  return OK;
}

/* Make a buffer at least `bytes` long; its contents are lost if it grows. */
static int grow(struct resident_capture *r, struct buffer *b, gidx bytes)
{
  if (b->bytes >= bytes && b->bytes) return OK;
  buffer_free(r->device, b);
  return buffer_alloc_device(r->device, b, bytes);
}

/* Copy between the device side of a buffer and host memory. */
static int side_put(struct resident_capture *r, const struct buffer *b, const void *from,
                    gidx bytes)
{
  struct buffer view = *b;
  view.host = (void *)(uintptr_t)from;
  return device_put(r->device, &view, 0, bytes);
}
static int side_get(struct resident_capture *r, const struct buffer *b, void *to, gidx bytes)
{
  struct buffer view = *b;
  view.host = to;
  return device_get(r->device, &view, 0, bytes);
}

int resident_capture_attribute(struct resident_capture *r,
                               const struct resident_capture_pairs *pairs)
{
  gidx n = pairs->count, values = n * pairs->top->r;
  const struct attribute_job job = {.q = &r->q,
                                    .k = &r->k,
                                    .v = &r->v,
                                    .m = &r->m,
                                    .l = &r->l,
                                    .atoms = &r->atoms,
                                    .pairs = n,
                                    .start = pairs->start,
                                    .end = pairs->start + 1,
                                    .atom_of = &r->atom_of,
                                    .top = pairs->top->r,
                                    .row = &r->row,
                                    .code = &r->code,
                                    .sum = &r->sum};
  TRY(grow(r, &r->atom_of, n * (gidx)sizeof *pairs->atom_of));
  TRY(grow(r, &r->row, values * (gidx)sizeof *pairs->top->row));
  TRY(grow(r, &r->code, values * (gidx)sizeof *pairs->top->code));
  TRY(grow(r, &r->sum, n * (gidx)sizeof *pairs->sum));
  TRY(side_put(r, &r->atom_of, pairs->atom_of, n * (gidx)sizeof *pairs->atom_of));
  TRY(attend_attribute(&r->walk, &job));
  TRY(side_get(r, &r->row, pairs->top->row, values * (gidx)sizeof *pairs->top->row));
  TRY(side_get(r, &r->code, pairs->top->code, values * (gidx)sizeof *pairs->top->code));
  return side_get(r, &r->sum, pairs->sum, n * (gidx)sizeof *pairs->sum);
}
