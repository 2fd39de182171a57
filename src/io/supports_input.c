/* SPDX-License-Identifier: BSD-3-Clause
 * A CSR group is opened array by array; types are converted where that is exact. */
#include "io/supports_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log_pair.h"
#include "base/status.h"
#include "io/h5.h"
#include "io/inputs.h"
#include "io/schema.h"
#include "model/dictionary.h"

struct supports_input_state {
  char *file;
  char name[4096]; /* FILE:/GROUP */
  const char *group;
  struct h5_file h5;
  struct h5_array indptr, indices, data, score, codes;
  int has_score;
};

static int starts_read(void *self, gidx first, gidx count, gidx *out)
{
  const struct supports_input_state *s = self;
  TRY(h5_array_read(&s->indptr, first, count + 1, TYPE_I64, out));
  return OK;
}

static int entries_read(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct supports_input_state *s = self;
  TRY(h5_array_read(&s->indices, first, count, TYPE_I32, atoms));
  if (score && s->has_score) TRY(h5_array_read(&s->score, first, count, TYPE_F32, score));
  if (codes) TRY(h5_array_read(s->codes.id ? &s->codes : &s->data, first, count, TYPE_F32, codes));
  return OK;
}

/* An array of the group; *a stays closed when it is not there and not needed. */
static int array_open(struct supports_input_state *s, const char *name, int needed,
                      struct h5_array *a)
{
  char object[256];
  CHECK(strlen(s->group) < 200, ERR_INPUT, "the name '%s' is too long", s->group);
  snprintf(object, sizeof object, "%.200s/%.20s", s->group, name);
  if (!needed && !h5_exists(&s->h5, object)) return OK;
  TRY(h5_array_open(&s->h5, object, a));
  return OK;
}

static int arrays_open(struct supports_input_state *s)
{
  CHECK(h5_exists(&s->h5, s->group), ERR_INPUT,
        "no group '%s' in '%s': name the CSR matrix as %s:/PATH", s->group, s->file, s->file);
  TRY(array_open(s, "indptr", 1, &s->indptr));
  TRY(array_open(s, "indices", 1, &s->indices));
  TRY(array_open(s, "data", 1, &s->data));
  TRY(array_open(s, "score", 0, &s->score));
  TRY(array_open(s, "codes", 0, &s->codes));
  s->has_score = s->score.id != 0;
  return OK;
}

static int length_check(const struct supports_input_state *s, const struct h5_array *a, int rank,
                        gidx length)
{
  CHECK(!a->id || (a->rank == rank && a->shape[0] == length), ERR_INPUT,
        "'%s' of '%s' has %d dimensions and %lld entries, not %d and %lld", a->object, s->file,
        a->rank, (long long)a->shape[0], rank, (long long)length);
  return OK;
}

static int shapes_check(struct supports_input *f, const gidx *shape)
{
  struct supports_input_state *s = f->state;
  gidx entries = s->indices.rank == 1 ? s->indices.shape[0] : -1;
  CHECK(shape[0] >= 0 && shape[1] >= 1 && shape[1] <= INT32_MAX, ERR_INPUT,
        "'%s' has %lld rows of %lld atoms", s->name, (long long)shape[0], (long long)shape[1]);
  TRY(length_check(s, &s->indptr, 1, shape[0] + 1));
  TRY(length_check(s, &s->indices, 1, entries));
  TRY(length_check(s, &s->data, 1, entries));
  TRY(length_check(s, &s->score, 1, entries));
  TRY(length_check(s, &s->codes, 2, entries));
  CHECK(s->indices.type == TYPE_I32, ERR_INPUT, "'%s' of '%s' is not int32", s->indices.object,
        s->file);
  gidx d = s->codes.id ? s->codes.shape[1] : 1;
  CHECK(d >= 1 && d <= FRAME_MOST, ERR_INPUT,
        "'%s' of '%s' has blocks of %lld codes, 1 to %d are "
        "possible",
        s->codes.object, s->file, (long long)d, FRAME_MOST);
  f->source = (struct support_source){.n = shape[0],
                                      .entries = entries,
                                      .k = (idx)shape[1],
                                      .d = (idx)d,
                                      .has_codes = 1,
                                      .name = s->name,
                                      .self = s,
                                      .starts = starts_read,
                                      .read = entries_read};
  return OK;
}

/* What a file of ours says beside its arrays. */
static int facts_read(struct supports_input *f)
{
  const struct h5_file *h5 = &f->state->h5;
  gidx top_s, rounds, frame, codes;
  f->top_s = -1;
  f->rounds = 1;
  f->explained_variance = nan_canonical();
  if (!h5_attribute_exists(h5, "/", "top_s")) return OK;
  TRY(h5_read_long(h5, "/", "top_s", &top_s));
  TRY(h5_read_long(h5, "/", "rounds", &rounds));
  TRY(h5_read_long(h5, "/", "frame", &frame));
  TRY(h5_read_long(h5, "/", "codes", &codes));
  TRY(h5_read_real(h5, "/", "rho", &f->rho));
  if (codes && h5_attribute_exists(h5, "/metrics", "explained_variance"))
    TRY(h5_read_real(h5, "/metrics", "explained_variance", &f->explained_variance));
  if (h5_attribute_exists(h5, "/", "sweeps")) TRY(h5_read_long(h5, "/", "sweeps", &f->sweeps));
  CHECK(top_s >= 1 && top_s <= f->source.k && rounds >= 1 && rounds <= INT32_MAX && f->rho >= 0 &&
            isfinite(f->rho) && f->sweeps >= 0,
        ERR_INPUT, "'%s' says top_s %lld, rounds %lld, rho %g, sweeps %lld", f->state->file,
        (long long)top_s, (long long)rounds, f->rho, (long long)f->sweeps);
  CHECK(!codes || frame == f->source.d, ERR_INPUT, "'%s' says frames of %lld, its codes are of %d",
        f->state->file, (long long)frame, f->source.d);
  f->top_s = (idx)top_s;
  f->rounds = (idx)rounds;
  f->source.d = (idx)frame;
  f->source.has_codes = codes != 0;
  return OK;
}

static int mean_read(struct supports_input *f)
{
  const struct supports_input_state *s = f->state;
  struct h5_array a;
  if (!h5_exists(&s->h5, "/mean")) return OK;
  TRY(h5_array_open(&s->h5, "/mean", &a));
  int fits = a.rank == 1 && (a.type == TYPE_F64 || a.type == TYPE_F32);
  if (fits) f->mean = malloc((size_t)a.shape[0] * sizeof *f->mean + 1);
  int status = f->mean ? h5_array_read(&a, 0, a.shape[0], TYPE_F64, f->mean) : OK;
  h5_array_close(&a);
  CHECK(fits, ERR_INPUT, "'/mean' of '%s' is not a vector of float64", s->file);
  CHECK(f->mean, ERR_MEMORY, "cannot allocate %lld bytes", (long long)a.shape[0] * 8);
  f->mean_length = a.shape[0];
  return status;
}

int supports_open(struct supports_input *f, const char *name)
{
  gidx shape[2];
  *f = (struct supports_input){0};
  struct supports_input_state *s = f->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  TRY(input_split(name, "/supports", &s->file, &s->group));
  f->file = s->file;
  snprintf(s->name, sizeof s->name, "%s:%s", s->file, s->group);
  TRY(h5_open(&s->h5, s->file));
  TRY(arrays_open(s));
  TRY(h5_read_longs(&s->h5, s->group, "shape", 2, shape));
  TRY(shapes_check(f, shape));
  TRY(facts_read(f));
  TRY(mean_read(f));
  return OK;
}

void supports_input_close(struct supports_input *f)
{
  struct supports_input_state *s = f->state;
  free(f->mean);
  if (s) {
    struct h5_array *arrays[] = {&s->indptr, &s->indices, &s->data, &s->score, &s->codes};
    for (int i = 0; i < LENGTH(arrays); i++) h5_array_close(arrays[i]);
    h5_close(&s->h5);
    free(s->file);
  }
  free(s);
  *f = (struct supports_input){0};
}
