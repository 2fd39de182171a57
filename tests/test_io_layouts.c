/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: chunks that have not the layout of this program's own files, and damaged chunks, are left
 * to HDF5, which reads them or reports what is wrong. */
#include "io_blocks.h"

struct layout {
  const char *claim;
  hsize_t chunk[2];
  int deflates, sums, leaves_edges;
  hsize_t written; /* rows that are written; the others are fill values */
  gidx taken;      /* chunks that are not read through HDF5 */
};

/* Write an array as another program may do.  values[] <- its values. */
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
  hid_t memory = H5Screate_simple(2, size, NULL);
  herr_t done = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
  if (done >= 0) done = H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values);
  H5Sclose(memory);
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
  claim_begin("layouts of other programs are read; HDF5 reads chunks of a form that is not ours");
  for (int i = 0; i < LENGTH(layouts); i++) {
    const struct layout *l = &layouts[i];
    ok(!foreign_write(l, values), "%s: is written", l->claim);
    gidx taken = blocks_taken("/rows", TYPE_F32, COLUMNS, ROWS, values);
    ok(taken == l->taken, "%s: %lld chunks taken", l->claim, (long long)taken);
  }
  claim_end();
}

/* Replace the stored bytes of chunk 1: its values with this checksum.  damage: flip a bit. */
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

/* A stored chunk with more bytes than its values need. */
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
  ok(done >= 0 && taken != 16, "a chunk that is too long, with %d bytes, is noticed: %s", LONG,
     status_message());
}

/* Chunks that have no whole rows, but the size in bytes of chunks of whole rows. */
static void turned_chunk_is_left(void)
{
  static float values[10 * 2 * 4];
  const hsize_t dims[3] = {10, 2, 4}, chunk[3] = {5, 4, 2};
  const hsize_t max[3] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
  for (int i = 0; i < LENGTH(values); i++) values[i] = noise(6, (uint64_t)i);
  hid_t file = H5Fcreate("blocks.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(3, dims, max), list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 3, chunk);
  H5Pset_fletcher32(list);
  hid_t set = H5Dcreate2(file, "/turned", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  herr_t done = H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Sclose(space);
  H5Pclose(list);
  H5Dclose(set);
  H5Fclose(file);
  gidx taken = blocks_taken("/turned", TYPE_F32, 8, 10, values);
  ok(done >= 0 && taken == 0, "a chunk of another shape and as many bytes, %lld taken",
     (long long)taken);
}

/* Read, in turn, a row of a sound chunk and a row of a chunk that is left to HDF5.  Returns the
 * number of chunks that were not read through HDF5. */
static gidx in_turn(const float *values)
{
  struct h5_file f;
  struct h5_array a = {0};
  int wrong = h5_open(&f, "blocks.h5") || h5_array_open(&f, "/rows", &a);
  for (int i = 0; !wrong && i < 5; i++) {
    float row[COLUMNS];
    gidx first = i % 2 ? CHUNK + 1 : 1;
    wrong = h5_array_read(&a, first, 1, TYPE_F32, row) ||
            memcmp(row, values + first * COLUMNS, sizeof row) != 0;
  }
  gidx taken = wrong ? -1 : a.chunks->n_direct;
  h5_array_close(&a);
  h5_close(&f);
  return taken;
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
  gidx turns = in_turn(values);
  ok(!status && old == 15 && turns == 2,
     "HDF5 reads a chunk with a checksum of old files: %lld taken, %lld if read in turn with a "
     "sound one",
     (long long)old, (long long)turns);
  status |= chunk_replace(values, sum, 1);
  status_clear();
  gidx none = blocks_taken("/rows", TYPE_F32, COLUMNS, ROWS, values);
  ok(!status && none == -1 && strstr(status_message(), "cannot read '/rows' of 'blocks.h5'"),
     "a damaged chunk is reported: %s", status_message());
  status_clear();
  long_chunk_is_left(values);
}

static int n_followed;

static hid_t link_follow(const char *name, hid_t group, const void *data, size_t bytes, hid_t list,
                         hid_t transfer)
{
  (void)name, (void)data, (void)bytes, (void)list, (void)transfer;
  n_followed++;
  return H5Gopen2(group, "/", H5P_DEFAULT);
}

/* Links of a class that a program has registered may lead anywhere, so they are not followed. */
static void other_links_are_refused(void)
{
  const H5L_class_t class = {
      H5L_LINK_CLASS_T_VERS, (H5L_type_t)200, "a link", NULL, NULL, NULL, link_follow, NULL, NULL};
  struct h5_file f;
  struct h5_array a = {0};
  int there;
  herr_t made = H5Lregister(&class);
  int status = h5_create(&f, "links.h5");
  if (made >= 0) made = H5Lcreate_ud(f.id, "/link", class.id, "", 0, H5P_DEFAULT, H5P_DEFAULT);
  if (!status) status = h5_close(&f);
  if (!status) status = h5_open(&f, "links.h5");
  ok(!status && made >= 0, "a file with a link of another class %s", status_message());
  int asked = h5_exists(&f, "/link/rows", &there), opened = h5_array_open(&f, "/link/rows", &a);
  ok(asked == ERR_INPUT && opened == ERR_INPUT && n_followed == 0 &&
         strstr(status_message(), "link out of the file"),
     "links of other classes are not followed: %s", status_message());
  status_clear();
  h5_array_close(&a);
  h5_close(&f);
  H5Lunregister(class.id);
}

int main(void)
{
  folder_enter();
  if (h5_begin()) return 99;
  other_layouts_are_left();
  turned_chunk_is_left();
  damage_is_left();
  other_links_are_refused();
  folder_leave();
  return done_testing();
}
