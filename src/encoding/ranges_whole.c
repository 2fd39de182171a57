/* SPDX-License-Identifier: BSD-3-Clause
 * All journals are locked first, so that no job encodes a range again during the merge. */
#include "encoding/ranges_whole.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/h5/placed.h"
#include "io/inputs.h"
#include "io/place.h"
#include "io/record.h"
#include "io/supports_ranks.h"
#include "io/writer.h"
#include "job/identity.h"

static int missing_fail(gidx first, gidx end)
{
  FAIL(ERR_INPUT,
       "rows %lld to %lld are in no range: encode them with '--join --row-range %lld:%lld'",
       (long long)first, (long long)end - 1, (long long)first, (long long)end);
}

/* Lock the journal of a range.  Its number is 0 if it has no record. */
static int journal_lock(struct ranges_whole *w, int i)
{
  const struct range *r = &w->list.all[i];
  int error, has_lock;
  TRY(journal_claim(&w->journals[i], r->journal, 0, &error, &has_lock));
  CHECK(error != EWOULDBLOCK, ERR_CREATE,
        "a job is at work on rows %lld to %lld, it has '%s' locked: wait until it has ended",
        (long long)r->first, (long long)r->end - 1, r->journal);
  CHECK(!error, ERR_CREATE, "'%s' was removed just now: if '%s' exists, another merge did it",
        r->journal, w->path);
  return OK;
}

/* Do the records belong to this growing file?  It has no id if an earlier merge has begun to change
 * it. */
static int ids_check(const struct ranges_whole *w)
{
  char *text;
  gidx id;
  TRY(ranges_text(w->list.growing, &text, &id));
  int has = text != NULL;
  free(text);
  for (int i = 0; i < w->list.count && has; i++) {
    const struct journal *j = &w->journals[i];
    CHECK(!j->number || j->head.id == id, ERR_INPUT,
          "'%s' records rows of another file than '%s', which was made anew: restore the earlier "
          "file, or remove that journal and encode its range again",
          j->name, w->list.growing);
  }
  return OK;
}

/* The result exists already, and the journals were not removed.  Is it the result of these
 * journals? */
static int published_check(struct ranges_whole *w)
{
  struct identity_difference d = {"", ""};
  char *was, *is = NULL;
  TRY(writer_identity(w->path, &was));
  int status = writer_identity(w->list.all[0].journal, &is);
  int differs = !status && identity_text_differs(was, is, &d);
  free(was);
  free(is);
  TRY(status);
  CHECK(!differs, ERR_INPUT,
        "'%s' has %s, and the journals beside it are of %s, without their growing file: remove "
        "them",
        w->path, d.was, d.is);
  w->is_published = 1;
  return OK;
}

int ranges_whole_open(struct ranges_whole *w, const char *folder)
{
  *w = (struct ranges_whole){0};
  int length = snprintf(w->path, sizeof w->path, "%s/supports.h5", folder);
  CHECK(length < (int)sizeof w->path - 64, ERR_USAGE, "the name of '%s' is too long", folder);
  TRY(ranges_find(&w->list, w->path));
  int is_there = !*w->list.growing && input_is_there(w->path);
  CHECK(!is_there, ERR_CREATE,
        "'%s' already exists, and there are no ranges: nothing is left to merge; to merge parts, "
        "name their files, as in '%s/part-*.h5', and give '--output'",
        w->path, folder);
  CHECK(*w->list.growing, ERR_INPUT,
        "'%s' has no ranges that `encode --join` made; to merge parts, name their files, as in "
        "'%s/part-*.h5', and give '--output'",
        folder, folder);
  CHECK(w->list.count, ERR_INPUT, "nothing is recorded of '%s': encode its rows", w->list.growing);
  w->journals = calloc((size_t)w->list.count, sizeof *w->journals);
  w->zeros = calloc((size_t)w->list.count, SUPPORTS_ARRAYS * sizeof *w->zeros);
  w->counted = calloc((size_t)w->list.count, sizeof *w->counted);
  CHECK(w->journals && w->zeros && w->counted, ERR_MEMORY, "cannot allocate %d journals",
        w->list.count);
  for (int i = 0; i < w->list.count; i++) TRY(journal_lock(w, i));
  if (!w->list.has_growing && input_is_there(w->path)) return published_check(w);
  CHECK(w->list.has_growing, ERR_INPUT,
        "'%s' has lost its growing file: restore that, or remove the journals beside it, and "
        "encode all ranges again",
        w->list.growing);
  return ids_check(w);
}

static int part_fill(struct ranges_whole *w, int i, struct part_input *p)
{
  const struct range *range = &w->list.all[i];
  struct supports_input *s = &p->supports;
  struct record r;
  TRY(record_read(&r, &w->journals[i], &p->arena));
  CHECK(r.part.first == range->first && r.shape.n == range->end - range->first, ERR_INPUT,
        "'%s' records other rows than its name says", range->journal);
  CHECK(r.part.n == r.shape.n, ERR_INPUT,
        "rows %lld to %lld are not done: run '--join --row-range %lld:%lld' again with --resume",
        (long long)(r.part.first + r.part.n), (long long)range->end - 1, (long long)range->first,
        (long long)range->end);
  p->part = r.part;
  p->shape = r.shape;
  p->density = r.density;
  p->normalized = r.normalized;
  p->max_decoder_cosine = r.max_decoder_cosine;
  s->file = range->journal;
  s->rho = r.rho;
  s->rounds = r.rounds;
  s->inputs.dictionary = r.dictionary;
  memcpy(w->zeros + i * SUPPORTS_ARRAYS, r.zeros, sizeof r.zeros);
  w->counted[i] = r.counted;
  if (!r.mean) return OK;
  s->mean_length = r.part.p;
  s->mean = malloc((size_t)r.part.p * sizeof *s->mean);
  CHECK(s->mean, ERR_MEMORY, "cannot allocate a mean of %d columns", r.part.p);
  memcpy(s->mean, r.mean, (size_t)r.part.p * sizeof *s->mean);
  return OK;
}

/* Check that each range begins where the one before it ends, with the shape of the first. */
static int parts_check(const struct ranges_whole *w, const struct part_input *parts)
{
  const struct supports_shape *first = &parts[0].shape;
  gidx at = 0;
  for (int i = 0; i < w->list.count; i++) {
    const struct range *range = &w->list.all[i];
    const struct supports_shape *s = &parts[i].shape;
    CHECK(range->first >= at, ERR_INPUT, "'%s' and '%s' overlap: both have row %lld; remove one",
          w->list.all[i - 1].journal, range->journal, (long long)range->first);
    if (range->first > at) return missing_fail(at, range->first);
    at = range->end;
    CHECK(s->k == first->k && s->s == first->s && s->d == first->d && s->p == first->p &&
              s->has_codes == first->has_codes && parts[i].part.total == parts[0].part.total,
          ERR_INPUT, "'%s' and '%s' are of other shapes: encode one of them again, with --force",
          w->list.all[0].journal, range->journal);
  }
  return at < parts[0].part.total ? missing_fail(at, parts[0].part.total) : OK;
}

int ranges_whole_parts(struct ranges_whole *w, struct part_input *parts)
{
  for (int i = 0; i < w->list.count; i++) {
    const struct range *range = &w->list.all[i];
    if (!w->journals[i].number) return missing_fail(range->first, range->end);
    TRY(part_fill(w, i, &parts[i]));
  }
  return parts_check(w, parts);
}

/* Take the hashes of an array's chunks from the parts.  Compare the first and the last chunk of
 * each part, as --resume does: if the file was cut and extended again, rows are lost. */
static int leaves_take(const struct ranges_whole *w, const struct part_input *parts, int a,
                       const struct h5_array *array)
{
  struct h5_placed *p = array->placed;
  p->all_written = p->chunks;
  for (int i = 0; i < w->list.count; i++) {
    gidx first = parts[i].part.first * parts[i].shape.s / array->chunk_rows;
    p->all_zeros += w->zeros[i * SUPPORTS_ARRAYS + a];
    gidx count = ceil_div(parts[i].part.n * parts[i].shape.s, array->chunk_rows);
    TRY(journal_leaves(&w->journals[i], a, p->leaves[first]));
    TRY(h5_placed_confirm(array, first));
    if (count > 1) TRY(h5_placed_confirm(array, first + count - 1));
  }
  return OK;
}

int ranges_whole_begin(const struct ranges_whole *w, const struct part_input *parts,
                       struct supports_output *f)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  struct supports_shape shape = parts[0].shape;
  shape.n = parts[0].part.total;
  TRY(supports_growing_open(f, w->path, w->list.growing, &shape, shape.n));
  TRY(supports_placed_begin(f, parts[0].supports.rounds));
  int n = supports_output_arrays(f, arrays);
  for (int a = 0; a < n; a++) TRY(leaves_take(w, parts, a, arrays[a]));
  for (int i = 0; i < w->list.count; i++) {
    const struct support_counts counts = {.n = shape.n,
                                          .nnz = shape.n * shape.s,
                                          .nonzero = w->counted[i],
                                          .k = shape.k,
                                          .density = parts[i].density};
    TRY(supports_counts_add(f, &counts));
  }
  f->counts.has_offsets = 1;
  return supports_growing_end(f, &supports_kind);
}

void ranges_whole_remove(const struct ranges_whole *w)
{
  for (int i = 0; i < w->list.count; i++) output_remove(w->list.all[i].journal);
}

void ranges_whole_close(struct ranges_whole *w)
{
  for (int i = 0; i < w->list.count && w->journals; i++) journal_close(&w->journals[i]);
  free(w->journals);
  free(w->zeros);
  free(w->counted);
  ranges_free(&w->list);
  *w = (struct ranges_whole){0};
}
