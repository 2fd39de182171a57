/* SPDX-License-Identifier: BSD-3-Clause
 * Attention and attribution.  A plan is checked once, when it is opened, so that no kernel reads
 * beyond a sequence.  The buffers are checked for each job. */
#include "device/attention.h"

#include "base/num.h"
#include "base/status.h"
#include "device/backend.h"

int device_attention(struct device *dev, const struct attention_job *job)
{
  CHECK_HAS(dev, attention);
  return dev->backend->attention(dev, job);
}

/* Check that the last query of a sequence is not after its last position, and that the first query
 * is at most `queries` positions in front of position 0. */
static int attend_check_offset(const struct attend_plan *p, gidx s)
{
  gidx queries = p->start[s + 1] - p->start[s];
  CHECK(p->at[s] <= p->length[s] - queries && p->at[s] >= -queries, ERR_INPUT,
        "the first of the %lld queries of sequence %lld is at position %lld, and the sequence has "
        "%lld",
        (long long)queries, (long long)s, (long long)p->at[s], (long long)p->length[s]);
  return OK;
}

/* Check that each query sees some position of the piece.  If the first and the last query do, all
 * queries between them do too. */
static int attend_check_piece(const struct attend_plan *p, gidx s)
{
  gidx queries = p->start[s + 1] - p->start[s], at = p->at[s], far = at < 0 ? -at : at;
  CHECK(queries + p->length[s] + far <= ATTEND_POSITIONS, ERR_DEVICE,
        "a piece of sequence %lld is %lld positions from its queries: a GPU takes at most %d; for "
        "more give --device cpu",
        (long long)s, (long long)far, ATTEND_POSITIONS);
  for (gidx i = 0; i < queries; i += imax(queries - 1, 1)) {
    gidx from, end;
    attention_seen(p->attention, at + i, p->length[s], &from, &end);
    CHECK(from < end, ERR_INPUT, "query %lld of piece %lld sees nothing of it", (long long)i,
          (long long)s);
  }
  return OK;
}

/* Check the sizes of a sequence, and that every position is in a cell. */
static int attend_check_sequence(const struct attend_plan *p, gidx s)
{
  long long length = p->length[s], queries = p->start[s + 1] - p->start[s];
  CHECK(queries >= 0, ERR_INPUT, "sequence %lld has %lld queries", (long long)s, queries);
  CHECK(length >= 0 && length + queries <= ATTEND_POSITIONS, ERR_DEVICE,
        "sequence %lld has %lld positions: a GPU takes at most %d; for more give --device cpu",
        (long long)s, length, ATTEND_POSITIONS);
  TRY(p->goes_on ? attend_check_piece(p, s) : attend_check_offset(p, s));
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
        "there are %d heads of q and %d of k: the first must be a multiple of the second", a->heads,
        a->kv_heads);
  CHECK(a->d >= 1 && a->dv >= 1, ERR_INPUT, "heads of %d and %d columns", a->d, a->dv);
  CHECK(imax(a->d, a->dv) <= ATTEND_COLUMNS, ERR_DEVICE,
        "heads have %d and %d columns: a GPU takes at most %d; for more give --device cpu", a->d,
        a->dv, ATTEND_COLUMNS);
  CHECK(p->cells >= 0 && p->cells <= INT32_MAX, ERR_DEVICE,
        "there are %lld cells: a GPU takes at most %d; for more give --device cpu",
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

/* A buffer of a job, and the bytes that it must have. */
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
  CHECK(!job->m == !job->l && (job->m || !w->is_open), ERR_INTERNAL,
        "only one of m and l is given, or neither where sums stay open");
  CHECK((job->lse == NULL) == w->is_open, ERR_INTERNAL,
        "lse is needed if sums are complete, and must be absent if they stay open");
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
        "`sum` goes with all positions, `part` with pieces");
  CHECK(job->top >= 1 && job->top <= MAX_TOP_ROWS, ERR_INTERNAL, "lists of %d", job->top);
  for (gidx i = 0; i < w->queries; i++)
    CHECK(0 <= job->start[i] && job->start[i] <= job->end[i] && job->end[i] <= pairs, ERR_INTERNAL,
          "query %lld has the pairs %lld .. %lld of %lld", (long long)i, (long long)job->start[i],
          (long long)job->end[i] - 1, (long long)pairs);
  for (int i = 0; i < LENGTH(sides); i++)
    if (sides[i].b) TRY(sides_check(sides + i, 1));
  return w->device->backend->attend_attribute(w, job);
}
