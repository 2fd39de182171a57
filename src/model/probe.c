/* SPDX-License-Identifier: BSD-3-Clause
 * The entries of an atom are visited once, from the largest score down.  The F1 of a label rises
 * only at rows with this label.  So for a label only the scores of such rows are tried as
 * thresholds; equal scores are tried once. */
#include "model/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

/* A label and the number of rows that have it. */
struct label_count {
  gidx label, count;
};

static int by_value(const void *a, const void *b)
{
  gidx x = *(const gidx *)a, y = *(const gidx *)b;
  return (x > y) - (x < y);
}

static int by_count(const void *a, const void *b)
{
  const struct label_count *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return by_value(&x->label, &y->label);
}

static int by_label(const void *a, const void *b)
{
  return by_value(&((const struct label_count *)a)->label, &((const struct label_count *)b)->label);
}

/* counts <- the labels of sorted values, each once.  Returns how many there are. */
static gidx labels_count(const gidx *sorted, gidx n, struct label_count *counts)
{
  gidx distinct = 0;
  for (gidx i = 0; i < n; i++) {
    if (i == 0 || sorted[i] != sorted[i - 1])
      counts[distinct++] = (struct label_count){sorted[i], 0};
    counts[distinct - 1].count++;
  }
  return distinct;
}

/* The index of a label among the m probed labels; -1: the label is not probed.  The list is sorted
 * by label, and its counts have been replaced by indexes. */
static idx label_find(const struct label_count *list, idx m, gidx label)
{
  const struct label_count wanted = {.label = label}, *found;
  found = bsearch(&wanted, list, (size_t)m, sizeof *list, by_label);
  return found ? (idx)found->count : -1;
}

/* Set m, label, of_row and count from counts[distinct], which is in any order and is overwritten; n
 * and half are already set. */
static void series_fill(struct probe_series *s, const gidx *labels, int shift,
                        struct label_count *counts, gidx distinct)
{
  qsort(counts, (size_t)distinct, sizeof *counts, by_count);
  s->m = (idx)imin(distinct, PROBE_LABELS);
  for (idx c = 0; c < s->m; c++) {
    s->label[c] = counts[c].label;
    counts[c].count = c;
  }
  qsort(counts, (size_t)s->m, sizeof *counts, by_label);
  for (gidx i = 0; i < s->n; i++) {
    gidx at = i + shift;
    idx c = at < 0 || at >= s->n ? -1 : label_find(counts, s->m, labels[at]);
    s->of_row[i] = c;
    if (c >= 0) s->count[i >= s->half][c]++;
  }
}

int probe_series_init(struct probe_series *s, const gidx *labels, gidx n, int shift,
                      struct arena *arena)
{
  struct arena scratch = {0};
  struct label_count *counts;
  gidx *sorted, first = shift > 0 ? shift : 0, used = imax(0, n - llabs(shift));
  *s = (struct probe_series){.n = n, .half = n / 2};
  TRY(arena_alloc(arena, &s->label, PROBE_LABELS, sizeof *s->label));
  for (int h = 0; h < 2; h++)
    TRY(arena_alloc(arena, &s->count[h], PROBE_LABELS, sizeof *s->count[h]));
  TRY(arena_alloc(arena, &s->of_row, n, sizeof *s->of_row));
  TRY(arena_alloc(&scratch, &sorted, used, sizeof *sorted));
  int status = arena_alloc(&scratch, &counts, used, sizeof *counts);
  if (!status) {
    memcpy(sorted, labels + first, (size_t)used * sizeof *sorted);
    qsort(sorted, (size_t)used, sizeof *sorted, by_value);
    series_fill(s, labels, shift, counts, labels_count(sorted, used, counts));
  }
  arena_free(&scratch);
  return status;
}

static int by_score(const void *a, const void *b)
{
  const struct probe_entry *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return (x->row > y->row) - (x->row < y->row);
}

void probe_sort(struct probe_entry *entries, gidx count)
{
  qsort(entries, (size_t)count, sizeof *entries, by_score);
}

/* Is a better than b?  The larger fraction is better, of equal ones the lower atom; any atom is
 * better than none.  Products do not overflow, since there are fewer than 2^31 rows. */
static int is_better(const struct probe *a, const struct probe *b)
{
  if (a->atom < 0 || b->atom < 0) return a->atom >= 0 && b->atom < 0;
  uint64_t x = a->hits * b->size, y = b->hits * a->size;
  return x != y ? x > y : a->atom < b->atom;
}

/* Insert a probe into the best ones, if it is among the best. */
static void choice_add(struct probe_choice *c, struct probe probe)
{
  for (int i = 0; i < PROBE_ATOMS; i++) {
    if (!is_better(&probe, &c->best[i])) continue;
    struct probe next = c->best[i];
    c->best[i] = probe;
    probe = next;
  }
}

static const struct probe no_probe = {.atom = -1};

void probe_choice_init(struct probe_choice *c)
{
  for (int i = 0; i < PROBE_ATOMS; i++) c->best[i] = no_probe;
  c->fires = no_probe;
}

void probe_choice_merge(struct probe_choice *c, const struct probe_choice *other)
{
  for (int i = 0; i < PROBE_ATOMS; i++) choice_add(c, other->best[i]);
  if (is_better(&other->fires, &c->fires)) c->fires = other->fires;
}

int probe_work_init(struct probe_work *w, idx m, struct arena *arena)
{
  TRY(arena_alloc(arena, &w->hits, m, sizeof *w->hits));
  TRY(arena_alloc(arena, &w->best, m, sizeof *w->best));
  return arena_alloc(arena, &w->touched, m, sizeof *w->touched);
}

/* Count the labels of the entries from `first` on whose score equals that of entry `first`.
 * Returns the index after the last such entry. */
static gidx group_count(const struct probe_series *s, const struct probe_entry *entries, gidx first,
                        gidx count, struct probe_work *w, idx *touched)
{
  gidx end = first;
  for (; end < count && entries[end].score == entries[first].score; end++) {
    idx label = s->of_row[entries[end].row];
    if (label >= 0 && w->hits[label]++ == 0) {
      w->best[label] = no_probe;
      w->touched[(*touched)++] = label;
    }
  }
  return end;
}

void probe_atom(const struct probe_series *s, idx atom, const struct probe_entry *entries,
                gidx count, struct probe_work *w, struct probe_choice *choices)
{
  idx touched = 0;
  for (gidx first = 0, end; first < count; first = end) {
    end = group_count(s, entries, first, count, w, &touched);
    for (gidx i = first; i < end; i++) {
      idx label = s->of_row[entries[i].row];
      if (label < 0) continue;
      struct probe probe = {.hits = w->hits[label],
                            .size = (uint64_t)(end + s->count[0][label]),
                            .atom = atom,
                            .threshold = entries[first].score};
      if (is_better(&probe, &w->best[label])) w->best[label] = probe;
    }
  }
  for (idx t = 0; t < touched; t++) {
    idx label = w->touched[t];
    struct probe fires = {.hits = w->hits[label],
                          .size = (uint64_t)(count + s->count[0][label]),
                          .atom = atom,
                          .threshold = entries[count - 1].score};
    choice_add(&choices[label], w->best[label]);
    if (is_better(&fires, &choices[label].fires)) choices[label].fires = fires;
    w->hits[label] = 0;
  }
}

real probe_f1(const struct probe_series *s, idx label, float threshold,
              const struct probe_entry *entries, gidx count)
{
  gidx hits = 0, above = 0;
  for (; above < count && entries[above].score >= threshold; above++)
    hits += s->of_row[entries[above].row] == label;
  return hits ? 2 * (real)hits / (real)(above + s->count[1][label]) : 0;
}
