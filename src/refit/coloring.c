/* SPDX-License-Identifier: BSD-3-Clause
 * The entries of a row are sorted by their atoms' positions in the greedy order, so an atom only
 * checks the entries before its own.  An entry is a position until its atom has a class, and then
 * that class. */
#include "refit/coloring.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

enum {
  LOT = COLOR_LOT,
  LOT_LEAST = 64,       /* least number of atoms of a lot; a set of them is then one word */
  LOT_BYTES = 64 << 20, /* of the sets, unless lots would be smaller than LOT_LEAST */
  ROWS_A_TASK = 1024,   /* rows per task of sorting */
  AHEAD = 8             /* entries that are prefetched before they are needed */
};

/* Flags of an entry; the other bits are a position or a class. */
#define ROW_BEGINS (UINT32_C(1) << 31)
#define HAS_CLASS (UINT32_C(1) << 30)
#define VALUE (HAS_CLASS - 1)

struct sized {
  gidx rows;
  idx atom;
};

struct coloring {
  const struct support_view *own;
  int threads;
  struct arena arena;
  struct sized *order; /* [k] atoms in the order of (N.6) */
  idx *place;          /* [k] position of each atom in the order */
  gidx *sizes;         /* [k] rows of each atom on all ranks; later the starts of own lists */
  gidx *start;         /* [k + 1] the atom at position p has entries list[start[p]] .. list[start[p
                        * + 1] - 1] */
  uint32_t *list;      /* [entries] */
  uint32_t *entries;   /* [entries] row by row, each row in greedy order */
  idx *color;          /* [k] */
  idx lot, alive, count; /* atoms of a lot; atoms in any row; classes so far */
  idx first, n;          /* positions of the present lot */
  gidx words;            /* of a set of classes */
  uint64_t *sets;        /* [n][lot / 64 words for atoms of the lot, then `words` for classes] */
  const struct color_looker *looker;
  uint32_t *marks; /* [k] for the looker: a position in a set, or beyond it */
  idx *atoms;      /* [lot] for the looker */
};

static int by_falling_size(const void *a, const void *b)
{
  const struct sized *one = a, *other = b;
  if (one->rows != other->rows) return one->rows > other->rows ? -1 : 1;
  return one->atom < other->atom ? -1 : 1;
}

static gidx words_of(gidx bits)
{
  return (bits + 63) / 64;
}

/* Allocate every array except the result. */
static int coloring_alloc(struct coloring *w, idx k, gidx entries)
{
  struct arena *a = &w->arena;
  CHECK(k <= (idx)VALUE && entries <= UINT32_MAX, ERR_INPUT,
        "%d atoms with %lld entries on a rank are more than can be coloured: give more ranks, or "
        "let fit take fewer rows at a time, as with '--update joint --minibatch 1000000'",
        k, (long long)entries);
  w->lot = LOT;
  while (w->lot > LOT_LEAST && w->lot * words_of((gidx)k + w->lot) * 8 > LOT_BYTES) w->lot /= 2;
  TRY(arena_alloc(a, &w->order, k, sizeof *w->order));
  TRY(arena_alloc(a, &w->place, k, sizeof *w->place));
  TRY(arena_alloc(a, &w->sizes, k, sizeof *w->sizes));
  TRY(arena_alloc(a, &w->start, (gidx)k + 1, sizeof *w->start));
  TRY(arena_alloc(a, &w->list, w->looker ? 0 : entries, sizeof *w->list));
  TRY(arena_alloc(a, &w->entries, w->looker ? 0 : entries, sizeof *w->entries));
  TRY(arena_alloc(a, &w->marks, w->looker ? k : 0, sizeof *w->marks));
  TRY(arena_alloc(a, &w->atoms, w->looker ? w->lot : 0, sizeof *w->atoms));
  TRY(arena_alloc(a, &w->color, k, sizeof *w->color));
  gidx words = words_of((gidx)k + w->lot) + w->lot / 64;
  return arena_alloc(a, &w->sets, w->lot * words, sizeof *w->sets);
}

int coloring_bytes(idx k, gidx entries, gidx *bytes)
{
  struct coloring w = {.arena.is_dry = 1};
  TRY(coloring_alloc(&w, k, entries));
  TRY(classes_bytes(k, bytes));
  *bytes += (gidx)w.arena.bytes;
  return OK;
}

/* Sort the atoms of all ranks' rows into the greedy order.  Collective. */
static int order_find(struct coloring *w, struct comm *c)
{
  const struct support_view *own = w->own;
  for (gidx e = 0; e < own->start[own->n]; e++) w->sizes[own->atoms[e]]++;
  for (idx a = 0; a < own->k; a++) w->start[a + 1] = w->sizes[a]; /* by atom, for now */
  TRY(comm_sum(c, w->sizes, own->k));
  for (idx a = 0; a < own->k; a++) w->order[a] = (struct sized){w->sizes[a], a};
  qsort(w->order, (size_t)own->k, sizeof *w->order, by_falling_size);
  while (w->alive < own->k && w->order[w->alive].rows > 0) w->alive++;
  for (idx p = 0; p < own->k; p++) w->place[w->order[p].atom] = p;
  for (idx p = 0; p < own->k; p++) w->sizes[p] = w->start[w->order[p].atom + 1];
  for (idx p = 0; p < own->k; p++) w->start[p + 1] = w->start[p] + w->sizes[p];
  return OK;
}

static int by_value(const void *a, const void *b)
{
  uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
  return one < other ? -1 : one > other;
}

/* Sort the positions in a row. */
static void row_sort(uint32_t *entries, gidx length)
{
  enum { SHORT = 64 };
  if (length > SHORT) {
    qsort(entries, (size_t)length, sizeof *entries, by_value);
    return;
  }
  for (gidx i = 1; i < length; i++) {
    uint32_t value = entries[i];
    gidx j = i;
    for (; j > 0 && entries[j - 1] > value; j--) entries[j] = entries[j - 1];
    entries[j] = value;
  }
}

/* A task: the entries of some rows, sorted. */
static void rows_sort(void *self, gidx task)
{
  struct coloring *w = self;
  const struct support_view *own = w->own;
  gidx first = task * ROWS_A_TASK, end = imin(first + ROWS_A_TASK, own->n);
  for (gidx i = first; i < end; i++) {
    gidx begin = own->start[i], length = own->start[i + 1] - begin;
    uint32_t *row = w->entries + begin;
    for (gidx e = 0; e < length; e++) row[e] = (uint32_t)w->place[own->atoms[begin + e]];
    row_sort(row, length);
    if (length > 0) row[0] |= ROW_BEGINS;
  }
}

/* A task: the lists of some positions; w->sizes is where each list continues. */
static void lists_fill(void *self, gidx task)
{
  struct coloring *w = self;
  gidx first, count, entries = w->own->start[w->own->n];
  comm_partition(w->own->k, w->threads, (int)task, &first, &count);
  for (gidx e = 0; e < entries; e++) {
    gidx place = w->entries[e] & VALUE;
    if (place - first < count && place >= first) w->list[w->sizes[place]++] = (uint32_t)e;
  }
}

/* Number of words of an atom's sets. */
static gidx set_words(const struct coloring *w)
{
  return w->lot / 64 + w->words;
}

static uint64_t *met_of(const struct coloring *w, gidx j)
{
  return w->sets + j * set_words(w);
}

static uint64_t *classes_of(const struct coloring *w, gidx j)
{
  return met_of(w, j) + w->lot / 64;
}

static void bit_set(uint64_t *set, gidx bit)
{
  set[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* A task: the sets of atom j of the lot, from own rows. */
static void atom_conflicts(void *self, gidx j)
{
  struct coloring *w = self;
  uint64_t *classes = classes_of(w, j), *met = met_of(w, j);
  const uint32_t *list = w->list;
  gidx begin = w->start[w->first + j], end = w->start[w->first + j + 1];
  for (gidx i = begin; i < end; i++) {
    if (i + AHEAD < end) __builtin_prefetch(w->entries + list[i + AHEAD]);
    for (const uint32_t *at = w->entries + list[i]; !(*at & ROW_BEGINS);) {
      at--;
      gidx value = *at & VALUE;
      if (*at & HAS_CLASS)
        bit_set(classes, value);
      else
        bit_set(met, value - w->first);
    }
  }
}

/* A task: enter the class of atom j of the lot in its own rows. */
static void atom_enter(void *self, gidx j)
{
  struct coloring *w = self;
  gidx begin = w->start[w->first + j], end = w->start[w->first + j + 1];
  uint32_t class = (uint32_t)w->color[w->order[w->first + j].atom] | HAS_CLASS;
  for (gidx i = begin; i < end; i++) {
    uint32_t *entry = w->entries + w->list[i];
    *entry = (*entry & ROW_BEGINS) | class;
  }
}

/* The smallest class that is not in a set; there is one. */
static idx class_free(const uint64_t *set)
{
  gidx word = 0;
  while (set[word] == UINT64_MAX) word++;
  return (idx)(64 * word + __builtin_ctzll(~set[word]));
}

/* Give atom j of the lot its class.  The atoms before it have classes. */
static void atom_color(struct coloring *w, idx j)
{
  uint64_t *classes = classes_of(w, j);
  const uint64_t *met = met_of(w, j);
  for (gidx word = 0; word < w->lot / 64; word++)
    for (uint64_t left = met[word]; left; left &= left - 1) {
      gidx other = w->first + 64 * word + __builtin_ctzll(left);
      bit_set(classes, w->color[w->order[other].atom]);
    }
  idx class = class_free(classes);
  w->color[w->order[w->first + j].atom] = class;
  w->count = class < w->count ? w->count : class + 1;
}

/* The sets of all atoms of the lot, by the looker. */
static int atoms_conflicts(struct coloring *w)
{
  struct color_conflicts look = {.begins = w->first == 0,
                                 .count = w->n,
                                 .atoms = w->atoms,
                                 .marks = w->marks,
                                 .words = set_words(w),
                                 .sets = w->sets};
  for (idx j = 0; j < w->n; j++) {
    w->atoms[j] = w->order[w->first + j].atom;
    w->marks[w->atoms[j]] = (uint32_t)j;
  }
  TRY(w->looker->look(w->looker->self, &look));
  for (idx j = 0; j < w->n; j++) { /* the atom itself and later ones do not matter */
    uint64_t *met = met_of(w, j);
    met[j / 64] &= (UINT64_C(1) << j % 64) - 1;
    for (gidx word = j / 64 + 1; word < w->lot / 64; word++) met[word] = 0;
  }
  return OK;
}

/* Enter the classes of the lot. */
static void subbatch_enter(struct coloring *w)
{
  if (!w->looker) {
    team_run(w->threads, w->n, atom_enter, w);
    return;
  }
  for (idx j = 0; j < w->n; j++) w->marks[w->atoms[j]] = (uint32_t)(w->lot + w->color[w->atoms[j]]);
}

/* Colour a lot, which takes at most as many new classes as it has atoms.  Collective. */
static int subbatch_color(struct coloring *w, struct comm *c)
{
  w->n = (idx)imin(w->lot, w->alive - w->first);
  w->words = words_of((gidx)w->count + w->n);
  gidx words = w->n * set_words(w);
  if (w->looker) {
    if (!comm_failure(c)) comm_record(c, atoms_conflicts(w));
  } else {
    memset(w->sets, 0, (size_t)words * sizeof *w->sets);
    team_run(w->threads, w->n, atom_conflicts, w);
  }
  TRY(comm_or(c, w->sets, words));
  for (idx j = 0; j < w->n; j++) atom_color(w, j);
  subbatch_enter(w);
  return OK;
}

/* Sort the rows, and list the entries of each atom, so that the host can find the sets. */
static void rows_list(struct coloring *w)
{
  const struct support_view *own = w->own;
  team_run(w->threads, (own->n + ROWS_A_TASK - 1) / ROWS_A_TASK, rows_sort, w);
  memcpy(w->sizes, w->start, (size_t)own->k * sizeof *w->sizes);
  team_run(w->threads, w->threads, lists_fill, w);
}

/* Colour all atoms.  Collective. */
static int atoms_color(struct coloring *w, struct comm *c)
{
  const struct support_view *own = w->own;
  TRY(order_find(w, c));
  if (w->looker)
    memset(w->marks, UINT8_MAX, (size_t)own->k * sizeof *w->marks);
  else
    rows_list(w);
  for (idx a = 0; a < own->k; a++) w->color[a] = -1;
  for (w->first = 0; w->first < w->alive; w->first += w->lot) TRY(subbatch_color(w, c));
  return OK;
}

int coloring_run(struct comm *c, const struct support_view *own, int threads,
                 const struct color_looker *looker, struct classes *out)
{
  struct coloring w = {.own = own, .threads = threads, .looker = looker};
  *out = (struct classes){0};
  TRY(comm_agree(c, coloring_alloc(&w, own->k, own->start[own->n])));
  int status = atoms_color(&w, c);
  if (!status) status = comm_agree(c, classes_from_colors(out, w.color, own->k, w.count));
  arena_free(&w.arena);
  return status;
}
