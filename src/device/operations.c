/* SPDX-License-Identifier: BSD-3-Clause
 * What devices compute: each operation has its arguments checked here and is then passed to its row
 * of the backend's table.  The operations are declared in route.h, encoder.h, codes.h, arrow.h,
 * refit.h, dense.h, normal.h, steps.h, joint.h and lanczos.h. */
#include "base/num.h"
#include "base/status.h"
#include "device/backend.h"

/* ERR_DEVICE unless the device's table has this row. */
#define CHECK_HAS(dev, row)                                                                        \
  CHECK((dev)->backend && (dev)->backend->row, ERR_DEVICE,                                         \
        "a device of kind '%s' has no operation '" #row "'",                                       \
        (dev)->backend ? (dev)->backend->kind : "dry")

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

int device_forget(struct device *dev)
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

int device_place(struct device *dev, const struct place_job *job)
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

int device_attention(struct device *dev, const struct attention_job *job)
{
  CHECK_HAS(dev, attention);
  return dev->backend->attention(dev, job);
}

/* The last query of a sequence is at its last position at most. */
static int attend_check_place(const struct attend_plan *p, gidx s)
{
  gidx queries = p->start[s + 1] - p->start[s];
  CHECK(p->at[s] <= p->length[s] - queries && p->at[s] >= -queries, ERR_INPUT,
        "the first of %lld queries of sequence %lld is at position %lld of %lld",
        (long long)queries, (long long)s, (long long)p->at[s], (long long)p->length[s]);
  return OK;
}

/* The first and the last query of a piece see some of it, and so do those between. */
static int attend_check_piece(const struct attend_plan *p, gidx s)
{
  gidx queries = p->start[s + 1] - p->start[s], at = p->at[s], far = at < 0 ? -at : at;
  CHECK(queries + p->length[s] + far <= ATTEND_POSITIONS, ERR_DEVICE,
        "a piece of sequence %lld is %lld positions from its queries: a GPU takes at most %d",
        (long long)s, (long long)far, ATTEND_POSITIONS);
  for (gidx i = 0; i < queries; i += imax(queries - 1, 1)) {
    gidx from, end;
    attention_seen(p->attention, at + i, p->length[s], &from, &end);
    CHECK(from < end, ERR_INPUT, "query %lld of piece %lld sees nothing of it", (long long)i,
          (long long)s);
  }
  return OK;
}

/* Every position of a sequence is in a cell. */
static int attend_check_sequence(const struct attend_plan *p, gidx s)
{
  long long length = p->length[s], queries = p->start[s + 1] - p->start[s];
  CHECK(queries >= 0, ERR_INPUT, "sequence %lld has %lld queries", (long long)s, queries);
  CHECK(length >= 0 && length + queries <= ATTEND_POSITIONS, ERR_DEVICE,
        "sequence %lld has %lld positions: a GPU takes at most %d", (long long)s, length,
        ATTEND_POSITIONS);
  TRY(p->goes_on ? attend_check_piece(p, s) : attend_check_place(p, s));
  if (!p->table) {
    CHECK(length == 0 || (p->cell[s] >= 0 && p->cell[s] <= p->cells - length), ERR_INPUT,
          "sequence %lld has cells %lld .. %lld, and there are %lld", (long long)s,
          (long long)p->cell[s], (long long)p->cell[s] + length - 1, (long long)p->cells);
    return OK;
  }
  gidx blocks = p->cells / p->size, needed = ceil_div(length, p->size);
  CHECK(needed <= p->width, ERR_INPUT,
        "sequence %lld has %lld positions, and its table %lld blocks of %d", (long long)s, length,
        (long long)p->width, p->size);
  for (gidx i = 0; i < needed; i++) {
    idx entry = p->table[s * p->width + i];
    CHECK(entry >= 0 && entry < blocks, ERR_INPUT,
          "entry (%lld, %lld) of a table is %d, and there are blocks 0 .. %lld", (long long)s,
          (long long)i, entry, (long long)blocks - 1);
  }
  return OK;
}

static int attend_check(const struct attend_plan *p)
{
  const struct attention *a = p->attention;
  CHECK(a->kv_heads >= 1 && a->heads >= a->kv_heads && a->heads % a->kv_heads == 0, ERR_INPUT,
        "%d heads of q and %d of k", a->heads, a->kv_heads);
  CHECK(a->d >= 1 && a->dv >= 1, ERR_INPUT, "heads of %d and %d columns", a->d, a->dv);
  CHECK(imax(a->d, a->dv) <= ATTEND_COLUMNS, ERR_DEVICE,
        "heads have %d and %d columns: a GPU takes at most %d", a->d, a->dv, ATTEND_COLUMNS);
  CHECK(p->cells >= 0 && p->cells <= INT32_MAX, ERR_DEVICE, "%lld cells: a GPU takes at most %d",
        (long long)p->cells, INT32_MAX);
  CHECK(!p->table || p->size >= 1, ERR_INPUT, "blocks of %d cells", p->size);
  for (gidx s = 0; s < p->sequences; s++) TRY(attend_check_sequence(p, s));
  return OK;
}

int attend_open(struct attend *w, struct device *dev, const struct attend_plan *plan)
{
  const struct attention *a = plan->attention;
  gidx size = plan->type == ATTEND_F32 ? 4 : 2, n = plan->start[plan->sequences];
  *w = (struct attend){.device = dev,
                       .queries = n,
                       .heads = a->heads,
                       .q = n * a->heads * a->d * 4,
                       .k = plan->cells * a->kv_heads * a->d * size,
                       .v = plan->cells * a->kv_heads * a->dv * size,
                       .rows = n * a->heads * (plan->goes_on ? attention_stride(a->dv) : a->dv) * 4,
                       .lse = n * a->heads * 4,
                       .is_open = plan->goes_on != NULL};
  CHECK_HAS(dev, attend_open);
  TRY(attend_check(plan));
  return dev->backend->attend_open(w, plan);
}

void attend_close(struct attend *w)
{
  if (w->state) w->device->backend->attend_close(w);
  *w = (struct attend){0};
}

/* A buffer, and what it has to have. */
struct side {
  const char *name;
  const struct buffer *b;
  gidx bytes;
};

static int sides_check(const struct side *sides, int count)
{
  for (int i = 0; i < count; i++)
    CHECK(sides[i].b->bytes >= sides[i].bytes, ERR_INTERNAL,
          "the buffer of %s has %lld bytes, %lld are needed", sides[i].name,
          (long long)sides[i].b->bytes, (long long)sides[i].bytes);
  return OK;
}

int attend_run(struct attend *w, const struct attend_job *job)
{
  const struct side sides[] = {{"q", job->q, w->q},      {"k", job->k, w->k},
                               {"v", job->v, w->v},      {"rows", job->rows, w->rows},
                               {"m", job->m, w->lse},    {"l", job->l, w->lse},
                               {"lse", job->lse, w->lse}};
  CHECK_HAS(w->device, attend_run);
  CHECK(!job->m == !job->l && (job->m || !w->is_open), ERR_INTERNAL, "one of m and l alone");
  CHECK((job->lse == NULL) == w->is_open, ERR_INTERNAL,
        "lse is of sums that are not open, and of all those");
  for (int i = 0; i < LENGTH(sides); i++)
    if (sides[i].b) TRY(sides_check(sides + i, 1));
  return w->device->backend->attend_run(w, job);
}

int device_attribution(struct device *dev, const struct attribution_job *job)
{
  CHECK_HAS(dev, attribution);
  return dev->backend->attribution(dev, job);
}

int attend_attribute(struct attend *w, const struct attribute_job *job)
{
  gidx pairs = job->pairs, sum = (gidx)sizeof(real);
  const struct side sides[] = {{"q", job->q, w->q},
                               {"k", job->k, w->k},
                               {"v", job->v, w->v},
                               {"m", job->m, w->lse},
                               {"l", job->l, w->lse},
                               {"atom_of", job->atom_of, pairs * (gidx)sizeof(idx)},
                               {"row", job->row, pairs * job->top * (gidx)sizeof(gidx)},
                               {"code", job->code, pairs * job->top * (gidx)sizeof(float)},
                               {"sum", job->sum, pairs * sum},
                               {"part", job->part, pairs * w->heads * sum}};
  CHECK_HAS(w->device, attend_attribute);
  CHECK(w->is_open ? job->part && !job->sum : job->sum && !job->part, ERR_INTERNAL,
        "sums are of all positions, and parts of pieces");
  CHECK(job->top >= 1 && job->top <= MAX_TOP_ROWS, ERR_INTERNAL, "lists of %d", job->top);
  for (gidx i = 0; i < w->queries; i++)
    CHECK(0 <= job->start[i] && job->start[i] <= job->end[i] && job->end[i] <= pairs, ERR_INTERNAL,
          "query %lld has the pairs %lld .. %lld of %lld", (long long)i, (long long)job->start[i],
          (long long)job->end[i] - 1, (long long)pairs);
  for (int i = 0; i < LENGTH(sides); i++)
    if (sides[i].b) TRY(sides_check(sides + i, 1));
  return w->device->backend->attend_attribute(w, job);
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
             (gidx)job->n * job->d * real_bytes; /* a class has each row once */
  return ranks < 2 ? 0 : imin(ranks * all, most);
}

int device_steps_look(struct device *dev, const struct steps_job *job,
                      const struct steps_look *look)
{
  CHECK_HAS(dev, steps_look);
  return dev->backend->steps_look(dev, job, look);
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
  CHECK(job->first >= 0 && job->first + job->count <= job->k && job->begin >= 0 &&
            job->end <= job->p && job->s <= job->k,
        ERR_INTERNAL, "rows %d to %d of %d, columns %d to %d of %d, %d atoms a row", job->first,
        job->first + job->count, job->k, job->begin, job->end, job->p, job->s);
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
  return dev->backend->normal_descend(dev, job);
}

int device_normal_forget(struct device *dev, const struct forget_job *job)
{
  CHECK_HAS(dev, normal_forget);
  return dev->backend->normal_forget(dev, job);
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
