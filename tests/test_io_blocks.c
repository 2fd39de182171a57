/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: blocks of any size give the same values when they are read or written.  Chunks do not pass
 * through HDF5's filters, but have the checksums of these filters.  The last chunk ends in
 * zeros. */
#include "io_blocks.h"

#include "base/num.h"
#include "base/sha256_tree.h"
#include "base/team.h"
#include "io/h5/array_write.h"

enum { MAX_SUMMED = 40000 };

/* Fletcher's checksum by its definition: one's complement sums of big-endian words, with carries
 * folded back at every step. */
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
    data[3][i] = i == 9001; /* all other bytes are 0 */
  }
  for (int kind = 0; kind < 4; kind++)
    for (size_t bytes = 0; bytes <= MAX_SUMMED; bytes += bytes < 200 ? 1 : 331)
      wrong += h5_fletcher32(data[kind], bytes) != sum_plainly(data[kind], bytes);
  ok(wrong == 0, "checksums of 0 to %d bytes, %d wrong", MAX_SUMMED, wrong);
}

/* The root of n leaf hashes by its definition: the hash of two roots.  The first is the root of the
 * first leaf hashes, whose number is the largest power of two below n; the second is the root of
 * the others. */
static int root_plainly(const unsigned char *leaves, int n, unsigned char *root)
{
  unsigned char both[1 + 2 * SHA256_BYTES] = {1};
  int half = 1;
  while (2 * half < n) half *= 2;
  if (n == 0) return sha256("", 0, root);
  if (n == 1) return memcpy(root, leaves, SHA256_BYTES) != root;
  return root_plainly(leaves, half, both + 1) ||
         root_plainly(leaves + half * SHA256_BYTES, n - half, both + 1 + SHA256_BYTES) ||
         sha256(both, sizeof both, root);
}

static void roots_agree(void)
{
  enum { LEAVES = 70 };
  unsigned char leaves[LEAVES][SHA256_BYTES], root[SHA256_BYTES];
  char found[SHA256_HEX], wanted[SHA256_HEX];
  struct sha256_tree tree = {.leaves = 0};
  int wrong = 0;
  for (int n = 0; n < LEAVES; n++) {
    wrong += sha256_tree_root(&tree, found) || root_plainly(leaves[0], n, root);
    sha256_hex(root, wanted);
    wrong += strcmp(found, wanted) != 0;
    wrong += sha256_leaf(&n, sizeof n, leaves[n]) || sha256_tree_add(&tree, leaves[n]);
  }
  ok(wrong == 0, "roots of 0 to %d leaves, %d wrong", LEAVES - 1, wrong);
}

/* The chunks of a large result do not overlap, and segments begin at multiples of 64 KiB. */
static void addresses_agree(void)
{
  static const gidx bytes[][SLAB_ARRAYS] = {{256, 256, 256, 0, 8}, {12, 12, 12, 36, 8}};
  static const gidx rows[] = {4097, 8192 * 2048, 1000000000};
  for (int t = 0; t < 6; t++) {
    const gidx *e = bytes[t % 2];
    struct h5_slabs s;
    gidx blocks = ceil_div(rows[t / 2], ROW_BLOCK), at = 0;
    int wrong = h5_slabs_plan(&s, rows[t / 2], e, 70000);
    ok(s.base == 131072 && s.segment % 65536 == 0 && s.segment - (s.slab << s.level) < 65536,
       "base %lld, segment %lld, 2^%d slabs of %lld", (long long)s.base, (long long)s.segment,
       s.level, (long long)s.slab);
    ok((s.slab << s.level) < (256 << 20) && (s.level > 0) == (t > 1), "a segment is not too large");
    for (gidx b = 0; b < blocks; b++)
      for (int a = 0; a < SLAB_ARRAYS; a++)
        for (gidx i = 0, k = e[a] ? ROW_BLOCK / s.chunk_rows[a] : 0; i < k; i++) {
          gidx begin = h5_slabs_at(&s, a, b * k + i), first = !a && !i && !(b % (1 << s.level));
          wrong += begin < at || begin - at >= (first ? 131073 : 1) || (first && begin % 65536);
          at = begin + s.chunk_rows[a] * e[a] + H5_SUM_BYTES;
        }
    ok(!wrong && at <= s.end, "%lld rows: %d chunks overlap or leave room", (long long)rows[t / 2],
       wrong);
  }
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
  claim_begin("blocks of any size hold the file's values; all chunks are read past HDF5's filters");
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

/* The last chunk of /b ends in zeros, not in earlier contents of the memory. */
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

/* Blocks at random places, so that the chunk in memory is seldom the one that is needed. */
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

enum { WRITTEN = 200000, OF_A_CHUNK = 997, TOGETHER = 3 };

/* values[]: some are NaNs with different bits.  expected[]: the values that the file should
 * have. */
static void nans_make(real *values, real *expected, int array, int turn)
{
  static const gidx every[] = {0, WRITTEN - 1, 40009, 7}; /* 0: none */
  for (gidx i = 0; i < WRITTEN; i++) {
    uint64_t bits = 0xfff0000000000001u + random_bits(9, array, (uint64_t)i) % 1000;
    values[i] = expected[i] = random_normal(8, (uint64_t)array, (uint64_t)i);
    if (!every[turn % 4] || i % every[turn % 4] != every[turn % 4] / 2) continue;
    memcpy(values + i, &bits, sizeof bits);
    expected[i] = nan_canonical();
  }
}

static const char *const written[TOGETHER] = {"/a", "/b", "/c"};
static const gidx widths[TOGETHER] = {1, 2, 1}; /* values of an entry */
enum { ENTRIES = WRITTEN / 2 };

/* An array is created with its length, or longer and then truncated, or it grows. */
enum length { EXACT, TRUNCATED, GROWING, LENGTHS };

static int arrays_create(const struct h5_file *f, enum length length, struct h5_array *a)
{
  gidx shape[] = {length == EXACT ? ENTRIES : length == TRUNCATED ? 2 * ENTRIES : H5_GROWS, 0};
  int status = OK;
  for (int i = 0; i < TOGETHER && !status; i++) {
    shape[1] = widths[i];
    status = h5_array_create_chunked(f, written[i], TYPE_F64, widths[i] > 1 ? 2 : 1, shape,
                                     OF_A_CHUNK, &a[i]);
  }
  return status;
}

/* Write two arrays together, and a third by itself, in blocks of random lengths. */
static int arrays_make(const real *const *values, int turn, enum length length)
{
  struct h5_array a[TOGETHER] = {0}, *pair[] = {a, a + 1};
  struct h5_file f;
  int status = h5_create(&f, "written.h5");
  if (!status) status = arrays_create(&f, length, a);
  for (gidx first = 0, n, block = 0; first < ENTRIES && !status; first += n, block++) {
    uint64_t most = random_below(10, (uint64_t)turn, (uint64_t)block, 3) ? 5000 : ENTRIES;
    n = 1 + (gidx)random_below(11, (uint64_t)turn, (uint64_t)block, most);
    if (n > ENTRIES - first) n = ENTRIES - first;
    const void *of_pair[] = {values[0] + first * widths[0], values[1] + first * widths[1]};
    status = h5_arrays_write(pair, 2, first, n, of_pair);
    if (!status) status = h5_array_write(&a[2], first, n, values[2] + first * widths[2]);
  }
  for (int i = 0; i < TOGETHER && !status; i++) {
    if (length == TRUNCATED) status = h5_array_truncate(&a[i]);
    if (!status) status = h5_array_close(&a[i]);
  }
  return status ? status : h5_close(&f);
}

/* Has array i the expected values, leaf hashes and root? */
static int is_written(const struct h5_file *f, int i, const real *expected)
{
  static real got[WRITTEN];
  size_t bytes = (size_t)(ENTRIES * widths[i]) * sizeof *got;
  struct h5_array a = {0};
  struct sha256_tree tree = {.leaves = 0};
  unsigned char leaf[SHA256_BYTES], *leaves = NULL;
  char text[SHA256_HEX], found[SHA256_HEX];
  int wrong = h5_array_open(f, written[i], &a) || a.shape[0] != ENTRIES ||
              h5_array_read(&a, 0, ENTRIES, TYPE_F64, got) || memcmp(got, expected, bytes) != 0;
  wrong = h5_array_leaves(f, &a, &leaves) || !leaves || wrong;
  for (gidx at = 0; at < ENTRIES && !wrong; at += OF_A_CHUNK) {
    size_t n = (size_t)(imin(OF_A_CHUNK, ENTRIES - at) * widths[i]);
    wrong = sha256_leaf(expected + at * widths[i], n * sizeof *got, leaf) ||
            memcmp(leaf, leaves + at / OF_A_CHUNK * SHA256_BYTES, sizeof leaf) ||
            sha256_tree_add(&tree, leaf);
  }
  free(leaves);
  wrong = sha256_tree_root(&tree, text) ||
          h5_read_text(f, written[i], "sha256_tree", found, sizeof found) || strcmp(text, found) ||
          wrong;
  h5_array_close(&a);
  return !wrong;
}

static void writes_agree(void)
{
  static real values[TOGETHER][WRITTEN], expected[TOGETHER][WRITTEN];
  const real *const all[] = {values[0], values[1], values[2]};
  claim_begin("however blocks cut what is written, the file has its values and their hash");
  for (int turn = 0; turn < 16 * LENGTHS; turn++) {
    struct h5_file f;
    int right = 0;
    team_spare_set(1 + turn / 4 % 4);
    for (int i = 0; i < TOGETHER; i++) nans_make(values[i], expected[i], i, turn + i);
    int status = arrays_make(all, turn, turn / 16);
    if (!status) status = h5_open(&f, "written.h5");
    f.version = FORMAT_VERSION; /* as for a file of this program */
    for (int i = 0; i < TOGETHER && !status; i++) right += is_written(&f, i, expected[i]);
    if (!status) h5_close(&f);
    ok(right == TOGETHER, "turn %d, %d spare threads: %d of %d arrays", turn, team_spare(), right,
       TOGETHER);
  }
  claim_end();
  team_spare_set(1);
}

/* Change the value of entry `at` of /a by HDF5 itself, so that the checksum of its chunk is right
 * but the hash is not. */
static int value_change(gidx at)
{
  hsize_t start = (hsize_t)at, one = 1;
  real value = 0.25;
  hid_t f = H5Fopen("written.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  hid_t a = H5Dopen2(f, "/a", H5P_DEFAULT), to = H5Dget_space(a);
  hid_t from = H5Screate_simple(1, &one, NULL);
  int wrong = H5Sselect_hyperslab(to, H5S_SELECT_SET, &start, NULL, &one, NULL) < 0 ||
              H5Dwrite(a, H5T_NATIVE_DOUBLE, from, to, H5P_DEFAULT, &value) < 0;
  H5Sclose(from);
  H5Sclose(to);
  wrong |= H5Dclose(a) < 0 || H5Fclose(f) < 0;
  return wrong;
}

static int whole_count(void)
{
  struct h5_file f;
  int whole = 0, status = h5_open(&f, "written.h5");
  for (int i = 0; i < TOGETHER && !status; i++) {
    struct h5_array a = {0};
    f.version = FORMAT_VERSION; /* as for a file of this program */
    status = h5_array_open(&f, written[i], &a);
    if (!status) whole += h5_array_is_whole(&a);
    h5_array_close(&a);
  }
  if (!status) h5_close(&f);
  return status ? -1 : whole;
}

static void whole_is_told(void)
{
  static const gidx places[] = {-1, ENTRIES - 1, 0, ENTRIES / 2};
  claim_begin("an array is not whole if a value differs from the one that was hashed");
  for (int i = 0; i < LENGTH(places) * 3; i++) {
    gidx at = places[i / 3];
    team_spare_set(1 + i % 3);
    if (i % 3 == 0 && at >= 0 && value_change(at)) ok(0, "cannot change a value");
    int whole = whole_count();
    ok(whole == TOGETHER - (at >= 0), "%d of %d arrays, value %lld changed, %d spare threads",
       whole, TOGETHER, (long long)at, team_spare());
  }
  claim_end();
  team_spare_set(1);
}

int main(void)
{
  folder_enter();
  sums_agree();
  roots_agree();
  addresses_agree();
  if (h5_begin()) return 99;
  chunks_are_taken();
  last_chunk_ends_in_zeros();
  any_order_is_right();
  writes_agree();
  whole_is_told();
  folder_leave();
  return done_testing();
}
