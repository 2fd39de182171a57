/* SPDX-License-Identifier: BSD-3-Clause
 * One pass over /supports, in blocks of rows, and inside them in pieces of entries, because rows of
 * other programs can be long.  Threads divide the rows of a piece; each reads and checks its own
 * rows.  At the same time other threads count the atoms of the previous piece and hash it. */
#include "io/supports.h"
#include "io/supports_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "io/metrics.h"
#include "io/check.h"
#include "io/entry_counts.h"
#include "io/entry_hashes.h"
#include "io/entry_rows.h"
#include "io/dictionary.h"
#include "model/codes.h"
#include "model/dictionary.h"
#include "model/encoder.h"
#include "model/route.h"

enum {
  ROWS = 1 << 16,       /* of a block */
  PIECE = 1 << 18,      /* entries per thread, with several threads: a chunk of Sagitta's files */
  ALONE = 1 << 15,      /* entries, with one thread */
  LONG_PIECE = 1 << 22, /* entries, if chunks should rarely be read twice */
  MAX_PIECE = 1 << 21,  /* values of an array in a piece, at most, without a verify_taker */
  MAX_PARTS = 16        /* threads */
};

/* The state of one thread for its rows. */
struct support_part {
  gidx nonzero;
  idx atom_before; /* atom of the previous entry */
  float score_before;
  gidx end;   /* end of its entries in the piece; its entries begin where the previous part ends */
  gidx wrong; /* the first wrong entry, its status and its message */
  int status;
  char message[512];
};

struct support_pass {
  const struct verify *v;
  struct arena arena;
  const struct support_block *given; /* rows in memory; NULL: everything is read from the file */
  const float *given_data;           /* their values of /supports/data */
  struct h5_array indptr, indices, data, score, codes;
  int has_data, has_score;        /* the arrays exist, and data has a float type */
  int has_codes;                  /* /supports/codes is there */
  int is_solved;                  /* the file says that codes were solved */
  int is_nonnegative;             /* the file says that no value and no score is negative */
  gidx k, top_s, rounds, d;       /* top_s -1: rows may have any length */
  const char *encoder;            /* its name: rows may have fewer than top_s entries; NULL: none */
  int ascends;                    /* the atoms of a row are in ascending order */
  struct entry_rules rules;       /* of Sagitta's files; rules.begins NULL: there are no rules */
  gidx *offsets, *offsets_before; /* [ROWS + 1] of the current block, and of the previous one */
  gidx piece;                     /* capacity of the next arrays, in entries */
  idx *atoms;                     /* [piece] */
  float *values, *scores, *blocks; /* [piece], blocks [piece][d] */
  struct support_arrays {          /* the same arrays of the previous piece */
    idx *atoms;
    float *values, *scores, *blocks;
  } before;
  struct entry_hashes hashes; /* hash the previous piece while this one is checked */
  struct entry_counts atom_counts;
  struct support_counts counts;
  int n_parts;
  struct support_part parts[MAX_PARTS];
  /* The current piece. */
  gidx first, count; /* entries */
  gidx row, n;       /* first row of the block that has its entries, and the rows of that block */
  gidx given_rows;   /* rows that the taker (check.h) has received */
};

/* Does a routing round (N.3r) begin at position j of a row? */
static int round_begins(const struct support_pass *s, gidx j)
{
  for (idx r = 0; r < s->rounds; r++)
    if (round_end((idx)s->top_s, (idx)s->rounds, r) == j) return 1;
  return 0;
}

/* Check the order of an entry and the previous one.  If an encoder keeps all scores above a
 * threshold, atoms ascend (N.24).  Otherwise the entries of a round are in the order of (N.2): the
 * larger score first, and of equal scores the smaller atom first.  Scores of frames are rounded
 * after the selection, so their ties may be in any order. */
static int order_check(const struct support_pass *s, struct support_part *part, gidx row, gidx j,
                       idx atom, float score)
{
  idx atom_before = part->atom_before;
  float score_before = part->score_before, a = fabsf(score_before), b = fabsf(score);
  part->atom_before = atom;
  part->score_before = score;
  if (!s->v->is_ours || !s->has_score || j == 0) return OK;
  CHECK(!s->ascends || atom_before < atom, ERR_INPUT,
        "row %lld: atom %d is behind atom %d, but atoms ascend" ANEW, (long long)row, atom,
        atom_before);
  if (s->ascends) return OK;
  if (a > b || (a == b && (s->d > 1 || atom_before < atom))) return OK;
  CHECK(round_begins(s, j), ERR_INPUT,
        "row %lld: atoms %d and %d, scores %.9g and %.9g, are not in selection order" ANEW,
        (long long)row, atom_before, atom, (double)score_before, (double)score);
  return OK;
}

/* Check the code block of entry i of the piece. */
static int codes_check(const struct support_pass *s, struct support_part *part, gidx row, gidx i)
{
  const float *block = s->blocks + i * s->d;
  int is_zero = 1;
  for (gidx m = 0; m < s->d; m++) {
    CHECK(isfinite(block[m]), ERR_INPUT, "row %lld: the code of atom %d is %g" ANEW, (long long)row,
          s->atoms[i], (double)block[m]);
    is_zero = is_zero && block[m] == 0;
  }
  part->nonzero += !is_zero;
  float summary = code_summary(block, (idx)s->d);
  CHECK(!s->v->is_ours || memcmp(&summary, s->values + i, sizeof summary) == 0, ERR_INPUT,
        "row %lld: data of atom %d is %.9g, its codes give %.9g" ANEW, (long long)row, s->atoms[i],
        (double)s->values[i], (double)summary);
  return OK;
}

/* Check entry i of the piece.  It is at position j of its row. */
static int entry_check(const struct support_pass *s, struct support_part *part, gidx row, gidx j,
                       gidx i)
{
  idx atom = s->atoms[i];
  CHECK(atom >= 0 && atom < s->k, ERR_INPUT, "row %lld: atom %d is not in 0 .. %lld" ANEW,
        (long long)row, atom, (long long)s->k - 1);
  float score = s->has_score ? s->scores[i] : 0;
  CHECK(isfinite(s->values[i]) && isfinite(score), ERR_INPUT,
        "row %lld: atom %d has value %g and score %g" ANEW, (long long)row, atom,
        (double)s->values[i], (double)score);
  CHECK(!s->is_nonnegative || (s->values[i] >= 0 && score >= 0), ERR_INPUT,
        "row %lld: atom %d has code %g and score %g, the file says that none is negative" ANEW,
        (long long)row, atom, (double)s->values[i], (double)score);
  TRY(order_check(s, part, row, j, atom, score));
  if (s->has_codes) return codes_check(s, part, row, i);
  part->nonzero += s->values[i] != 0;
  CHECK(!s->v->is_ours || s->is_solved || memcmp(s->values + i, s->scores + i, sizeof score) == 0,
        ERR_INPUT, "row %lld: data of atom %d is not its score, and no codes were solved" ANEW,
        (long long)row, atom);
  return OK;
}

/* Copy entries of rows that are in memory. */
static void entries_copy(const struct support_pass *s, gidx at, gidx count)
{
  const struct support_block *b = s->given;
  gidx first = s->first + at - b->first * b->s, d = s->d;
  memcpy(s->atoms + at, b->atoms + first, (size_t)count * sizeof *s->atoms);
  memcpy(s->values + at, s->given_data + first, (size_t)count * sizeof *s->values);
  memcpy(s->scores + at, b->score + first, (size_t)count * sizeof *s->scores);
  if (s->has_codes)
    memcpy(s->blocks + at * d, b->codes + first * d, (size_t)(count * d) * sizeof *s->blocks);
}

/* Read `count` entries of the piece, from its entry `at` on. */
static int entries_read(const struct support_pass *s, gidx at, gidx count)
{
  gidx first = s->first + at;
  if (s->given) {
    entries_copy(s, at, count);
    return OK;
  }
  TRY(h5_array_read(&s->indices, first, count, TYPE_I32, s->atoms + at));
  if (s->has_data) TRY(h5_array_read(&s->data, first, count, TYPE_F32, s->values + at));
  if (s->has_score) TRY(h5_array_read(&s->score, first, count, TYPE_F32, s->scores + at));
  if (s->has_codes) TRY(h5_array_read(&s->codes, first, count, TYPE_F32, s->blocks + at * s->d));
  return OK;
}

/* Read and check the offsets of rows row .. row + n.  For rows in memory, and for offsets that were
 * checked when they were written, they are computed, not read. */
static int offsets_check(struct support_pass *s, gidx row, gidx n)
{
  int is_known = s->given || (s->v->counts && s->v->counts->has_offsets);
  for (gidx i = 0; i <= n && is_known; i++) s->offsets[i] = (row + i) * s->top_s;
  if (!is_known) TRY(h5_array_read(&s->indptr, row, n + 1, TYPE_I64, s->offsets));
  CHECK(row > 0 || s->offsets[0] == 0, ERR_INPUT, "'/supports/indptr' begins with %lld, not 0",
        (long long)s->offsets[0]);
  for (gidx i = 0; i < n; i++) {
    gidx length = s->offsets[i + 1] - s->offsets[i];
    CHECK(s->offsets[i] >= 0 && s->offsets[i + 1] >= s->offsets[i], ERR_INPUT,
          "row %lld: offsets fall from %lld to %lld" ANEW, (long long)(row + i),
          (long long)s->offsets[i], (long long)s->offsets[i + 1]);
    int fits = s->top_s < 0 || (s->encoder ? length <= s->top_s : length == s->top_s);
    CHECK(fits, ERR_INPUT, "row %lld has %lld entries, top-s is %lld" ANEW, (long long)(row + i),
          (long long)length, (long long)s->top_s);
  }
  CHECK(s->offsets[n] <= s->counts.nnz, ERR_INPUT, "row %lld ends at entry %lld of %lld" ANEW,
        (long long)(row + n - 1), (long long)s->offsets[n], (long long)s->counts.nnz);
  return OK;
}

/* The row of the block that has entry e. */
static gidx row_of(const struct support_pass *s, gidx e)
{
  gidx low = 0, high = s->n; /* the row is in low .. high - 1 */
  while (high - low > 1) {
    gidx middle = (low + high) / 2;
    if (s->offsets[middle] <= e)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Check entries e .. end - 1, which belong to row r of the block, one by one. */
static int entries_check(const struct support_pass *s, struct support_part *part, gidx r, gidx e,
                         gidx end)
{
  for (; e < end; e++) {
    part->wrong = e;
    TRY(entry_check(s, part, s->row + r, e - s->offsets[r], e - s->first));
  }
  return OK;
}

/* Are these entries a whole row that is valid, apart from its code blocks? */
static int row_is_plain(const struct support_pass *s, gidx r, gidx e, gidx end, gidx *nonzero)
{
  gidx at = e - s->first, n = end - e;
  if (!s->rules.begins || e != s->offsets[r] || end != s->offsets[r + 1]) return 0;
  return entry_row_is_plain(&s->rules, s->atoms + at, s->values + at, s->scores + at, n, nonzero);
}

static int row_codes_check(const struct support_pass *s, struct support_part *part, gidx r, gidx e,
                           gidx end)
{
  for (; e < end; e++) {
    part->wrong = e;
    TRY(codes_check(s, part, s->row + r, e - s->first));
  }
  return OK;
}

/* Check the entries of a part: from `begin` to part->end. */
static int part_check(const struct support_pass *s, struct support_part *part, gidx begin)
{
  if (begin == part->end) return OK;
  TRY(entries_read(s, begin - s->first, part->end - begin));
  gidx r = row_of(s, begin), end;
  for (gidx e = begin; e < part->end; e = end) {
    gidx nonzero = 0;
    while (e >= s->offsets[r + 1]) r++;
    end = imin(s->offsets[r + 1], part->end);
    int is_plain = row_is_plain(s, r, e, end, &nonzero);
    if (!is_plain) TRY(entries_check(s, part, r, e, end));
    if (is_plain && s->has_codes) TRY(row_codes_check(s, part, r, e, end));
    if (is_plain && !s->has_codes) part->nonzero += nonzero;
  }
  return OK;
}

static int before_tasks(const struct support_pass *s)
{
  return s->hashes.count + s->atom_counts.shares;
}

/* A task about the previous piece: hash one of its arrays, or count atoms of it. */
static void before_run(void *self, gidx i)
{
  struct support_pass *s = self;
  if (i < s->hashes.count)
    entry_hashes_add(&s->hashes, i);
  else
    entry_counts_add(&s->atom_counts, i - s->hashes.count);
}

/* A task about the previous piece, or the check of a part of this piece. */
static void task_run(void *self, gidx task)
{
  struct support_pass *s = self;
  gidx i = task - before_tasks(s);
  if (i < 0) {
    before_run(self, task);
    return;
  }
  struct support_part *part = &s->parts[i];
  part->status = part_check(s, part, i ? s->parts[i - 1].end : s->first);
  if (!part->status) return;
  status_take(part->message, sizeof part->message);
}

/* Divide the piece into parts of whole rows.  If the piece begins or ends inside a row, the first
 * part is the whole piece. */
static void parts_cut(struct support_pass *s)
{
  gidx end = s->first + s->count, last = row_of(s, end - 1);
  int is_whole = s->offsets[row_of(s, s->first)] == s->first && s->offsets[last + 1] == end;
  for (int i = 0; i < s->n_parts; i++) {
    gidx wanted = s->first + s->count * (i + 1) / s->n_parts;
    s->parts[i].end = is_whole && wanted < end ? s->offsets[row_of(s, wanted)] : end;
  }
}

/* The first `count` entries of this piece become the previous piece.  The next piece uses the
 * memory that the previous piece had until now. */
static void piece_swap(struct support_pass *s, gidx count)
{
  struct support_arrays now = {s->atoms, s->values, s->scores, s->blocks};
  const void *const values[ENTRY_ARRAYS] = {now.atoms, now.values, now.scores, now.blocks};
  gidx r = row_of(s, s->first);
  s->atom_counts.piece =
      (struct entry_piece){s->first, count, s->row + r, s->offsets + r + 1, now.atoms};
  entry_hashes_next(&s->hashes, s->first, count, values);
  s->atoms = s->before.atoms;
  s->values = s->before.values;
  s->scores = s->before.scores;
  s->blocks = s->before.blocks;
  s->before = now;
}

/* The status of the tasks about the previous piece. */
static int before_status(const struct support_pass *s)
{
  TRY(entry_counts_status(&s->atom_counts));
  return entry_hashes_status(&s->hashes);
}

/* Run the tasks about the previous piece, when no piece follows. */
static int before_end(struct support_pass *s)
{
  spare_run(before_tasks(s), before_run, s);
  return before_status(s);
}

/* Give rows up to `end` of the block to the taker.  The previous piece has all of their entries,
 * since parts_open() makes a piece at least as long as any row. */
static int rows_give(struct support_pass *s, gidx end)
{
  const struct verify_taker *taker = s->v->taker;
  gidx r = s->given_rows - s->row;
  if (!taker || r == end) return OK;
  const struct verify_rows rows = {.first = s->row + r,
                                   .n = end - r,
                                   .start = s->offsets + r,
                                   .atoms = s->before.atoms,
                                   .data = s->before.values,
                                   .score = s->before.scores,
                                   .blocks = s->has_codes ? s->before.blocks : NULL};
  s->given_rows = s->row + end;
  return taker->take(taker->self, &rows);
}

/* Check a piece.  If several entries are wrong, the first one is reported. */
static int piece_check(struct support_pass *s)
{
  parts_cut(s);
  spare_run(before_tasks(s) + s->n_parts, task_run, s);
  TRY(before_status(s));
  for (int i = 0; i < s->n_parts; i++) {
    if (!s->parts[i].status) continue;
    piece_swap(s, imax(s->parts[i].wrong - s->first, 0));
    TRY(before_end(s));
    return status_set(s->parts[i].status, s->parts[i].message);
  }
  piece_swap(s, s->count);
  return rows_give(s, row_of(s, s->first + s->count - 1) + 1);
}

/* Called before the offsets of the next block are read: exchange the two arrays, because tasks
 * about the previous piece still need the offsets of its block.  If the block just checked has no
 * entries, that piece is of an earlier block, and nothing is exchanged. */
static void offsets_swap(struct support_pass *s)
{
  gidx *offsets = s->offsets_before;
  if (s->offsets[0] == s->offsets[s->n]) return;
  s->offsets_before = s->offsets;
  s->offsets = offsets;
}

static int rows_check_block(struct support_pass *s, gidx row, gidx n)
{
  offsets_swap(s);
  TRY(offsets_check(s, row, n));
  gidx end = s->offsets[n];
  s->row = row;
  s->n = n;
  for (s->first = s->offsets[0]; s->first < end; s->first += s->count) {
    s->count = imin(s->piece, end - s->first);
    gidx whole = s->first + s->count < end ? s->offsets[row_of(s, s->first + s->count)] : end;
    if (whole > s->first) s->count = whole - s->first;
    TRY(piece_check(s));
  }
  return rows_give(s, n); /* the last rows may have no entries */
}

/* Take the counts of rows that were checked when they were written.  Only the offsets are checked
 * again, unless they were checked too. */
static int rows_take(struct support_pass *s, gidx row, gidx n)
{
  const struct support_counts *counts = s->v->counts;
  s->counts.nonzero = counts->nonzero;
  memcpy(s->counts.density, counts->density, (size_t)s->k * sizeof *counts->density);
  return offsets_check(s, row, n);
}

/* Run the tasks about the last piece, and add up the counts. */
static int pieces_end(struct support_pass *s)
{
  TRY(before_end(s));
  TRY(entry_hashes_end(&s->hashes));
  for (int i = 0; i < s->n_parts; i++) s->counts.nonzero += s->parts[i].nonzero;
  for (gidx k = 0; k < s->k; k++) s->counts.density[k] = s->atom_counts.atoms[k].rows;
  return OK;
}

static int all_rows_check(struct support_pass *s)
{
  gidx n = s->counts.n, end = 0;
  int is_known = s->v->counts != NULL;
  if (n == 0) TRY(offsets_check(s, 0, 0));
  for (gidx row = 0; row < n; row += ROWS) {
    gidx count = imin(ROWS, n - row);
    TRY(is_known ? rows_take(s, row, count) : rows_check_block(s, row, count));
    end = s->offsets[count];
  }
  CHECK(end == s->counts.nnz, ERR_INPUT,
        "'/supports/indptr' ends with %lld, there are %lld entries" ANEW, (long long)end,
        (long long)s->counts.nnz);
  return is_known ? OK : pieces_end(s);
}

/* Check the encoding and the shape of the CSR group, and for a file of Sagitta the attributes of
 * the root. */
static int attributes_check(struct support_pass *s, struct dimensions *dims)
{
  const struct h5_file *f = s->v->file;
  gidx shape[2], solved = 1;
  TRY(check_text(s->v, "/supports", "encoding-type", "csr_matrix"));
  TRY(check_text(s->v, "/supports", "encoding-version", "0.1.0"));
  TRY(h5_read_longs(f, "/supports", "shape", 2, shape));
  TRY(dimension_bind(dims, "N", shape[0], "/supports @shape"));
  TRY(dimension_bind(dims, "K", shape[1], "/supports @shape"));
  s->top_s = -1;
  s->rounds = s->d = 1;
  if (s->v->is_ours) {
    real rho;
    TRY(h5_read_long(f, "/", "top_s", &s->top_s));
    TRY(h5_read_long(f, "/", "rounds", &s->rounds));
    TRY(h5_read_long(f, "/", "frame", &s->d));
    TRY(h5_read_long(f, "/", "codes", &solved));
    TRY(h5_read_real(f, "/", "rho", &rho));
    CHECK(s->top_s >= 1 && s->top_s <= shape[1] && s->rounds >= 1 && s->rounds <= s->top_s &&
              s->d >= 1 && s->d <= MAX_FRAME && rho >= 0,
          ERR_INPUT, "top_s %lld, rounds %lld, frame %lld, rho %g are out of range" ANEW,
          (long long)s->top_s, (long long)s->rounds, (long long)s->d, rho);
  }
  s->is_solved = solved != 0;
  if (s->v->is_ours) TRY(nonnegative_read(f, &s->is_nonnegative));
  if (s->v->is_ours) TRY(supports_encoder_read(f, &s->encoder));
  s->ascends = s->encoder && s->encoder != encoder_names[ENCODER_TOPK];
  TRY(h5_exists(f, "/supports/codes", &s->has_codes));
  CHECK(!s->v->is_ours || s->has_codes == (s->is_solved && s->d > 1), ERR_INPUT,
        "'/supports/codes' is %s, atoms have %lld vectors and codes were %ssolved" ANEW,
        s->has_codes ? "there" : "missing", (long long)s->d, s->is_solved ? "" : "not ");
  if (s->has_codes && s->v->is_ours) TRY(dimension_bind(dims, "d", s->d, "/ @frame"));
  return OK;
}

/* Allocate the arrays of a piece. */
static int arrays_alloc(struct support_pass *s)
{
  TRY(arena_alloc(&s->arena, &s->atoms, s->piece, sizeof *s->atoms));
  TRY(arena_alloc(&s->arena, &s->values, s->piece, sizeof *s->values));
  TRY(arena_alloc(&s->arena, &s->scores, s->piece, sizeof *s->scores));
  return arena_alloc(&s->arena, &s->blocks, s->has_codes ? s->piece * s->d : 0, sizeof *s->blocks);
}

/* Set the rules of entries for a file that Sagitta wrote. */
static void rules_set(struct support_pass *s, int32_t *begins)
{
  enum entry_order scores = s->d > 1 ? ORDER_SCORES : ORDER_SCORES_ATOMS;
  memset(begins, 0, (size_t)s->top_s * sizeof *begins);
  for (idx r = 0; r < s->rounds; r++) begins[round_end((idx)s->top_s, (idx)s->rounds, r)] = -1;
  s->rules = (struct entry_rules){.k = (idx)s->k,
                                  .order = s->ascends ? ORDER_ATOMS : scores,
                                  .nonnegative = s->is_nonnegative,
                                  .same = !s->has_codes && !s->is_solved,
                                  .begins = begins};
}

static int parts_open(struct support_pass *s)
{
  int32_t *begins;
  s->n_parts = (int)imax(1, imin(team_spare(), MAX_PARTS));
  s->piece = s->n_parts > 1 ? imin((gidx)PIECE * s->n_parts, MAX_PIECE / s->d) : ALONE;
  if (s->v->taker) s->piece = imax(imax(s->piece, PIECE), s->top_s);
  if (s->v->taker && s->encoder) { /* pieces are long: chunks at their ends are read twice */
    s->n_parts = 1;
    s->piece = imax(LONG_PIECE, s->top_s);
  }
  if (s->v->taker) s->piece = imin(s->piece, imax(s->counts.nnz, 1));
  TRY(arena_alloc(&s->arena, &s->offsets, ROWS + 1, sizeof *s->offsets));
  TRY(arena_alloc(&s->arena, &s->offsets_before, ROWS + 1, sizeof *s->offsets));
  TRY(arrays_alloc(s));
  s->before = (struct support_arrays){s->atoms, s->values, s->scores, s->blocks};
  TRY(arrays_alloc(s));
  TRY(entry_counts_open(&s->atom_counts, &s->arena, s->k, s->n_parts));
  TRY(entry_hashes_open(&s->hashes, s->v));
  TRY(arena_alloc(&s->arena, &begins, imax(s->top_s, 0), sizeof *begins));
  if (!s->arena.is_dry && s->v->is_ours && s->has_score) rules_set(s, begins);
  return arena_alloc(&s->arena, &s->counts.density, s->k, sizeof *s->counts.density);
}

static int arrays_open(struct support_pass *s, const struct dimensions *dims)
{
  const struct h5_file *f = s->v->file;
  TRY(h5_exists(f, "/supports/score", &s->has_score));
  TRY(h5_array_open(f, "/supports/indptr", &s->indptr));
  TRY(h5_array_open(f, "/supports/indices", &s->indices));
  TRY(h5_array_open(f, "/supports/data", &s->data));
  s->has_data = s->data.type == TYPE_F32 || s->data.type == TYPE_F64;
  if (s->has_score) TRY(h5_array_open(f, "/supports/score", &s->score));
  if (s->has_codes) TRY(h5_array_open(f, "/supports/codes", &s->codes));
  if (s->has_codes) s->d = s->codes.shape[1];
  s->counts.n = dimension_value(dims, "N");
  s->counts.nnz = dimension_value(dims, "nnz");
  s->k = dimension_value(dims, "K");
  TRY(supports_shape_check(f, (gidx[2]){s->counts.n, s->k}, s->counts.nnz));
  CHECK(s->d >= 1 && s->d <= MAX_FRAME, ERR_INPUT,
        "'/supports' has %lld numbers per code, not 1 to %d" ANEW, (long long)s->d, MAX_FRAME);
  s->counts.k = (idx)s->k;
  return parts_open(s);
}

static int supports_run(struct support_pass *s, struct verify *v)
{
  TRY(attributes_check(s, &v->dims));
  TRY(arrays_open(s, &v->dims));
  TRY(all_rows_check(s));
  check_note(v, "supports  %lld rows, %lld entries: offsets, ranges, no atom twice in a row%s",
             (long long)s->counts.n, (long long)s->counts.nnz,
             v->is_ours ? ", selection order" : "");
  if (v->is_ours) TRY(metrics_check(v, &s->counts, s->is_solved));
  return OK;
}

/* Set the attributes that a file of Sagitta with this shape has. */
static int given_open(struct support_pass *s, const struct supports_shape *shape, idx rounds)
{
  s->has_data = s->has_score = 1;
  s->has_codes = shape->has_codes && shape->d > 1;
  s->is_solved = shape->has_codes;
  s->is_nonnegative = shape->nonnegative;
  s->k = shape->k;
  s->top_s = shape->s;
  s->rounds = rounds;
  s->d = shape->d;
  s->counts = (struct support_counts){.n = shape->n, .nnz = shape->n * shape->s, .k = shape->k};
  return parts_open(s);
}

int supports_rows_open(struct support_pass **pass, const struct supports_shape *shape, idx rounds)
{
  static const struct verify ours = {.is_ours = 1};
  TRY(struct_alloc(pass, sizeof **pass));
  (*pass)->v = &ours;
  return given_open(*pass, shape, rounds);
}

int supports_rows_check(struct support_pass *pass, const struct support_block *block,
                        const float *data)
{
  pass->given = block;
  pass->given_data = data;
  return rows_check_block(pass, block->first, block->n);
}

int supports_rows_end(struct support_pass *pass, struct support_counts *counts)
{
  TRY(pieces_end(pass));
  *counts = pass->counts;
  return OK;
}

void supports_rows_close(struct support_pass *pass)
{
  if (pass) arena_free(&pass->arena);
  free(pass);
}

int supports_taking_bytes(const struct supports_shape *shape, gidx entries, gidx *bytes)
{
  static const struct verify_taker nobody;
  const struct verify v = {.taker = &nobody};
  struct support_pass s = {.v = &v, .k = shape->k, .top_s = shape->s, .d = shape->d};
  s.has_codes = shape->has_codes && shape->d > 1;
  s.encoder = shape->encoder;
  s.counts.nnz = entries;
  s.arena.is_dry = 1;
  TRY(parts_open(&s));
  *bytes = (gidx)s.arena.bytes;
  return OK;
}

int supports_check(struct verify *v)
{
  struct support_pass s = {.v = v};
  int there;
  TRY(h5_exists(v->file, "/supports/indptr", &there));
  if (!there) return OK;
  int status = supports_run(&s, v);
  entry_hashes_close(&s.hashes);
  h5_array_close(&s.indptr);
  h5_array_close(&s.indices);
  h5_array_close(&s.data);
  h5_array_close(&s.score);
  h5_array_close(&s.codes);
  arena_free(&s.arena);
  return status;
}
