/* SPDX-License-Identifier: BSD-3-Clause
 * Writes a result of supports and scores, without codes: the same sum block (4,096 rows) again and
 * again.  The plain writer has the same ranks, offsets and folder.  Result, plain writer and hash
 * take turns.  Result and plain file are removed before the next one begins.  This removal is not
 * timed: it takes a third of the time of a plain write, and equally long for both files. */
#include "bench/write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/sums.h"
#include "bench/peer.h"
#include "io/supports.h"
#include "io/h5/placed.h"
#include "io/record.h"
#include "io/supports_ranks.h"

enum { MAX_REPEATS = 1000 };
#define AT(member) offsetof(struct bench_write_options, member)

const struct option_row bench_write_rows[BENCH_WRITE_ROWS] = {
    {"output", OPTION_TEXT, AT(output), NULL, 0, 0, NULL, "FOLDER",
     "existing folder, in which files are written and then removed", .effect = OPTION_RUN,
     .flags = OPTION_OUTPUT},
};

struct bench {
  const char *folder;
  const struct bench_common *common;
  struct comm *c;
  struct supports_shape shape;
  struct arena arena;
  char result[PATH_MAX], journal[PATH_MAX], plain[PATH_MAX];
  idx *atoms;                 /* [ROW_BLOCK][s] */
  float *score;               /* [ROW_BLOCK][s] */
  unsigned char *slab;        /* [slabs.slab] bytes that the plain writer writes per sum block */
  gidx *density;              /* [k] rows of each atom */
  struct h5_slabs slabs;      /* offsets of the chunks in the last result */
  gidx bytes;                 /* of the chunks that all ranks write */
  double begun, rows_written; /* when the last run began, and when the last result had its rows */
  double results[MAX_REPEATS], plains[MAX_REPEATS], hashes[MAX_REPEATS];
};

static gidx blocks_of(const struct bench *b)
{
  return ceil_div(b->shape.n, ROW_BLOCK);
}

/* Fill a sum block, and count the rows of each atom in the whole result.  The atoms of a row are
 * different, and its scores descend. */
static int problem_fill(struct bench *b)
{
  idx k = b->shape.k, s = b->shape.s;
  TRY(arena_alloc(&b->arena, &b->atoms, (gidx)ROW_BLOCK * s, sizeof *b->atoms));
  TRY(arena_alloc(&b->arena, &b->score, (gidx)ROW_BLOCK * s, sizeof *b->score));
  TRY(arena_alloc(&b->arena, &b->density, k, sizeof *b->density));
  for (gidx i = 0; i < ROW_BLOCK; i++)
    for (idx j = 0; j < s; j++) {
      gidx entry = i * s + j;
      b->atoms[entry] = (idx)((i * 7919 + j) % k);
      b->score[entry] = (float)(s - j) + (float)(i % 1000) / 1024;
    }
  for (gidx block = 0; block < blocks_of(b); block++) {
    gidx n = imin(ROW_BLOCK, b->shape.n - block * ROW_BLOCK);
    for (gidx e = 0; e < n * s; e++) b->density[b->atoms[e]]++;
  }
  return OK;
}

/* Write this rank's sum blocks.  If `all` is 0, rank 0 writes all sum blocks. */
static int rows_write(struct bench *b, struct supports_output *f, int all)
{
  int size = all ? b->c->size : 1;
  if (!all && b->c->rank) return OK;
  for (gidx block = b->c->rank; block < blocks_of(b); block += size) {
    gidx first = block * ROW_BLOCK;
    const struct support_block rows = {.first = first,
                                       .n = (idx)imin(ROW_BLOCK, b->shape.n - first),
                                       .s = b->shape.s,
                                       .d = 1,
                                       .atoms = b->atoms,
                                       .score = b->score};
    TRY(f->sink.write(f->sink.self, &rows));
  }
  return OK;
}

/* Remove a file, and wait until its removal is on the disk. */
static int file_remove(struct bench *b, const char *name)
{
  int folder = open(b->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int failed = unlink(name), error = errno;
  if (folder >= 0) fsync(folder);
  if (folder >= 0) close(folder);
  CHECK(!failed, ERR_IO, "cannot remove '%s': %s", name, strerror(error));
  return OK;
}

/* Create the journal, and write one record of all rows to it. */
static int record_write(struct bench *b, struct supports_output *f, struct journal *j)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  gidx chunks[SUPPORTS_ARRAYS], rows[SUPPORTS_ARRAYS], bytes;
  const unsigned char *leaves[SUPPORTS_ARRAYS];
  unsigned char *record = NULL;
  const struct record r = {.shape = b->shape,
                           .part = {.n = b->shape.n},
                           .density = b->density,
                           .counted = f->counts.nonzero,
                           .identity = ""};
  int n = supports_output_arrays(f, arrays);
  for (int a = 0; a < n; a++) {
    chunks[a] = arrays[a]->placed->chunks;
    rows[a] = arrays[a]->chunk_rows / b->shape.s;
    leaves[a] = arrays[a]->placed->leaves[0];
  }
  TRY(journal_create(j, b->journal, n, chunks, rows, record_most(&r, b->shape.n)));
  int status = record_pack(&r, &record, &bytes);
  if (!status) status = journal_add(j, b->shape.n, leaves, record, bytes);
  free(record);
  return status;
}
static int result_end(struct bench *b, struct supports_output *f)
{
  struct metrics m = {.n = b->shape.n, .p = 1, .k = b->shape.k};
  metrics_density(&m, b->density, b->shape.n, b->shape.k);
  m.max_decoder_cosine = nan_canonical();
  const struct supports_ending ending = {.metrics = &m, .rounds = 1};
  b->slabs = f->slabs;
  return supports_output_finish(f, &ending, NULL, 0);
}

/* Rank 0: record and finish a growing result whose rows are all checked; remove its journal. */
static int growing_end(struct bench *b, struct supports_output *f)
{
  struct journal j = {0};
  int status = record_write(b, f, &j);
  journal_close(&j);
  TRY(status);
  TRY(supports_growing_end(f, &supports_kind));
  TRY(result_end(b, f));
  CHECK(unlink(b->journal) == 0, ERR_IO, "cannot remove '%s': %s", b->journal, strerror(errno));
  return OK;
}

static int growing_begin(struct bench *b, struct supports_output *f)
{
  TRY(supports_growing_create(f, b->result, &b->shape));
  return supports_placed_begin(f, 1);
}

/* Write a result as `encode` does on several ranks.  Chunks are written with their hashes, read
 * again, checked and recorded.  Then the small arrays are written and the result is published. */
static int growing_write(struct bench *b)
{
  struct supports_output f = {0};
  struct comm *c = b->c;
  int all;
  TRY(comm_agree(c, c->rank ? OK : growing_begin(b, &f)));
  TRY(supports_ranks_begin(&f, c, &b->shape, 1, &all));
  TRY(comm_agree(c, rows_write(b, &f, all)));
  b->rows_written = log_seconds();
  TRY(supports_ranks_check(&f, c, all, 0, b->shape.n));
  supports_placed_rest(&f);
  int status = c->rank ? h5_placed_close(&f.result.h5) : growing_end(b, &f);
  supports_output_close(&f);
  return comm_agree(c, status);
}

/* Write a result as `encode` does. */
static int result_write(struct bench *b)
{
  struct supports_output f = {0};
  if (b->c->size > 1) return growing_write(b);
  TRY(supports_output_create(&f, b->result, &b->shape));
  TRY(rows_write(b, &f, 1));
  b->rows_written = log_seconds();
  return result_end(b, &f);
}

/* The plain writer: write the bytes of this rank's sum blocks at the offsets of the result, and
 * sync them.  The chunks of a sum block are contiguous there. */
static int slabs_write(struct bench *b, int file)
{
  for (gidx block = b->c->rank; block < blocks_of(b); block += b->c->size) {
    gidx at = h5_slabs_at(&b->slabs, 0, block * (ROW_BLOCK / b->slabs.chunk_rows[0]));
    for (gidx done = 0; done < b->slabs.slab;) {
      ssize_t n = pwrite(file, b->slab + done, (size_t)(b->slabs.slab - done), at + done);
      CHECK(n > 0, ERR_IO, "cannot write '%s': %s", b->plain, strerror(errno));
      done += n;
    }
  }
  CHECK(fdatasync(file) == 0, ERR_IO, "cannot sync '%s': %s", b->plain, strerror(errno));
  return OK;
}

static int plain_write(struct bench *b)
{
  int file = open(b->plain, O_WRONLY | O_CREAT | O_CLOEXEC, 0666), status = OK;
  if (file < 0)
    status = status_fail(ERR_CREATE, __FILE__, __LINE__, "cannot open '%s': %s", b->plain,
                         strerror(errno));
  if (!status) status = slabs_write(b, file);
  if (file >= 0) close(file);
  return comm_agree(b->c, status);
}

/* Time the SHA-256 of the same bytes, on all ranks at the same time. */
static int slabs_hash(struct bench *b)
{
  unsigned char digest[SHA256_BYTES];
  struct sha256 h;
  TRY(sha256_begin(&h));
  int status = OK;
  for (gidx block = b->c->rank; block < blocks_of(b) && !status; block += b->c->size)
    status = sha256_add(&h, b->slab, (size_t)b->slabs.slab);
  if (!status) status = sha256_end(&h, digest);
  sha256_free(&h);
  return comm_agree(b->c, status);
}

/* *seconds <- the time of one run.  Then the file `name` is removed, unless it is NULL. */
static int one_run(struct bench *b, int (*run)(struct bench *b), const char *name, double *seconds)
{
  TRY(comm_agree(b->c, OK));
  b->begun = log_seconds();
  TRY(run(b));
  *seconds = log_seconds() - b->begun;
  return name ? comm_agree(b->c, b->c->rank ? OK : file_remove(b, name)) : OK;
}

static int repeat_run(struct bench *b, int turn)
{
  TRY(one_run(b, result_write, b->result, &b->results[turn]));
  TRY(comm_broadcast(b->c, &b->slabs, 1, sizeof b->slabs));
  if (!b->slab) TRY(comm_agree(b->c, arena_alloc(&b->arena, &b->slab, b->slabs.slab, 1)));
  memset(b->slab, 1 + turn, (size_t)b->slabs.slab);
  TRY(one_run(b, plain_write, b->plain, &b->plains[turn]));
  return one_run(b, slabs_hash, NULL, &b->hashes[turn]);
}

static void line_print(const struct bench *b, const char *name, double *seconds, double share)
{
  struct json *j = b->common->json;
  double middle = median(seconds, b->common->repeats), rate = 1e-9 * (double)b->bytes / middle;
  if (!j) {
    printf("%-10s %10.1f %10.3f %10.3f\n", name, 1e3 * middle, rate, share);
    return;
  }
  json_object(j, NULL);
  json_text(j, "name", name);
  json_real(j, "seconds", middle);
  json_real(j, "gigabytes", rate);
  json_real(j, "share", share);
  json_end(j);
}

/* The limit of a repeat is the slower of plain writer and hash.  name: the one that is slower in
 * most repeats.  share: the median of the time of the limit divided by that of the result. */
struct limit {
  const char *name;
  double share;
};

static struct limit limit_of(const struct bench *b)
{
  int n = b->common->repeats, is_hash = 0;
  double shares[MAX_REPEATS];
  for (int i = 0; i < n; i++) {
    is_hash += b->hashes[i] > b->plains[i] ? 1 : -1;
    shares[i] = fmax(b->hashes[i], b->plains[i]) / b->results[i];
  }
  return (struct limit){is_hash > 0 ? "hash" : "plain", median(shares, n)};
}

static void limit_print(const struct bench *b, const struct limit *l)
{
  struct json *j = b->common->json;
  if (!j) {
    printf("the result has %.3f of the rate of the slower of plain and hash, which is mostly %s\n",
           l->share, l->name);
    return;
  }
  json_text(j, "limit", l->name);
  json_real(j, "share_of_limit", l->share);
}

/* Print the table.  A share is the median of the time of the plain writer divided by that of the
 * line in the same repeat. */
static void table_print(struct bench *b)
{
  struct json *j = b->common->json;
  int n = b->common->repeats;
  b->bytes = blocks_of(b) * b->slabs.slab;
  double result = median_ratio(b->plains, b->results, n);
  double hash = median_ratio(b->plains, b->hashes, n);
  const struct limit limit = limit_of(b); /* computed first, because line_print() sorts the times */
  if (j) {
    json_long(j, "rows", b->shape.n);
    json_long(j, "top_s", b->shape.s);
    json_long(j, "ranks", b->c->size);
    json_long(j, "bytes", b->bytes);
    json_array(j, "lines");
  } else {
    printf("%lld rows of %d atoms, %.1f MB, %d ranks, medians of %d runs\n", (long long)b->shape.n,
           b->shape.s, 1e-6 * (double)b->bytes, b->c->size, n);
    printf("%-10s %10s %10s %10s\n", "", "ms", "GB/s", "of plain");
  }
  line_print(b, "plain", b->plains, 1);
  line_print(b, "hash", b->hashes, hash);
  line_print(b, "result", b->results, result);
  if (j) json_end(j);
  limit_print(b, &limit);
}

static int names_find(struct bench *b, const struct bench_write_options *o)
{
  CHECK(o->output, ERR_USAGE, "'--output' is missing: give a folder");
  CHECK(b->shape.n > ROW_BLOCK && b->shape.s <= b->shape.k, ERR_USAGE,
        "%lld rows of %d of %d atoms: more than %d rows have places that all ranks write to",
        (long long)b->shape.n, b->shape.s, b->shape.k, ROW_BLOCK);
  int length = snprintf(b->result, sizeof b->result, "%s/bench-write.h5", o->output);
  snprintf(b->plain, sizeof b->plain, "%.4000s/bench-write.plain", o->output);
  snprintf(b->journal, sizeof b->journal, "%.4000s/bench-write.journal", o->output);
  CHECK(length < 4000, ERR_USAGE, "the name '%s' is too long", o->output);
  for (int i = 0; i < 2; i++)
    CHECK(access(i ? b->plain : b->result, F_OK) < 0, ERR_CREATE, "'%s' already exists",
          i ? b->plain : b->result);
  return OK;
}

int bench_write_once(const struct bench_write_options *o, const struct bench_common *common,
                     struct comm *c, struct write_seconds *w)
{
  enum { BLOCKS = 16, K = 4096, S = 32, TURNS = 3 };
  static struct bench b;
  b = (struct bench){.folder = o->output, .common = common, .c = c};
  b.shape = (struct supports_shape){
      .n = (gidx)BLOCKS * ROW_BLOCK * c->size, .k = K, .s = S, .d = 1, .p = 1};
  TRY(comm_agree(c, names_find(&b, o)));
  TRY(comm_agree(c, problem_fill(&b)));
  *w = (struct write_seconds){INFINITY, INFINITY, 0};
  for (int i = 0; i < TURNS; i++) {
    double all;
    TRY(one_run(&b, result_write, b.result, &all));
    w->rows = fmin(w->rows, b.rows_written - b.begun);
    w->end = fmin(w->end, b.begun + all - b.rows_written);
  }
  w->bytes = 8. * S * (double)b.shape.n;
  arena_free(&b.arena);
  return OK;
}

int bench_write(const struct bench_write_options *o, const struct bench_route_options *route,
                const struct bench_common *common, struct comm *c)
{
  static struct bench b;
  b = (struct bench){.folder = o->output, .common = common, .c = c};
  b.shape = (struct supports_shape){
      .n = route->n_rows, .k = route->atoms, .s = route->top_s, .d = 1, .p = 1};
  TRY(comm_agree(c, names_find(&b, o)));
  TRY(comm_agree(c, problem_fill(&b)));
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(&b, r));
  if (c->rank == 0) table_print(&b);
  arena_free(&b.arena);
  return OK;
}
