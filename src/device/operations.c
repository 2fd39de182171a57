/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: each checks its arguments and calls the function in the backend's table.
 * They are declared in route.h, encoder.h, codes.h, arrow.h, refit.h, dense.h, normal.h, steps.h,
 * joint.h and lanczos.h.  Operations of other headers are in files of their own. */
#include "base/num.h"
#include "base/status.h"
#include "device/backend.h"
#include "model/relax.h"

int device_put_tile(struct device *dev, const float *atoms, idx count, idx first)
{
  CHECK_HAS(dev, put_tile);
  CHECK(count >= 0 && count <= dev->max_atoms - dev->atoms, ERR_INTERNAL,
        "%d atoms put beside %d, at most %d were expected", count, dev->atoms, dev->max_atoms);
  if (count == 0) return OK;
  TRY(dev->backend->put_tile(dev, atoms, count, first));
  dev->atoms += count;
  return OK;
}

int device_dictionary_free(struct device *dev)
{
  CHECK_HAS(dev, forget);
  dev->backend->forget(dev);
  dev->atoms = 0;
  return OK;
}

int device_atoms(struct device *dev, struct buffer *view)
{
  *view = (struct buffer){0};
  return dev->backend->atoms ? dev->backend->atoms(dev, view) : OK;
}

int device_route(struct device *dev, struct route_job *job)
{
  CHECK_HAS(dev, route);
  job->bad = (struct bad_score){-1, -1};
  CHECK(job->top_k >= 1 && job->top_k <= MAX_TOP_S, ERR_INTERNAL, "%d entries a row, not 1 to %d",
        job->top_k, MAX_TOP_S);
  return job->n ? dev->backend->route(dev, job) : OK;
}

int device_lists_scatter(struct device *dev, const struct scatter_job *job)
{
  CHECK_HAS(dev, place);
  CHECK(job->at >= 0 && job->top_k >= 0 && job->top_k <= job->s - job->at, ERR_INTERNAL,
        "%d entries at %d of supports of %d", job->top_k, job->at, job->s);
  return job->n ? dev->backend->place(dev, job) : OK;
}

int device_encoder(struct device *dev, struct encoder_job *job)
{
  CHECK_HAS(dev, encoder);
  job->bad = (struct bad_score){-1, -1};
  job->found->n = 0;
  CHECK(dev->d == 1 && dev->atoms == job->encoder->k, ERR_INTERNAL,
        "an encoder of %d atoms, of which the device has %d of %d vectors", job->encoder->k,
        dev->atoms, dev->d);
  return job->n ? dev->backend->encoder(dev, job) : OK;
}

gidx device_codes_state_bytes(const struct device *dev, idx max_m, real rho)
{
  const struct backend *b = dev->backend;
  return b->codes_state_bytes ? b->codes_state_bytes(max_m * dev->d, rho, dev->nonnegative) : 0;
}

int device_codes(struct device *dev, const struct codes_job *job)
{
  CHECK_HAS(dev, codes);
  CHECK(!job->toward || dev->nonnegative, ERR_INTERNAL, "signed codes that are drawn to a mean");
  CHECK(job->state || job->m_old == 0, ERR_INTERNAL, "codes of %d old atoms without their state",
        job->m_old);
  return job->n ? dev->backend->codes(dev, job) : OK;
}

int device_quality(struct device *dev, const struct quality_job *job)
{
  CHECK_HAS(dev, quality);
  CHECK(dev->d == 1, ERR_INTERNAL, "the quality of frames of %d", dev->d);
  return job->n ? dev->backend->quality(dev, job) : OK;
}

int device_arrow(struct device *dev, struct arrow_job *job)
{
  CHECK_HAS(dev, arrow);
  CHECK(job->options.ridge_t >= 0 && job->options.ridge_b >= 0, ERR_INTERNAL, "ridges %g and %g",
        job->options.ridge_t, job->options.ridge_b);
  return dev->backend->arrow(dev, job);
}

int device_arrow_ready(struct device *dev, const struct arrow_job *job)
{
  return dev->backend->arrow_ready ? dev->backend->arrow_ready(dev, job) : OK;
}

gidx device_arrow_bytes(const struct device *dev, gidx largest)
{
  return dev->backend->arrow_bytes ? dev->backend->arrow_bytes(largest) : 0;
}

int device_residuals(struct device *dev, const struct residual_job *job)
{
  CHECK_HAS(dev, residuals);
  return dev->backend->residuals(dev, job);
}

int device_row_products(struct device *dev, const real *residual, idx p,
                        const struct rows_item *items, gidx count)
{
  CHECK_HAS(dev, row_products);
  return dev->backend->row_products(dev, residual, p, items, count);
}

int device_row_sums(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                    gidx count)
{
  CHECK_HAS(dev, row_sums);
  return dev->backend->row_sums(dev, residual, p, items, count);
}

int device_moves_try(struct device *dev, const struct moves_job *job)
{
  CHECK_HAS(dev, moves_try);
  return dev->backend->moves_try(dev, job);
}

int device_moves_keep(struct device *dev, const struct moves_job *job)
{
  CHECK_HAS(dev, moves_keep);
  return dev->backend->moves_keep(dev, job);
}

int device_directions_keep(struct device *dev, idx d, idx p, const struct keep_item *items,
                           gidx count)
{
  CHECK_HAS(dev, directions_keep);
  return dev->backend->directions_keep(dev, d, p, items, count);
}

int device_steps(struct device *dev, const struct steps_job *job)
{
  CHECK_HAS(dev, steps);
  CHECK(device_steps_bytes(dev, job) > 0, ERR_INTERNAL,
        "steps of %d vectors in %d directions of %d columns are not for this device", job->d,
        job->directions, job->p);
  return dev->backend->steps(dev, job);
}

gidx steps_message_bytes(const struct steps_job *job, int ranks)
{
  const gidx most = (gidx)64 << 20;
  gidx found = (gidx)sizeof(struct step_result), real_bytes = (gidx)sizeof(real);
  gidx all = job->k * (found + (gidx)job->d * job->p * real_bytes) +
             (gidx)job->n * job->d * real_bytes; /* a class has each row at most once */
  return ranks < 2 ? 0 : imin(ranks * all, most);
}

real device_frame_end(const struct device *dev, const struct frame_end *end)
{
  const struct backend *backend = dev->backend;
  if (backend->frame_end) return backend->frame_end(dev, end);
  frame_relax(end->frame, end->table, end->d, end->p, end->further);
  return frame_round(end->frame, end->table, end->d, end->p);
}

int device_steps_index(struct device *dev, const struct steps_job *job, gidx *start)
{
  CHECK_HAS(dev, steps_index);
  CHECK((gidx)job->n * job->s <= STEPS_INDEX_ENTRIES, ERR_INTERNAL, "%lld entries to list",
        (long long)job->n * job->s);
  return dev->backend->steps_index(dev, job, start);
}

int device_steps_conflicts(struct device *dev, const struct steps_job *job,
                           const struct steps_conflicts *look)
{
  CHECK_HAS(dev, steps_conflicts);
  return dev->backend->steps_conflicts(dev, job, look);
}

int device_steps_residual(struct device *dev, const struct steps_job *job, real *residual)
{
  CHECK_HAS(dev, steps_residual);
  return dev->backend->steps_residual(dev, job, residual);
}

gidx device_steps_bytes(const struct device *dev, const struct steps_job *job)
{
  const struct backend *backend = dev->backend;
  return backend && backend->steps_bytes ? backend->steps_bytes(dev, job) : 0;
}

int dense_open(struct dense *d, struct device *dev, idx panel, idx max_n)
{
  *d = (struct dense){.device = dev, .panel = panel, .max_n = max_n};
  CHECK_HAS(dev, dense_open);
  CHECK(panel >= DENSE_MIN_PANEL && panel <= DENSE_MAX_PANEL && max_n >= 0, ERR_INTERNAL,
        "dense work in panels of %d columns on matrices of %d rows", panel, max_n);
  return dev->backend->dense_open(d);
}

void dense_close(struct dense *d)
{
  if (d->state) d->device->backend->dense_close(d);
  *d = (struct dense){0};
}

static int matrix_check(const struct dense *d, idx n, gidx stride)
{
  CHECK(n >= 0 && n <= d->max_n && stride >= n, ERR_INTERNAL,
        "a matrix of %d rows, %lld apart, where %d rows were expected", n, (long long)stride,
        d->max_n);
  return OK;
}

int dense_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good)
{
  CHECK_HAS(d->device, cholesky);
  TRY(matrix_check(d, n, stride));
  return d->device->backend->cholesky(d, s, n, stride, pivot, good);
}

int dense_inverse(struct dense *d, real *l, idx n, gidx stride)
{
  CHECK_HAS(d->device, inverse);
  TRY(matrix_check(d, n, stride));
  return d->device->backend->inverse(d, l, n, stride);
}

int dense_product(struct dense *d, const struct dense_product *p)
{
  CHECK_HAS(d->device, product);
  CHECK(p->row_end - p->row_begin <= d->max_n && p->column_end - p->column_begin <= d->max_n,
        ERR_INTERNAL, "a product of %d rows and %d columns, where %d were expected",
        p->row_end - p->row_begin, p->column_end - p->column_begin, d->max_n);
  return d->device->backend->product(d, p);
}

int dense_entries(struct dense *d, const struct dense_entries *e)
{
  CHECK_HAS(d->device, entries);
  TRY(matrix_check(d, e->n, e->stride));
  return e->count > 0 ? d->device->backend->entries(d, e) : OK;
}

gidx device_dense_bytes(const struct device *dev, int threads, idx panel, idx max_n)
{
  const struct backend *b = dev->backend ? dev->backend : &backend_cpu;
  return b->dense_bytes ? b->dense_bytes(threads, panel, max_n) : 0;
}

int device_normal_add(struct device *dev, const struct normal_job *job)
{
  CHECK_HAS(dev, normal_add);
  const struct normal_own *own = &job->own;
  CHECK(own->first >= 0 && own->count >= 0 && own->step >= NORMAL_BLOCK && job->begin >= 0 &&
            job->end >= job->begin && job->end <= job->p && job->s <= job->k,
        ERR_INTERNAL, "%d rows from %d on of %d, columns %d to %d of %d, %d atoms a row",
        own->count, own->first, job->k, job->begin, job->end, job->p, job->s);
  return job->n && job->s ? dev->backend->normal_add(dev, job) : OK;
}

int device_normal_decay(struct device *dev, struct buffer *values, gidx at, gidx count, real beta)
{
  CHECK_HAS(dev, normal_decay);
  CHECK(at >= 0 && at + count <= values->bytes / (gidx)sizeof(real), ERR_INTERNAL,
        "reals %lld to %lld of a buffer of %lld bytes", (long long)at, (long long)(at + count),
        (long long)values->bytes);
  return count > 0 ? dev->backend->normal_decay(dev, values, at, count, beta) : OK;
}

int device_normal_descend(struct device *dev, const struct descend_job *job)
{
  CHECK_HAS(dev, normal_descend);
  CHECK(job->first % NORMAL_BLOCK == 0 && job->first + job->count <= job->k, ERR_INTERNAL,
        "atoms %d to %d of %d", job->first, job->first + job->count, job->k);
  return dev->backend->normal_descend(dev, job);
}

int device_normal_energies(struct device *dev, const struct energies_job *job)
{
  CHECK_HAS(dev, normal_energies);
  CHECK(job->begin >= 0 && job->end >= job->begin && job->end <= job->p &&
            job->energy->bytes >= job->n * (gidx)sizeof(real),
        ERR_INTERNAL, "columns %d to %d of %d, %d rows, %lld bytes of energies", job->begin,
        job->end, job->p, job->n, (long long)job->energy->bytes);
  return job->n ? dev->backend->normal_energies(dev, job) : OK;
}

int device_normal_clear(struct device *dev, const struct clear_job *job)
{
  CHECK_HAS(dev, normal_clear);
  return dev->backend->normal_clear(dev, job);
}

gidx device_normal_bytes(const struct device *dev, idx n, idx s, idx k, idx columns)
{
  const struct backend *backend = dev->backend ? dev->backend : &backend_cpu;
  return backend->normal_bytes ? backend->normal_bytes(n, s, k, columns) : 0;
}

int joint_open(struct joint_work *w, struct device *dev, const struct joint *j, idx longest,
               gidx capacity)
{
  *w = (struct joint_work){.device = dev, .joint = j, .longest = longest, .capacity = capacity};
  CHECK_HAS(dev, joint_open);
  return dev->backend->joint_open(w);
}

void joint_close(struct joint_work *w)
{
  if (w->state) w->device->backend->joint_close(w);
  *w = (struct joint_work){0};
}

int joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride)
{
  CHECK_HAS(w->device, joint_begin);
  TRY(matrix_check(d, joint_border(w->joint), stride));
  return w->device->backend->joint_begin(w, d, s, stride);
}

gidx device_joint_bytes(const struct device *dev, const struct joint *j, idx longest, gidx capacity)
{
  const struct backend *b = dev->backend;
  return b && b->joint_bytes ? b->joint_bytes(j, longest, capacity) : 0;
}

int joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums)
{
  CHECK_HAS(w->device, joint_batch);
  return w->device->backend->joint_batch(w, rows, sums);
}

int joint_add(struct joint_work *w, real *s, gidx stride)
{
  CHECK_HAS(w->device, joint_add);
  return w->device->backend->joint_add(w, s, stride);
}

int joint_row_size(const struct joint_work *w, idx i, struct joint_size *size)
{
  CHECK_HAS(w->device, joint_row_size);
  return w->device->backend->joint_row_size(w, i, size);
}

int parts_append(struct parts *p, struct joint_work *w, idx first, idx end)
{
  CHECK_HAS(w->device, parts_append);
  return w->device->backend->parts_append(p, w, first, end);
}

int parts_apply(struct device *dev, const struct parts *p, idx n, idx groups, const real *x,
                real *y)
{
  CHECK_HAS(dev, parts_apply);
  return dev->backend->parts_apply(dev, p, n, groups, x, y);
}

int lanczos_step(struct device *dev, struct lanczos *l, idx j, real *y)
{
  CHECK_HAS(dev, lanczos_step);
  CHECK(j >= 0 && j < l->max, ERR_INTERNAL, "step %d of %d", j, l->max);
  return dev->backend->lanczos_step(dev, l, j, y);
}
