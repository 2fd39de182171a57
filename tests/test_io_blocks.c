/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: blocks hold the same values however they are cut; a chunk does not pass through HDF5's
 * filters, and its checksum is theirs; the last chunk ends in zeros. */
#include "io_blocks.h"

enum { MAX_SUMMED = 40000 };

/* The definition: one's complement sums of big-endian words, carries folded back at every step. */
static uint32_t sum_plainly(const unsigned char *data, size_t bytes)
{
  uint32_t sum = 0, sums = 0;
  for (size_t i = 0; i < bytes; i += 2) {
    sum += (uint32_t)data[i] << 8 | (i + 1 < bytes ? data[i + 1] : 0);
    sum = (sum & 0xffff) + (sum >> 16);
    sums += sum;
    sums = (sums & 0xffff) + (sums >> 16);
  }
  return sums << 16 | sum;
}

static void sums_agree(void)
{
  static unsigned char data[4][MAX_SUMMED];
  int wrong = 0;
  for (int i = 0; i < MAX_SUMMED; i++) {
    data[0][i] = (unsigned char)random_bits(1, 0, (uint64_t)i);
    data[1][i] = 0xff;
    data[2][i] = 0;
    data[3][i] = i == 9001; /* nothing but zeros for long */
  }
  for (int kind = 0; kind < 4; kind++)
    for (size_t bytes = 0; bytes <= MAX_SUMMED; bytes += bytes < 200 ? 1 : 331)
      wrong += h5_fletcher32(data[kind], bytes) != sum_plainly(data[kind], bytes);
  ok(wrong == 0, "checksums of 0 to %d bytes, %d wrong", MAX_SUMMED, wrong);
}

static void chunks_are_taken(void)
{
  static real values[ROWS * COLUMNS];
  for (gidx i = 0; i < ROWS * COLUMNS; i++) values[i] = random_normal(3, 1, (uint64_t)i);
  struct h5_file f;
  struct h5_array a = {0};
  const gidx shapes[3][3] = {{ROWS * COLUMNS, 0, 0}, {ROWS, COLUMNS, 0}, {ROWS, COLUMNS, 1}};
  const char *const names[] = {"/a", "/b", "/c"};
  int status = h5_create(&f, "blocks.h5");
  for (int i = 0; i < 3 && !status; i++) {
    status = h5_array_create_chunked(&f, names[i], TYPE_F64, i + 1, shapes[i], CHUNK, &a);
    if (!status) status = h5_array_write(&a, 0, shapes[i][0], values);
    if (!status) status = h5_array_close(&a);
  }
  if (!status) status = h5_close(&f);
  ok(status == OK, "a file of three arrays %s", status_message());
  claim_begin("blocks of any size hold the file's values, all chunks past HDF5's filters");
  for (int i = 0; i < 3; i++) {
    gidx n = shapes[i][0], items = i ? COLUMNS : 1, all = (n + CHUNK - 1) / CHUNK;
    static const gidx blocks[] = {ROWS * COLUMNS, CHUNK, CHUNK - 1, 150, 1};
    for (int j = 0; j < LENGTH(blocks); j++) {
      gidx taken = blocks_taken(names[i], TYPE_F64, items, blocks[j], values);
      ok(taken == all, "rank %d, blocks of %lld: %lld of %lld chunks taken", i + 1,
         (long long)blocks[j], (long long)taken, (long long)all);
    }
  }
  claim_end();
}

/* The last chunk of /b ends in zeros, not in what the memory held. */
static void last_chunk_ends_in_zeros(void)
{
  real chunk[CHUNK * COLUMNS + 1];
  hsize_t start[2] = {ROWS - ROWS % CHUNK, 0};
  uint32_t mask = 1;
  struct h5_file f;
  struct h5_array a = {0};
  int wrong = h5_open(&f, "blocks.h5") || h5_array_open(&f, "/b", &a) ||
              H5Dread_chunk(a.id, H5P_DEFAULT, start, &mask, chunk) < 0 || mask;
  for (int i = ROWS % CHUNK * COLUMNS; i < CHUNK * COLUMNS; i++) wrong += chunk[i] != 0;
  ok(!wrong && chunk[0] != 0, "the last chunk ends in zeros");
  h5_array_close(&a);
  h5_close(&f);
}

/* Blocks here and there, so that the chunk that was kept is seldom the one that is wanted. */
static void any_order_is_right(void)
{
  static real got[ROWS * COLUMNS], all[ROWS * COLUMNS];
  struct h5_file f;
  struct h5_array a = {0};
  int wrong = h5_open(&f, "blocks.h5") || h5_array_open(&f, "/b", &a) ||
              h5_array_read(&a, 0, ROWS, TYPE_F64, all);
  for (uint64_t i = 0; !wrong && i < 2000; i++) {
    gidx first = (gidx)random_below(4, 0, i, ROWS), left = ROWS - first;
    gidx n = 1 + (gidx)random_below(4, 1, i, left < 200 ? (uint64_t)left : 200);
    wrong = h5_array_read(&a, first, n, TYPE_F64, got) ||
            memcmp(got, all + first * COLUMNS, (size_t)(n * COLUMNS) * sizeof *got) != 0;
  }
  ok(!wrong && a.chunks->n_direct > 2000, "2000 blocks here and there, %lld chunks taken",
     wrong ? -1 : (long long)a.chunks->n_direct);
  h5_array_close(&a);
  h5_close(&f);
}

int main(void)
{
  folder_enter();
  sums_agree();
  if (h5_begin()) return 99;
  chunks_are_taken();
  last_chunk_ends_in_zeros();
  any_order_is_right();
  folder_leave();
  return done_testing();
}
