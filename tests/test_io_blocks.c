/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: blocks hold the same values whether chunks pass through HDF5's filters or not; the
 * checksum is HDF5's; what is not laid out as Sagitta does it, or damaged, is left to HDF5. */
#include "io/h5_inside.h"
#include "io_files.h"
#include "tap.h"

enum { SUMMED_MOST = 40000, ROWS = 1000, COLUMNS = 7, CHUNK = 64 };

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
  static unsigned char data[4][SUMMED_MOST];
  int wrong = 0;
  for (int i = 0; i < SUMMED_MOST; i++) {
    data[0][i] = (unsigned char)random_bits(1, 0, (uint64_t)i);
    data[1][i] = 0xff;
    data[2][i] = 0;
    data[3][i] = i == 9001; /* nothing but zeros for long */
  }
  for (int kind = 0; kind < 4; kind++)
    for (size_t bytes = 0; bytes <= SUMMED_MOST; bytes += bytes < 200 ? 1 : 331)
      wrong += h5_fletcher32(data[kind], bytes) != sum_plainly(data[kind], bytes);
  ok(wrong == 0, "checksums of 0 to %d bytes, %d wrong", SUMMED_MOST, wrong);
}

/* Blocks of a dataset against all its values, and how many of its chunks were taken. */
static gidx blocks_taken(const char *object, enum h5_type type, gidx items, gidx block,
                         const void *values)
{
  struct h5_file f;
  struct h5_array a;
  size_t row = h5_type_bytes(type) * (size_t)items;
  gidx n = 0, taken = -1;
  int wrong = h5_open(&f, "blocks.h5") || h5_array_open(&f, object, &a);
  unsigned char *got = malloc((size_t)block * row + 1);
  for (gidx first = 0; !wrong && first < a.shape[0]; first += n) {
    n = block < a.shape[0] - first ? block : a.shape[0] - first;
    got[(size_t)n * row] = 77;
    wrong = h5_array_read(&a, first, n, type, got) || got[(size_t)n * row] != 77 ||
            memcmp(got, (const char *)values + (size_t)first * row, (size_t)n * row) != 0;
  }
  if (!wrong) taken = a.chunks ? a.chunks->taken : 0;
  free(got);
  h5_array_close(&a);
  h5_close(&f);
  return taken;
}

static void chunks_are_taken(void)
{
  static real values[ROWS * COLUMNS];
  for (gidx i = 0; i < ROWS * COLUMNS; i++) values[i] = random_normal(3, 1, (uint64_t)i);
  struct h5_file f;
  struct h5_array a;
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
  for (int i = 0; i < 3; i++) {
    gidx n = shapes[i][0], items = i ? COLUMNS : 1, all = (n + CHUNK - 1) / CHUNK;
    static const gidx blocks[] = {ROWS * COLUMNS, CHUNK, CHUNK - 1, 150, 1};
    for (int j = 0; j < LENGTH(blocks); j++) {
      gidx taken = blocks_taken(names[i], TYPE_F64, items, blocks[j], values);
      ok(taken == all, "rank %d, blocks of %lld: %lld of %lld chunks taken", i + 1,
         (long long)blocks[j], (long long)taken, (long long)all);
    }
  }
}

/* Blocks here and there, so that the chunk that was kept is seldom the one that is wanted. */
static void any_order_is_right(void)
{
  static real got[ROWS * COLUMNS], all[ROWS * COLUMNS];
  struct h5_file f;
  struct h5_array a;
  int wrong = h5_open(&f, "blocks.h5") || h5_array_open(&f, "/b", &a) ||
              h5_array_read(&a, 0, ROWS, TYPE_F64, all);
  for (uint64_t i = 0; !wrong && i < 2000; i++) {
    gidx first = (gidx)random_below(4, 0, i, ROWS), left = ROWS - first;
    gidx n = 1 + (gidx)random_below(4, 1, i, left < 200 ? (uint64_t)left : 200);
    wrong = h5_array_read(&a, first, n, TYPE_F64, got) ||
            memcmp(got, all + first * COLUMNS, (size_t)(n * COLUMNS) * sizeof *got) != 0;
  }
  ok(!wrong && a.chunks->taken > 2000, "2000 blocks here and there, %lld chunks taken",
     wrong ? -1 : (long long)a.chunks->taken);
  h5_array_close(&a);
  h5_close(&f);
}

struct layout {
  const char *claim;
  hsize_t chunk[2];
  int deflates, sums, leaves_edges;
  hsize_t written; /* rows; the others are fill values */
  gidx taken;
};

/* As another program may write it, with the values that HDF5 was given. */
static int foreign_write(const struct layout *l, float *values)
{
  hsize_t dims[2] = {ROWS, COLUMNS}, start[2] = {0, 0}, size[2] = {l->written, COLUMNS};
  for (gidx i = 0; i < ROWS * COLUMNS; i++)
    values[i] = i < (gidx)l->written * COLUMNS ? noise(5, (uint64_t)i) : 0;
  hid_t file = H5Fcreate("blocks.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(2, dims, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
  if (l->chunk[0]) H5Pset_chunk(list, 2, l->chunk);
  if (l->deflates) H5Pset_deflate(list, 1);
  if (l->sums) H5Pset_fletcher32(list);
  if (l->leaves_edges) H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  hid_t set = H5Dcreate2(file, "/rows", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  herr_t done = set < 0 ? -1 : h5_block_write(set, H5T_NATIVE_FLOAT, 2, start, size, values);
  H5Sclose(space);
  H5Pclose(list);
  H5Dclose(set);
  return H5Fclose(file) < 0 || done < 0;
}

static void other_layouts_are_left(void)
{
  static float values[ROWS * COLUMNS];
  const struct layout layouts[] = {
      {"chunks of whole rows, with checksums", {CHUNK, COLUMNS}, 0, 1, 0, ROWS, 16},
      {"chunks never written", {CHUNK, COLUMNS}, 0, 1, 0, 3 * CHUNK, 3},
      {"one chunk", {ROWS, COLUMNS}, 0, 1, 0, ROWS, 1},
      {"contiguous", {0, 0}, 0, 0, 0, ROWS, 0},
      {"no checksums", {CHUNK, COLUMNS}, 0, 0, 0, ROWS, 0},
      {"packed", {CHUNK, COLUMNS}, 1, 0, 0, ROWS, 0},
      {"packed, with checksums", {CHUNK, COLUMNS}, 1, 1, 0, ROWS, 0},
      {"chunks of half a row", {CHUNK, 4}, 0, 1, 0, ROWS, 0},
      {"a last chunk without a checksum", {CHUNK, COLUMNS}, 0, 1, 1, ROWS, 0},
  };
  for (int i = 0; i < LENGTH(layouts); i++) {
    const struct layout *l = &layouts[i];
    if (foreign_write(l, values)) ok(0, "%s: cannot be written", l->claim);
    gidx taken = blocks_taken("/rows", TYPE_F32, COLUMNS, ROWS, values);
    ok(taken == l->taken, "%s: %lld chunks taken", l->claim, (long long)taken);
  }
}

/* Put a chunk with this checksum into the file, as it is stored. */
static int chunk_replace(const float *values, uint32_t sum, int damage)
{
  unsigned char bytes[CHUNK * COLUMNS * sizeof *values + sizeof sum];
  hsize_t start[2] = {CHUNK, 0};
  memcpy(bytes, values + CHUNK * COLUMNS, sizeof bytes - sizeof sum);
  memcpy(bytes + sizeof bytes - sizeof sum, &sum, sizeof sum);
  if (damage) bytes[100] ^= 4;
  hid_t file = H5Fopen("blocks.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  hid_t set = H5Dopen2(file, "/rows", H5P_DEFAULT);
  herr_t done = H5Dwrite_chunk(set, H5P_DEFAULT, 0, start, sizeof bytes, bytes);
  H5Dclose(set);
  return H5Fclose(file) < 0 || done < 0;
}

/* More stored than a chunk holds. */
static void long_chunk_is_left(const float *values)
{
  enum { LONG = 1 << 20 };
  hsize_t start[2] = {CHUNK, 0};
  unsigned char *bytes = calloc(1, LONG);
  hid_t file = H5Fopen("blocks.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  hid_t set = H5Dopen2(file, "/rows", H5P_DEFAULT);
  herr_t done = H5Dwrite_chunk(set, H5P_DEFAULT, 0, start, LONG, bytes);
  H5Dclose(set);
  H5Fclose(file);
  free(bytes);
  gidx taken = blocks_taken("/rows", TYPE_F32, COLUMNS, ROWS, values);
  ok(done >= 0 && taken != 16, "a chunk of %d bytes: %s", LONG, status_message());
}

/* A chunk of as many bytes as whole rows have. */
static void turned_chunk_is_left(void)
{
  static float values[10 * 2 * 4];
  const hsize_t dims[3] = {10, 2, 4}, chunk[3] = {5, 4, 2}, start[3] = {0, 0, 0};
  const hsize_t most[3] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
  for (int i = 0; i < LENGTH(values); i++) values[i] = noise(6, (uint64_t)i);
  hid_t file = H5Fcreate("blocks.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(3, dims, most), list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 3, chunk);
  H5Pset_fletcher32(list);
  hid_t set = H5Dcreate2(file, "/turned", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  herr_t done = h5_block_write(set, H5T_NATIVE_FLOAT, 3, start, dims, values);
  H5Sclose(space);
  H5Pclose(list);
  H5Dclose(set);
  H5Fclose(file);
  gidx taken = blocks_taken("/turned", TYPE_F32, 8, 10, values);
  ok(done >= 0 && taken == 0, "a chunk of another shape and as many bytes, %lld taken",
     (long long)taken);
}

static void damage_is_left(void)
{
  static float values[ROWS * COLUMNS];
  const struct layout l = {"", {CHUNK, COLUMNS}, 0, 1, 0, ROWS, 0};
  uint32_t sum = 0;
  int status = foreign_write(&l, values);
  sum = h5_fletcher32((unsigned char *)(values + CHUNK * COLUMNS), CHUNK * COLUMNS * 4);
  status |= chunk_replace(values, sum, 0);
  gidx sound = blocks_taken("/rows", TYPE_F32, COLUMNS, ROWS, values);
  ok(!status && sound == 16, "a chunk with our checksum is sound, %lld taken", (long long)sound);
  uint32_t swapped = (sum & 0xff00ff00) >> 8 | (sum & 0x00ff00ff) << 8;
  status |= chunk_replace(values, swapped, 0);
  gidx old = blocks_taken("/rows", TYPE_F32, COLUMNS, ROWS, values);
  ok(!status && old == 15, "HDF5 reads a checksum of old files, %lld taken", (long long)old);
  status |= chunk_replace(values, sum, 1);
  status_clear();
  gidx none = blocks_taken("/rows", TYPE_F32, COLUMNS, ROWS, values);
  ok(!status && none == -1 && strstr(status_message(), "cannot read '/rows' of 'blocks.h5'"),
     "a damaged one is told: %s", status_message());
  status_clear();
  long_chunk_is_left(values);
}

int main(void)
{
  folder_enter();
  sums_agree();
  if (h5_begin()) return 99;
  chunks_are_taken();
  any_order_is_right();
  other_layouts_are_left();
  turned_chunk_is_left();
  damage_is_left();
  folder_leave();
  return done_testing();
}
