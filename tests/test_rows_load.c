/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: several threads load the same rows as one thread, with the same hash.  If a file is
 * damaged or a value is not finite, the message is the same.  This holds for the verification of
 * files, too, and files that several threads write have the bytes of one thread. */
#include <stdatomic.h>

#include "base/num.h"
#include "base/team.h"
#include "io/h5/chunks.h"
#include "io_files.h"
#include "model/access.h"
#include "model/identity.h"
#include "tap.h"

enum { N = 30011, P = 96, LOADS = 60 };

static const int threads[] = {2, 3, 8, 40};
static float all[N * P], x[N * P];
static real mean[P];

/* Load rows first .. first + n - 1 to x + first * P.  Returns the message of a failure, or "". */
static const char *load(const struct row_source *rows, gidx first, idx n, int spare,
                        uint64_t *terms)
{
  static char text[2048];
  const struct rows_load l = {rows, first, n, x + first * P, terms, mean, rows, first};
  team_spare_set(spare);
  *terms = 0;
  int status = rows_load(&l);
  snprintf(text, sizeof text, "%s", status ? status_message() : "");
  status_clear();
  return text;
}

static void loads_check(const char *name)
{
  struct rows_input f;
  uint64_t terms;
  int wrong = rows_input_open(&f, NULL, name);
  for (uint64_t i = 0; i < LOADS && !wrong; i++) {
    gidx first = (gidx)random_below(4, 0, i, N);
    idx n = (idx)random_below(4, 1, i, (uint64_t)(N - first)) + (i % 7 != 0);
    memset(x, 0, sizeof x);
    wrong = load(&f.source, first, n, threads[i % LENGTH(threads)], &terms)[0] != '\0' ||
            terms != items_terms(all + first * P, n, P, first);
    for (gidx j = first * P; j < (first + n) * P && !wrong; j++)
      wrong = x[j] != (float)(all[j] - mean[j % P]);
    for (gidx j = 0; j < N * P && !wrong; j++)
      wrong = (j < first * P || j >= (first + n) * P) && x[j] != 0;
  }
  ok(!wrong, "%s: %d loads %s", name, LOADS, status_message());
  status_clear();
  rows_input_close(&f);
}

/* Windows of rows, which threads read independently. */
struct windows {
  const struct row_source *rows;
  atomic_int wrong;
};

static void window_check(void *self, gidx i)
{
  enum { WINDOW = 128 };
  struct windows *w = self;
  float *got = malloc(WINDOW * P * sizeof *got);
  gidx first = (gidx)random_below(5, 0, (uint64_t)i, N - WINDOW);
  w->wrong += !got || w->rows->read(w->rows->self, first, WINDOW, got) ||
              memcmp(got, all + first * P, WINDOW * P * sizeof *got);
  free(got);
}

static void windows_check(const char *name, gidx least)
{
  struct rows_input f;
  struct windows w = {&f.source, 0};
  team_spare_set(8);
  int status = rows_input_open(&f, NULL, name);
  if (!status) team_run(8, 1000, window_check, &w);
  const struct h5_chunks *chunks = status ? NULL : f.shards[0].input->array.chunks;
  gidx taken = chunks ? chunks->n_direct : 0;
  ok(!status && !w.wrong && taken >= least, "%s: %d wrong, %lld chunks past HDF5", name, w.wrong,
     (long long)taken);
  rows_input_close(&f);
}

/* Change the byte at `at` of a file.  If `zeros` is not 0, set this many bytes to 0 instead. */
static int bytes_change(const char *name, long at, long zeros)
{
  FILE *f = fopen(name, "r+b");
  if (!f) return 1;
  fseek(f, at, SEEK_SET);
  int byte = fgetc(f);
  fseek(f, at, SEEK_SET);
  for (long i = 0; i < zeros; i++) fputc(0, f);
  if (!zeros) fputc(byte ^ 4, f);
  return fclose(f);
}

/* Several threads must report the same of a file as one thread, whose message contains `wanted`. */
static void messages_check(const char *name, const char *wanted)
{
  struct rows_input f;
  char alone[2048];
  uint64_t terms;
  int status = rows_input_open(&f, NULL, name);
  snprintf(alone, sizeof alone, "%s", status ? "" : load(&f.source, 0, N, 1, &terms));
  ok(strstr(alone, wanted) != NULL, "%s, one thread: %s", name, alone);
  for (int i = 0; i < LENGTH(threads) && !status; i++) {
    const char *text = load(&f.source, 0, N, threads[i], &terms);
    ok(strcmp(text, alone) == 0, "%s, %d threads: %s", name, threads[i], text);
  }
  rows_input_close(&f);
}

/* The message of file_verify(); "": the file is sound. */
static const char *verdict(const char *name, int spare)
{
  static char text[2048];
  team_spare_set(spare);
  int status = file_verify(name, NULL);
  snprintf(text, sizeof text, "%s", status ? status_message() : "");
  status_clear();
  return text;
}

static void verdicts_check(const char *name, const char *wanted)
{
  char alone[2048];
  snprintf(alone, sizeof alone, "%s", verdict(name, 1));
  ok(*wanted ? strstr(alone, wanted) != NULL : !*alone, "%s, one thread: %s", name, alone);
  for (int i = 0; i < LENGTH(threads); i++) {
    const char *text = verdict(name, threads[i]);
    ok(strcmp(text, alone) == 0, "%s, %d threads: %s", name, threads[i], text);
  }
}

/* The position in a file of a value of the rows; -1: not found. */
static long position_of(const char *name, gidx value)
{
  static char bytes[(N + 4096) * P * 4];
  FILE *f = fopen(name, "rb");
  size_t length = f ? fread(bytes, 1, sizeof bytes, f) : 0;
  if (f) fclose(f);
  for (size_t i = 0; i + 16 <= length; i++)
    if (memcmp(bytes + i, all + value, 16) == 0) return (long)i;
  return -1;
}

/* The number of rows per chunk of a file. */
static gidx unit_of(const char *name)
{
  struct rows_input f;
  gidx unit = rows_input_open(&f, NULL, name) ? 0 : f.source.unit;
  rows_input_close(&f);
  return unit;
}

static int npy_write(const char *name)
{
  char head[128];
  FILE *f = fopen(name, "wb");
  if (!f) return 1;
  int n = snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)}",
                   N, P);
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
  fprintf(f, "%s%*s\n", head, 117 - n, "");
  size_t written = fwrite(all, 1, sizeof all, f);
  return fclose(f) || written != sizeof all;
}

/* Write the rows contiguously, without chunks, as other programs may do. */
static int run_write(const char *name)
{
  hsize_t shape[2] = {N, P};
  hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(2, shape, NULL);
  hid_t rows =
      H5Dcreate2(file, "rows", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  herr_t done = H5Dwrite(rows, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all);
  H5Dclose(rows);
  H5Sclose(space);
  return H5Fclose(file) < 0 || done < 0;
}

/* Are the values of a file contiguous, so that several threads can read them without HDF5? */
static int has_run(const char *name)
{
  struct rows_input f;
  int has = !rows_input_open(&f, NULL, name) && f.shards[0].input->array.disk != NULL;
  rows_input_close(&f);
  return has;
}

/* Write the rows, and replace a chunk by other values with the right checksum. */
static void other_write(const char *name)
{
  rows_write(name, N, P, 1000);
  gidx unit = unit_of(name);
  hid_t file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT),
        rows = H5Dopen2(file, "/rows", H5P_DEFAULT);
  unsigned char *chunk = malloc((size_t)unit * P * 4 + H5_SUM_BYTES);
  memcpy(chunk, all, (size_t)unit * P * 4);
  size_t bytes = (size_t)unit * P * 4;
  uint32_t sum = chunk ? h5_fletcher32(chunk, bytes) : 0;
  if (chunk) memcpy(chunk + bytes, &sum, sizeof sum);
  hsize_t start[2] = {2 * (hsize_t)unit, 0};
  ok(chunk && H5Dwrite_chunk(rows, H5P_DEFAULT, 0, start, bytes + H5_SUM_BYTES, chunk) >= 0,
     "another chunk");
  free(chunk);
  H5Dclose(rows);
  H5Fclose(file);
}

/* Halve a value of an array with one dimension, and give its chunk the right checksum. */
static int value_halve(const char *name, const char *object, gidx at)
{
  uint32_t mask, sum;
  hid_t file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT),
        array = H5Dopen2(file, object, H5P_DEFAULT);
  hid_t creation = H5Dget_create_plist(array);
  hsize_t length = 0, start;
  H5Pget_chunk(creation, 1, &length);
  size_t bytes = (size_t)length * sizeof(float);
  char *chunk = malloc(bytes + H5_SUM_BYTES);
  float *values = (float *)chunk;
  start = (hsize_t)at / length * length;
  herr_t done = H5Dread_chunk(array, H5P_DEFAULT, &start, &mask, chunk);
  values[(hsize_t)at - start] /= 2;
  sum = h5_fletcher32((unsigned char *)chunk, bytes);
  memcpy(chunk + bytes, &sum, sizeof sum);
  if (done >= 0) done = H5Dwrite_chunk(array, H5P_DEFAULT, 0, &start, bytes + H5_SUM_BYTES, chunk);
  free(chunk);
  H5Pclose(creation);
  H5Dclose(array);
  H5Fclose(file);
  return done < 0;
}

/* Supports of k atoms: sound; with a changed value that only the hash shows; and with rows that
 * have an atom twice. */
static void supports_check_by(idx k)
{
  static const gidx changed[] = {3, 400007, 799999};
  struct supports_shape shape = {.n = 40011, .k = k, .s = 20, .d = 1, .p = 8, .has_codes = 1};
  struct made_supports m;
  const char *name = "supports.h5";
  supports_make(&m, shape, 1);
  ok(!supports_write(&m, name, 40011, NULL), "%d atoms %s", k, status_message());
  verdicts_check(name, "");
  for (int i = 0; i < LENGTH(changed); i++) {
    int status = supports_write(&m, name, 40011, NULL);
    ok(!status && !value_halve(name, "/supports/data", changed[i]), "a value of a copy");
    verdicts_check(name, "'/supports/data' of 'supports.h5' is not what was written: its SHA-256");
  }
  for (gidx row = 31000; row > 0; row -= 10007) {
    m.atoms[row * 20 + 13] = m.atoms[row * 20 + 2];
    char text[64];
    snprintf(text, sizeof text, "row %lld has atom %d twice", (long long)row,
             m.atoms[row * 20 + 2]);
    for (int i = -1; i < LENGTH(threads); i++) { /* writing includes verification */
      team_spare_set(i < 0 ? 1 : threads[i]);
      int status = supports_write(&m, "twice.h5", 40011, NULL);
      ok(status == ERR_INPUT && strstr(status_message(), text), "%d atoms, %d threads: %s", k,
         team_spare(), status_message());
      status_clear();
      result_discard();
    }
  }
  supports_unmake(&m);
}

static void writing_check(struct supports_shape shape, idx block)
{
  struct made_supports m;
  char command[128];
  supports_make(&m, shape, 1);
  team_spare_set(1);
  const char *one = "one.h5", *many = "many.h5";
  int status = supports_write(&m, one, 777, NULL);
  for (int i = 0; i < LENGTH(threads) && !status; i++) {
    team_spare_set(threads[i]);
    status = supports_write(&m, many, block, NULL);
    snprintf(command, sizeof command, "cmp one.h5 many.h5");
    ok(!status && !system(command), "%lld rows, blocks of %d, %d threads: %s", (long long)shape.n,
       block, threads[i], status_message());
  }
  supports_unmake(&m);
}

enum { VALUES = 1 << 20, BESIDE = 3 }; /* values of an array, in several chunks; number of NaNs */

/* Write an array with `spare` threads, `each` values per call. */
static int nans_write(const char *name, const float *values, int spare, gidx each)
{
  struct h5_file f = {0};
  struct h5_array a = {0};
  gidx n = VALUES;
  team_spare_set(spare);
  int status = h5_create(&f, name);
  if (!status) status = h5_array_create_chunked(&f, "/v", TYPE_F32, 1, &n, VALUES / 9, &a);
  for (gidx i = 0; i < VALUES && !status; i += each)
    status = h5_array_write(&a, i, imin(each, VALUES - i), values + i);
  int closed = h5_array_close(&a);
  h5_close(&f);
  return status ? status : closed;
}

/* BESIDE NaNs from index `at` on, whose bits are not the canonical ones; at = -1: none. */
static void nans_check(gidx at)
{
  const uint32_t bits = 0xffc12345u;
  float *values = malloc(VALUES * sizeof *values);
  for (gidx i = 0; i < VALUES; i++) values[i] = noise(5, (uint64_t)i);
  for (gidx i = at; i >= 0 && i < at + BESIDE; i++) memcpy(values + i, &bits, sizeof bits);
  int status = nans_write("one.h5", values, 1, 1000);
  for (int i = 0; i < LENGTH(threads) && !status; i++) {
    status = nans_write("many.h5", values, threads[i], i % 2 ? VALUES : 500001);
    ok(!status && !system("cmp one.h5 many.h5"), "NaNs at %lld, %d threads: %s", (long long)at,
       threads[i], status_message());
  }
  free(values);
}

/* So many chunks that HDF5 does not keep the addresses of all in memory.  A text that is written
 * before them must be read back right, too. */
static void chunks_check(gidx entries)
{
  enum { CHUNKS = 1 << 16, PART = 1 << 10 };
  struct h5_file f = {0};
  struct h5_array a = {0};
  int32_t values[PART];
  char text[16] = "";
  gidx wrong = 0;
  int status = h5_create(&f, "chunks.h5");
  if (!status) status = h5_attribute_text(&f, "/", "text", "some text");
  if (!status) status = h5_array_create_chunked(&f, "/a", TYPE_I32, 1, &entries, 1, &a);
  for (gidx i = 0; i < CHUNKS && !status; i += PART) {
    for (int j = 0; j < PART; j++) values[j] = (int32_t)(i + j + 1);
    status = h5_array_write(&a, i, PART, values);
  }
  int closed = h5_array_close(&a);
  ok(!status && !closed && !h5_close(&f), "written: %s", status_message());
  status_clear();
  status = h5_open(&f, "chunks.h5");
  if (!status) status = h5_read_text(&f, "/", "text", text, sizeof text);
  if (!status) status = h5_array_open(&f, "/a", &a);
  for (gidx i = 0; i < CHUNKS && !status; i += PART) {
    status = h5_array_read(&a, i, PART, TYPE_I32, values);
    for (int j = 0; j < PART; j++) wrong += values[j] != (int32_t)(i + j + 1);
  }
  ok(!status && !wrong && !strcmp(text, "some text"), "%lld differ, '%s': %s", (long long)wrong,
     text, status_message());
  h5_array_close(&a);
  h5_close(&f);
}

int main(void)
{
  folder_enter();
  if (h5_begin()) return 99;
  for (gidx i = 0; i < N * P; i++) all[i] = noise(2, (uint64_t)i);
  for (idx c = 0; c < P; c++) mean[c] = random_normal(6, 1, (uint64_t)c);
  claim_begin("loaded rows, and their hash, are those of the file");
  ok(!rows_write("rows.h5", N, P, 1000) && !npy_write("rows.npy") && !run_write("run.h5"),
     "files %s", status_message());
  ok(has_run("run.h5") && !has_run("rows.h5"), "the one without chunks is one run");
  loads_check("rows.h5");
  loads_check("run.h5");
  loads_check("rows.npy");
  windows_check("rows.h5", 1000);
  windows_check("run.h5", 0);
  windows_check("rows.npy", 0);
  claim_end();
  claim_begin("a value that is not finite, a damaged chunk and a lost chunk are reported");
  long at = position_of("rows.h5", 20000 * P);
  verdicts_check("rows.h5", "");
  ok(at > 0 && !bytes_change("rows.h5", at, 0), "a byte at %ld", at);
  messages_check("rows.h5", "cannot read '/rows'");
  verdicts_check("rows.h5", "Fletcher32");
  rows_write("rows.h5", N, P, 1000);
  gidx unit = unit_of("rows.h5");
  at = position_of("rows.h5", 3 * unit * P);
  ok(unit > 1 && at > 0 && !bytes_change("rows.h5", at, unit * P * 4 + H5_SUM_BYTES),
     "a chunk of %lld rows at %ld", (long long)unit, at);
  messages_check("rows.h5", "is zero, and none was written so");
  verdicts_check("rows.h5", "is zero, and none was written so");
  other_write("rows.h5");
  verdicts_check("rows.h5", "is not what was written: its SHA-256 is");
  all[25000 * P + 3] = NAN;
  all[29000 * P + 3] = INFINITY;
  npy_write("rows.npy");
  messages_check("rows.npy", "row 25000, column 3");
  claim_end();
  claim_begin("sound supports load; a changed value, and an atom twice in a row, are reported");
  supports_check_by(90);
  supports_check_by(200000);
  claim_end();
  claim_begin("supports that several threads write have the bytes that one thread writes");
  for (int codes = 0; codes < 2; codes++)
    for (int d = 1; d < 3; d++)
      for (int b = 0; b < 3; b++) {
        static const idx blocks[] = {40011, 1000, 25000};
        struct supports_shape shape = {
            .n = 40011, .k = 90, .s = 20, .d = d, .p = 8, .has_codes = codes};
        writing_check(shape, blocks[b]);
      }
  for (int i = -1; i < 9; i += 3) nans_check(i < 0 ? -1 : i * (VALUES / 9) + 7);
  claim_end();
  claim_begin("an array of the most chunks is written and read, and so is one that grows");
  chunks_check(1 << 16);
  chunks_check(H5_GROWS);
  claim_end();
  folder_leave();
  return done_testing();
}
