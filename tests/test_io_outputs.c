/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: results have the same bytes for any blocks, are verified before they appear, and are
 * refused if they are wrong. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "io/sidecars.h"
#include "io/place.h"
#include "io_files.h"
#include "tap.h"

static unsigned char *bytes_of(const char *path, long *size)
{
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *size = ftell(file);
  rewind(file);
  unsigned char *bytes = malloc((size_t)*size + 1);
  size_t got = fread(bytes, 1, (size_t)*size, file);
  fclose(file);
  return got == (size_t)*size ? bytes : NULL;
}

static int same_bytes(const char *a, const char *b)
{
  long n = 0, m = 1;
  unsigned char *s = bytes_of(a, &n), *t = bytes_of(b, &m);
  int same = s && t && n == m && memcmp(s, t, (size_t)n) == 0;
  free(s);
  free(t);
  return same;
}

/* The number of files in a folder whose names end in `end`. */
static int count_of(const char *folder, const char *end)
{
  int count = 0;
  DIR *opened = opendir(folder);
  for (struct dirent *e = opened ? readdir(opened) : NULL; e; e = readdir(opened)) {
    size_t length = strlen(e->d_name), tail = strlen(end);
    count += length >= tail && strcmp(e->d_name + length - tail, end) == 0;
  }
  if (opened) closedir(opened);
  return count;
}

/* Results with several chunks, whose order in the file could depend on the blocks. */
static void blocks_do_not_matter(void)
{
  static const struct supports_shape shapes[] = {
      {70000, 90, 8, 1, 3, 1, 0, NULL, 0, NULL}, {30000, 90, 7, 3, 3, 1, 0, NULL, 0, NULL},
      {500, 90, 7, 1, 3, 0, 0, NULL, 0, NULL},   {500, 90, 7, 2, 3, 0, 0, NULL, 0, NULL},
      {1, 8, 4, 1, 1, 1, 0, NULL, 0, NULL},      {0, 9, 3, 1, 3, 1, 0, NULL, 0, NULL},
      {0, 9, 3, 2, 3, 1, 0, NULL, 0, NULL}};
  claim_begin("supports written in blocks of three sizes have the same bytes");
  for (int i = 0; i < LENGTH(shapes); i++) {
    struct made_supports m;
    const struct supports_shape *shape = &shapes[i];
    supports_make(&m, *shape, shape->s > 3 ? 3 : 1);
    status_clear();
    int status = supports_write(&m, "a.h5", 1 << 20, NULL);
    if (status == OK) status = supports_write(&m, "b.h5", 4096, NULL);
    if (status == OK) status = supports_write(&m, "c.h5", 37, NULL);
    ok(status == OK && same_bytes("a.h5", "b.h5") && same_bytes("a.h5", "c.h5"),
       "%lld rows, frames of %d, %s: %s", (long long)shape->n, shape->d,
       shape->has_codes ? "codes" : "scores", status_message());
    supports_unmake(&m);
  }
  claim_end();
  int first = rows_write("a.h5", 5000, 300, 5000);
  sleep(1); /* HDF5 can store times of objects, in seconds; they would differ */
  ok(first == OK && rows_write("b.h5", 5000, 300, 7) == OK && same_bytes("a.h5", "b.h5"),
     "rows written in blocks of two sizes, a second apart, have the same bytes");
  ok(rows_write("a.h5", 0, 5, 1) == OK && file_verify("a.h5", NULL) == OK,
     "a file of no rows is written and passes its check");
}

static void values_come_back(void)
{
  struct rows_input f;
  float back[60], nan_in[4] = {1, -0.0f, NAN, -INFINITY};
  gidx shape = 4;
  struct h5_file h5;
  struct h5_array a;
  uint32_t bits = 0xffc12345u, got[4];
  ok(rows_write("rows.h5", 10, 6, 3) == OK && rows_input_open(&f, NULL, "rows.h5") == OK &&
         f.source.read(f.source.self, 2, 5, back) == OK,
     "rows are written and read");
  int same = 1;
  for (uint64_t i = 0; i < 30; i++) same = same && back[i] == noise(2, i + 12);
  ok(same && strcmp(f.source.name, "rows.h5:/rows") == 0, "the values are those of the rows asked");
  rows_input_close(&f);
  memcpy(nan_in + 2, &bits, sizeof bits);
  int status = h5_create(&h5, "nan.h5");
  if (!status) status = h5_array_create(&h5, "/a/b/c", TYPE_F32, 1, &shape, &a);
  if (!status) status = h5_array_write(&a, 0, 4, nan_in);
  if (!status) status = h5_array_close(&a);
  if (!status) status = h5_array_open(&h5, "/a/b/c", &a);
  if (!status) status = h5_array_read(&a, 0, 4, TYPE_F32, got);
  h5_array_close(&a);
  ok(!status && got[1] == 0x80000000u && got[2] == 0x7fc00000u && got[3] == 0xff800000u,
     "-0 and infinity are kept, every NaN gets one pattern %s", status_message());
  const uint64_t wide_in[2] = {0xfff8000000000001u, 0x8000000000000000u};
  uint64_t wide[2] = {0};
  shape = 2;
  status = h5_array_create(&h5, "/wide", TYPE_F64, 1, &shape, &a);
  if (!status) status = h5_array_write(&a, 0, 2, wide_in);
  if (!status) status = h5_array_close(&a);
  if (!status) status = h5_array_open(&h5, "/wide", &a);
  if (!status) status = h5_array_read(&a, 0, 2, TYPE_F64, wide);
  h5_array_close(&a);
  ok(!status && wide[0] == 0x7ff8000000000000u && wide[1] == wide_in[1],
     "-0 is kept in float64, and a NaN gets one pattern %s", status_message());
  h5_close(&h5);
}

static int wrong_order(void)
{
  struct matrix_output f;
  float x[8] = {0};
  int status = rows_output_create(&f, "order.h5", 4, 2);
  if (!status) status = matrix_output_write(&f, 0, 1, x);
  if (!status) status = matrix_output_write(&f, 2, 2, x);
  matrix_output_close(&f);
  return status;
}

static int rows_missing(void)
{
  struct matrix_output f;
  float x[8] = {0};
  int status = rows_output_create(&f, "missing.h5", 4, 2);
  if (!status) status = matrix_output_write(&f, 0, 3, x);
  if (!status) status = matrix_output_finish(&f, NULL, 0);
  matrix_output_close(&f);
  return status;
}

static int atoms_not_unit(float value)
{
  struct matrix_output f;
  float x[4] = {1, 0, 0, value};
  int status = dictionary_output_create(&f, "bad.h5", 2, 1, 2);
  if (!status) status = matrix_output_write(&f, 0, 2, x);
  if (!status) status = matrix_output_finish(&f, NULL, 0);
  matrix_output_close(&f);
  return status;
}

static int atom_twice(void)
{
  struct made_supports m;
  supports_make(&m, (struct supports_shape){9, 12, 4, 1, 3, 1, 0, NULL, 0, NULL}, 1);
  m.atoms[9] = m.atoms[8];
  int status = supports_write(&m, "twice.h5", 4, NULL);
  supports_unmake(&m);
  return status;
}

static void refused(int status, int code, const char *words, const char *claim)
{
  ok(status == code && strstr(status_message(), words), "%s: %d, %s", claim, status,
     status_message());
  status_clear();
}

static void wrong_results_are_refused(void)
{
  refused(wrong_order(), ERR_INTERNAL, "1 is next", "a block out of order");
  refused(rows_missing(), ERR_INTERNAL, "ends at entry 3 of 4", "a block missing");
  refused(atoms_not_unit(2), ERR_INPUT, "atom 1 of '/atoms' has norm 2", "an atom of norm 2");
  refused(atoms_not_unit(NAN), ERR_INPUT, "atom 1, column 1", "a NaN in an atom");
  refused(atom_twice(), ERR_INPUT, "row 2 has atom", "an atom twice in a row");
  result_discard();
  ok(access("order.h5", F_OK) && access("bad.h5", F_OK) && access("twice.h5", F_OK) &&
         count_of(".", ".tmp") == 0,
     "no file of the wrong results is left");
}

/* Choose the place of an output, as a new run does. */
static int place_try(struct output_path *place, const char *output, int force)
{
  outputs_release();
  return output_path(place, output, "supports.h5", force);
}

static int inputs_try(const char *input, const char *deck)
{
  status_clear();
  return outputs_check_inputs(&input, 1, deck);
}

static void places_are_checked(void)
{
  struct output_path place;
  struct result_file r;
  char folder[4096];
  ok(place_try(&place, "new/folder", 0) == OK && realpath("new/folder", folder) &&
         strncmp(place.file, folder, strlen(folder)) == 0 &&
         strcmp(place.file + strlen(folder), "/supports.h5") == 0 &&
         strcmp(place.used + strlen(folder), "/used.in") == 0 &&
         strcmp(place.log + strlen(folder), "/run.log") == 0 &&
         strcmp(place.shown, "new/folder/supports.h5") == 0,
     "a folder is made, the result and its companions are in it");
  ok(place_try(&place, "x.h5", 0) == OK && strcmp(place.shown, "x.h5") == 0 &&
         strstr(place.used, "/x.used.in"),
     "a name that ends in .h5 is the file");
  ok(rows_write("new/folder/supports.h5", 1, 1, 1) == OK, "a file of that name");
  refused(place_try(&place, "new/folder/", 0), ERR_CREATE, "--force", "an existing result");
  ok(place_try(&place, "new/folder/", 1) == OK, "an existing result, with force");
  refused(place_try(&place, "new/folder/supports.h5/x", 1), ERR_CREATE, "folder",
          "a file in place of the folder");
  refused(result_create(&r, "huge.h5", &rows_kind, (gidx)1 << 60), ERR_CREATE, "bytes free",
          "a full disk");
  refused(rows_write("no/such/folder/x.h5", 1, 1, 1), ERR_CREATE, "no/such/folder",
          "a folder that is not there");
  ok(mkdir("taken.h5", 0777) == 0, "a folder");
  refused(place_try(&place, "taken.h5", 1), ERR_CREATE, "is a folder",
          "a folder in place of the file");
  outputs_release();
  ok(count_of(".", ".lock") + count_of("new/folder", ".lock") == 0, "no lock is left");
}

static void inputs_are_spared(void)
{
  struct output_path place;
  char folder[4096];
  ok(place_try(&place, "new/folder", 1) == OK &&
         symlink("folder/supports.h5", "new/other.h5") == 0 &&
         inputs_try("new/folder", NULL) == OK && inputs_try("none.h5", "none.in") == OK &&
         inputs_try(NULL, NULL) == OK,
     "a result beside its inputs");
  refused(inputs_try("new/other.h5", NULL), ERR_CREATE, "an input of this run",
          "a result in place of an input, by another name");
  refused(inputs_try("new/other.h5:/rows", NULL), ERR_CREATE, "an input of this run",
          "a result in place of an input with a path in it");
  ok(fclose(fopen("new/folder/run.log", "w")) == 0, "run.log of an earlier run");
  refused(inputs_try("new/folder/run.log", NULL), ERR_CREATE, "an input of this run",
          "a log in place of an input");
  refused(inputs_try(NULL, "new/folder/supports.h5"), ERR_CREATE, "the deck",
          "a log in place of the deck");
  ok(rename("new/folder/run.log", "new/folder/used.in") == 0, "used.in instead");
  refused(inputs_try("new/folder/used.in", NULL), ERR_CREATE, "an input of this run",
          "used.in in place of an input");
  unlink("new/folder/used.in");
  ok(fclose(fopen("new/folder/used.in", "w")) == 0 && inputs_try(NULL, "new/folder/used.in") == OK,
     "the deck may be used.in itself");
  unlink("new/folder/used.in");
  const char *const outputs[] = {"new/folder/supports.h5", "new/folder/../folder/run.log",
                                 "new/folder/used.in"};
  for (int i = 0; i < LENGTH(outputs); i++)
    refused(output_claim(outputs[i], 1, folder), ERR_CREATE, "two outputs of this run", outputs[i]);
  ok(output_claim("new/folder/more", 0, folder) == OK, "another output");
  outputs_release();
}

static void locks_are_kept(void)
{
  struct output_path place;
  const char *lock = "new/folder/.supports.h5.lock";
  int other = open(lock, O_RDWR | O_CREAT, 0666);
  ok(other >= 0 && flock(other, LOCK_EX) == 0, "a lock of another run");
  refused(place_try(&place, "new/folder/supports.h5", 1), ERR_CREATE, "another run is writing here",
          "its place");
  ok(access(lock, F_OK) == 0, "the lock of another run is left alone");
  unlink(lock);
  ok(place_try(&place, "new/folder", 1) == OK, "a lock whose name is gone");
  close(other);
  outputs_release();
  FILE *file = fopen(lock, "w");
  ok(file && fputs("mine", file) >= 0 && fclose(file) == 0, "a file that is no lock");
  refused(place_try(&place, "new/folder", 1), ERR_CREATE, "is no lock", "in place of the lock");
  ok(unlink(lock) == 0 && symlink("../../nowhere", lock) == 0, "a link in place of the lock");
  refused(place_try(&place, "new/folder", 1), ERR_CREATE, "cannot lock", "in place of the lock");
  ok(unlink(lock) == 0 && access("nowhere", F_OK) != 0, "the link is not followed");
  outputs_release();
}

/* On a file system of 2 MB a result is refused by its estimated size, and a write past its end is
 * reported as ERR_IO. */
static void full_disk_is_told(void)
{
  mkdir("disk", 0777);
  if (system("mount -t tmpfs -o size=2m none disk 2> /dev/null")) {
    skip("a small file system cannot be mounted: mounting is not permitted");
    return;
  }
  struct matrix_output f;
  enum { P = 1024 };
  float x[P] = {0};
  refused(rows_write("disk/a.h5", 4096, P, 4096), ERR_CREATE, "bytes free", "too small a disk");
  int status = result_create(&f.result, "disk/b.h5", &rows_kind, 0);
  gidx shape[2] = {4096, P};
  if (!status) status = h5_array_create(&f.result.h5, "/rows", TYPE_F32, 2, shape, &f.array);
  for (gidx row = 0; row < 4096 && !status; row++) status = matrix_output_write(&f, row, 1, x);
  if (!status) status = matrix_output_finish(&f, NULL, 0);
  refused(status, ERR_IO, "No space left on device", "a disk that fills up");
  matrix_output_close(&f);
  result_discard();
  ok(access("disk/b.h5", F_OK) && count_of("disk", ".tmp") == 0,
     "no file is left on the full disk");
  struct output_path place;
  outputs_release();
  status_clear();
  ok(system("mount -o remount,ro disk") == 0, "a folder that cannot be written to");
  refused(output_path(&place, "disk", "a.h5", 0), ERR_CREATE, "cannot write in folder 'disk'",
          "a folder that cannot be written to");
  refused(output_path(&place, "disk/below", "a.h5", 0), ERR_CREATE, "cannot make folder",
          "a new folder in a folder that cannot be written to");
  if (system("umount -l disk")) printf("# the disk stays mounted\n");
}

int main(void)
{
  folder_enter();
  blocks_do_not_matter();
  claim_begin("written values are read back, -0 and infinity, too; a NaN as the canonical NaN");
  values_come_back();
  claim_end();
  claim_begin("wrong results are refused, and no file of them is left");
  wrong_results_are_refused();
  claim_end();
  claim_begin("the place of a result is checked before work begins");
  places_are_checked();
  claim_end();
  claim_begin("an output in place of an input, or of another output, is refused");
  inputs_are_spared();
  claim_end();
  claim_begin("a lock keeps other runs from the place of a result");
  locks_are_kept();
  claim_end();
  claim_begin("a full disk and a read-only disk are reported");
  full_disk_is_told();
  claim_end();
  folder_leave();
  return done_testing();
}
