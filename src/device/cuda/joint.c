/* SPDX-License-Identifier: BSD-3-Clause
 * A CPU device makes the rows of a batch: their factors and Y.  They are copied to the GPU as they
 * are, with the lists of each atom's rows, and the GPU adds them to S. */
#include "device/cuda/joint.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cpu/joint_impl.h"
#include "device/cuda/load.h"
#include "joint_types.h"

_Static_assert(sizeof(struct joint_offsets) == sizeof(struct row_offsets) &&
                   offsetof(struct joint_offsets, vector) == offsetof(struct row_offsets, vector),
               "rows are read as the CPU lays them out");

/* The state of this backend; `rows` has the state of the CPU backend. */
struct cuda_joint {
  struct device cpu;
  struct joint_work rows;
  struct buffer held;  /* device: E, E'E of each atom, directions */
  struct buffer batch; /* device: one batch */
  gidx used;           /* used bytes of the buffer that is being filled */
  idx *border;         /* [borders of the batch] */
  gidx border_capacity;
};

static struct cuda_joint *joint_of(const struct joint_work *w)
{
  return (struct cuda_joint *)w->state;
}

/* Append `count` items to the used bytes of the buffer; *to <- their device address. */
static int piece_put(struct joint_work *w, struct buffer *b, const void *items, gidx count,
                     size_t size, void *to)
{
  struct cuda_joint *s = joint_of(w);
  gidx bytes = count * (gidx)size;
  struct buffer view = {
      .host = (void *)items, .device = (char *)b->device + s->used, .bytes = bytes};
  CHECK(s->used + bytes <= b->bytes, ERR_INTERNAL,
        "there are %lld bytes of rows, but room for %lld", (long long)(s->used + bytes),
        (long long)b->bytes);
  *(void **)to = view.device;
  s->used = round_up(s->used + bytes, PLAN_JOINT_ALIGNED);
  return device_put(w->device, &view, 0, bytes);
}

int cuda_joint_open(struct joint_work *w)
{
  const struct cuda_state *device = w->device->state;
  struct cuda_joint *s = calloc(1, sizeof *s);
  struct device_options options = {
      .p = 1, .d = 1, .threads = device->options.threads, .variant = device->options.variant};
  CHECK(s, ERR_MEMORY, "cannot allocate the state of an assembly");
  w->state = (struct joint_state *)s;
  TRY(device_open(&s->cpu, &options));
  TRY(joint_open(&s->rows, &s->cpu, w->joint, w->longest, w->capacity));
  TRY(buffer_alloc_device(w->device, &s->held, plan_joint_resident(w->joint)));
  return buffer_alloc_device(w->device, &s->batch,
                             plan_joint_batch(w->joint, w->longest, w->capacity));
}

void cuda_joint_close(struct joint_work *w)
{
  struct cuda_joint *s = joint_of(w);
  joint_close(&s->rows);
  device_close(&s->cpu);
  buffer_free(w->device, &s->held);
  buffer_free(w->device, &s->batch);
  free(s->border);
  free(s);
}

int cuda_joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride)
{
  struct cuda_joint *state = joint_of(w);
  const struct joint *j = w->joint;
  idx q = j->direction[j->k], n = joint_border(j);
  struct buffer all = {.device = s, .bytes = imax(n - 1, 0) * stride * (gidx)sizeof *s};
  real *e;
  all.bytes += n * (gidx)sizeof *s;
  TRY(device_clear(w->device, &all, 0, all.bytes));
  state->used = 0;
  TRY(piece_put(w, &state->held, j->e, (gidx)q * j->p, sizeof *e, &e));
  struct dense_operand o = {e, j->p, 1, 0, 0};
  struct dense_product p = {o, o, 0, q, 0, q, 0, j->p, s, stride, PART_UPPER};
  return dense_product(d, &p);
}

int cuda_joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums)
{
  return joint_batch(&joint_of(w)->rows, rows, sums);
}

int cuda_joint_row_size(const struct joint_work *w, idx i, struct joint_size *size)
{
  return joint_row_size(&joint_of(w)->rows, i, size);
}

/* border[] <- the index in S of each border of the batch's rows. */
static int borders_number(struct cuda_joint *s, const struct joint_state *rows)
{
  const struct joint *j = rows->j;
  TRY(array_reserve(&s->border, &s->border_capacity, rows->end.border, sizeof(idx)));
  for (idx i = 0; i < rows->n; i++) {
    struct joint_row row = joint_row_of(rows, i);
    idx *border = s->border + rows->rows[i].border;
    for (idx a = 0; a < row.count; a++)
      for (idx b = row.at[a]; b < row.at[a + 1]; b++)
        border[b] = j->direction[row.atom[a]] * j->d + b - row.at[a];
    for (idx b = row.width; b < row.padded; b++) border[b] = 0;
  }
  return OK;
}

/* Copy the batch to the device. */
static int batch_put(struct joint_work *w, const struct joint_state *rows, struct joint_args *a)
{
  struct cuda_joint *s = joint_of(w);
  struct buffer *b = &s->batch;
  gidx entries = rows->list_start[rows->j->k];
  s->used = 0;
  TRY(borders_number(s, rows));
  TRY(piece_put(w, b, rows->rows, rows->n, sizeof *rows->rows, &a->places));
  TRY(piece_put(w, b, rows->at, rows->end.entry + rows->n, sizeof(idx), &a->at));
  TRY(piece_put(w, b, s->border, rows->end.border, sizeof(idx), &a->border));
  TRY(piece_put(w, b, rows->t, rows->end.border, sizeof(real), &a->t));
  TRY(piece_put(w, b, rows->y, rows->end.y, sizeof(real), &a->y));
  TRY(piece_put(w, b, rows->list_start, (gidx)rows->j->k + 1, sizeof(gidx), &a->list_start));
  TRY(piece_put(w, b, rows->list_row, entries, sizeof(idx), &a->list_row));
  return piece_put(w, b, rows->list_at, entries, sizeof(idx), &a->list_at);
}

/* Copy the arrays that all batches need to the device.  They overwrite E. */
static int resident_put(struct joint_work *w, const struct joint_state *rows, struct joint_args *a)
{
  struct cuda_joint *s = joint_of(w);
  const struct joint *j = w->joint;
  s->used = 0;
  TRY(piece_put(w, &s->held, rows->own, (gidx)j->direction[j->k] * rows->max_q, sizeof(real),
                &a->own));
  return piece_put(w, &s->held, j->direction, (gidx)j->k + 1, sizeof(idx), &a->direction);
}

int cuda_joint_add(struct joint_work *w, real *s, gidx stride)
{
  struct joint_state *rows = joint_of(w)->rows.state;
  struct joint_args a = {.s = s, .stride = stride, .d = rows->j->d, .max_q = rows->max_q};
  unsigned columns = (unsigned)(rows->max_q * rows->j->d);
  joint_lists_make(rows);
  TRY(resident_put(w, rows, &a));
  TRY(batch_put(w, rows, &a));
  struct cuda_launch l = {.name = KERNEL_JOINT_ADD,
                          .grid = {(unsigned)rows->j->k, columns, 1},
                          .block = {JOINT_THREADS, 1, 1},
                          .arguments = &a};
  if (rows->n > 0 && columns > 0) TRY(cuda_launch(w->device, &l));
  return cuda_finish(w->device->state);
}
