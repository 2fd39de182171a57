/* SPDX-License-Identifier: BSD-3-Clause
 * Chunks of the layout that Sagitta writes are read and written without HDF5's filters, and their
 * checksum is computed in SIMD lanes; HDF5's own code takes three times as long.  A chunk that is
 * not as expected is left to HDF5, which reads it or says what is wrong. */
#include "io/h5/chunks.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "io/h5/driver.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "memory has the byte order of files");

/* MAX_STEPS is so small that the 32-bit sums of a lane cannot overflow. */
enum { MAX_CHUNK = 64 << 20, LANES = 4, MAX_STEPS = 360, NONE = -1 };

pthread_mutex_t h5_one = PTHREAD_MUTEX_INITIALIZER;

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

/* The sum modulo 65535, as a number of 1 .. 65535; 0 only for the sum 0.  One's complement
 * addition, which adds the carry back, gives the same number. */
static uint64_t fold(uint64_t sum)
{
  return sum ? (sum - 1) % 65535 + 1 : 0;
}

/* Two sums over the 16-bit words: the sum of the words, and the sum of the values that the first
 * sum has after each word.  Fletcher-32 is defined on big-endian words.  Swapping the bytes of a
 * word multiplies it by 256 modulo 65535, so little-endian words are summed and the sums multiplied
 * at the end.  Fletcher, An arithmetic checksum for serial transmissions, 1982. */
uint32_t h5_fletcher32(const unsigned char *data, size_t bytes)
{
  uint64_t sum = 0, sums = 0;
  size_t at = 0, step = sizeof(lanes);
  while (bytes - at >= step) {
    size_t steps = (bytes - at) / step < MAX_STEPS ? (bytes - at) / step : MAX_STEPS;
    lanes even = {0}, odd = {0}, evens = {0}, odds = {0};
    for (size_t t = 0; t < steps; t++, at += step) {
      lanes pair;
      memcpy(&pair, data + at, step);
      even += pair & 0xffff;
      odd += pair >> 16;
      evens += even;
      odds += odd;
    }
    uint64_t plain = 0, weighted = 0;
    for (unsigned l = 0; l < LANES; l++) {
      plain += (uint64_t)even[l] + odd[l];
      weighted += 2 * LANES * ((uint64_t)evens[l] + odds[l]);
      weighted -= (uint64_t)even[l] * (2 * l) + (uint64_t)odd[l] * (2 * l + 1);
    }
    sums = fold(sums + 2 * LANES * steps * sum + weighted);
    sum = fold(sum + plain);
  }
  for (; at < bytes; at += 2) {
    sum += data[at] | (at + 1 < bytes ? (uint32_t)data[at + 1] << 8 : 0);
    sums += sum;
  }
  return (uint32_t)(fold(sums * 256) << 16 | fold(sum * 256));
}

/* Has a dataset chunks of whole rows, with the checksum as their only filter?  *chunk <- their
 * shape.  Datasets of HDF5's largest rank are refused, since HDF5 1.10 overruns an array of its own
 * when it looks up one of their chunks. */
static int is_simple(hid_t creation, int rank, const hsize_t *dims, hsize_t *chunk)
{
  unsigned flags, options;
  size_t no_values = 0;
  if (rank < 1 || rank >= H5S_MAX_RANK || H5Pget_layout(creation) != H5D_CHUNKED ||
      H5Pget_nfilters(creation) != 1)
    return 0;
  if (H5Pget_filter2(creation, 0, &flags, &no_values, NULL, 0, NULL, &options) !=
      H5Z_FILTER_FLETCHER32)
    return 0;
  if (H5Pget_chunk_opts(creation, &options) < 0 || options) return 0;
  if (H5Pget_chunk(creation, rank, chunk) != rank) return 0;
  for (int i = 1; i < rank; i++)
    if (chunk[i] != dims[i]) return 0;
  return 1;
}

const void *h5_chunks_disk(hid_t dataset)
{
  void *handle = NULL;
  hid_t file = H5Iget_file_id(dataset), creation = file < 0 ? -1 : H5Fget_create_plist(file);
  hsize_t before = 1;
  if (creation >= 0) H5Pget_userblock(creation, &before);
  if (before == 0 && H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0) handle = NULL;
  if (creation >= 0) H5Pclose(creation);
  if (file >= 0) H5Fclose(file);
  return handle;
}

int h5_chunks_open(hid_t dataset, struct h5_chunks **chunks)
{
  hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
  hid_t creation = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
  hid_t space = H5Dget_space(dataset);
  int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);
  double bytes = 0;
  if (creation >= 0 && type >= 0 && is_simple(creation, rank, dims, chunk)) {
    bytes = (double)H5Tget_size(type);
    for (int i = 0; i < rank; i++) bytes *= (double)chunk[i];
  }
  if (creation >= 0) H5Pclose(creation);
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  *chunks = NULL;
  if (bytes < 1 || bytes > MAX_CHUNK) return OK;
  struct h5_chunks *c = *chunks = malloc(sizeof *c + (size_t)bytes + H5_SUM_BYTES);
  CHECK(c, ERR_MEMORY, "cannot allocate %.0f bytes for a chunk", bytes);
  *c = (struct h5_chunks){.rows = (gidx)chunk[0],
                          .end = (gidx)dims[0],
                          .bytes = (size_t)bytes,
                          .buffered = NONE,
                          .refused = NONE,
                          .has_zeros = 1,
                          .handle = h5_chunks_disk(dataset)};
  return OK;
}

/* out[c->bytes + H5_SUM_BYTES] <- the chunk that begins at entry first, and its checksum.  Returns
 * 0 when it is not stored as expected or its checksum is wrong, NONE when the disk failed. */
static int chunk_read(const struct h5_chunks *c, hid_t dataset, gidx first, unsigned char *out)
{
  hsize_t start[H5S_MAX_RANK] = {(hsize_t)first}, stored = 0;
  uint32_t mask = 1, sum;
  herr_t done;
  errno = 0;
  H5E_BEGIN_TRY
  {
    done = H5Dget_chunk_storage_size(dataset, start, &stored);
    if (done >= 0 && stored == c->bytes + H5_SUM_BYTES)
      done = H5Dread_chunk(dataset, H5P_DEFAULT, start, &mask, out);
  }
  H5E_END_TRY
  if (done < 0 && (errno == EIO || errno == ESTALE)) return NONE;
  if (done < 0 || mask) return 0;
  memcpy(&sum, out + c->bytes, sizeof sum);
  return sum == h5_fletcher32(out, c->bytes);
}

/* Is the chunk zero in every byte, although no such chunk was written? */
static int is_hole(const struct h5_chunks *c, const unsigned char *chunk)
{
  uint32_t sum;
  memcpy(&sum, chunk + c->bytes, sizeof sum);
  return sum == 0 && !c->has_zeros;
}

/* out <- entries from `first` to the end of their chunk, at most count.  Returns their number; 0:
 * HDF5 must read the chunk; NONE: the chunk is an error.  A whole chunk is read directly into out,
 * and its checksum into the place of later entries.  Any other chunk is read into the buffer, where
 * it stays for the next call. */
static gidx chunk_entries(struct h5_chunks *c, hid_t dataset, gidx first, gidx count,
                          unsigned char *out)
{
  gidx begin = first - first % c->rows;
  gidx n = imin(count, imin(begin + c->rows, c->end) - first);
  size_t row = c->bytes / (size_t)c->rows;
  int is_direct = n == c->rows && (size_t)(count - n) * row >= H5_SUM_BYTES;
  unsigned char *to = is_direct ? out : c->buffer;
  if (is_direct || c->buffered != begin) {
    if (begin == c->refused) return 0;
    if (!is_direct) c->buffered = NONE;
    int read = chunk_read(c, dataset, begin, to);
    if (read == NONE) return NONE;
    if (!read) {
      c->refused = begin;
      return 0;
    }
    if (is_hole(c, to)) {
      h5_cause("the chunk at entry %lld is zero, and none was written so", (long long)begin);
      return NONE;
    }
    if (!is_direct) c->buffered = begin;
    c->n_direct++;
  }
  if (!is_direct) memcpy(out, to + (size_t)(first - begin) * row, (size_t)n * row);
  return n;
}

/* *at <- the address of the chunk that begins at entry first.  Returns 0 if the chunk is not stored
 * as expected.  chunk: a buffer of its size, which HDF5 gets as the place to read to; nothing is
 * read. */
static int chunk_find(const struct h5_chunks *c, hid_t dataset, gidx first, unsigned char *chunk,
                      haddr_t *at)
{
  hsize_t start[H5S_MAX_RANK] = {(hsize_t)first}, stored = 0;
  size_t bytes = c->bytes + H5_SUM_BYTES;
  uint32_t mask = 1;
  int is_found = 0;
  pthread_mutex_lock(&h5_one);
  H5E_BEGIN_TRY
  {
    if (H5Dget_chunk_storage_size(dataset, start, &stored) >= 0 && stored == bytes) {
      h5_driver_find(NULL, HADDR_UNDEF);
      herr_t done = H5Dread_chunk(dataset, H5P_DEFAULT, start, &mask, chunk);
      is_found = h5_driver_found(bytes, at) && done >= 0 && mask == 0;
    }
  }
  H5E_END_TRY
  pthread_mutex_unlock(&h5_one);
  return is_found;
}

gidx h5_chunks_read(struct h5_chunks *c, hid_t dataset, gidx first, gidx n, void *out)
{
  size_t row = c->bytes / (size_t)c->rows;
  unsigned char *chunk = c->handle ? malloc(c->bytes + H5_SUM_BYTES) : NULL;
  gidx done = 0, count;
  for (haddr_t at; chunk && done < n; done += count, c->n_direct++) {
    gidx within = (first + done) % c->rows;
    uint32_t sum;
    count = imin(n - done, c->rows - within);
    if (!chunk_find(c, dataset, first + done - within, chunk, &at) ||
        !h5_driver_read(c->handle, at, c->bytes + H5_SUM_BYTES, chunk))
      break;
    memcpy(&sum, chunk + c->bytes, sizeof sum);
    if (sum != h5_fletcher32(chunk, c->bytes) || is_hole(c, chunk)) break;
    memcpy((unsigned char *)out + (size_t)done * row, chunk + (size_t)within * row,
           (size_t)count * row);
  }
  free(chunk);
  return done;
}

/* As h5_block_read, by HDF5 alone. */
static herr_t slab_read(hid_t dataset, hid_t type, int rank, const hsize_t *start,
                        const hsize_t *size, void *out)
{
  hid_t memory = H5Screate_simple(rank, size, NULL), file = H5Dget_space(dataset);
  herr_t done = memory < 0 || file < 0 ? -1 : 0;
  if (done >= 0) done = H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, size, NULL);
  if (done >= 0) done = H5Dread(dataset, type, memory, file, H5P_DEFAULT, out);
  if (memory >= 0) H5Sclose(memory);
  if (file >= 0) H5Sclose(file);
  return done;
}

herr_t h5_block_read(hid_t dataset, hid_t type, struct h5_chunks *c, int rank, const hsize_t *start,
                     const hsize_t *size, void *out)
{
  size_t row = H5Tget_size(type);
  for (int i = 1; i < rank; i++) row *= (size_t)size[i];
  if (!c || row * (size_t)c->rows != c->bytes)
    return slab_read(dataset, type, rank, start, size, out);
  hsize_t at[H5S_MAX_RANK] = {0}, part[H5S_MAX_RANK];
  memcpy(part, size, (size_t)rank * sizeof *part);
  for (gidx first = (gidx)start[0], end = first + (gidx)size[0]; first < end;) {
    unsigned char *to = (unsigned char *)out + (size_t)(first - (gidx)start[0]) * row;
    gidx rows = chunk_entries(c, dataset, first, end - first, to);
    if (rows == NONE) return -1;
    if (!rows) {
      rows = imin(c->rows - first % c->rows, end - first);
      at[0] = (hsize_t)first;
      part[0] = (hsize_t)rows;
      herr_t done = slab_read(dataset, type, rank, at, part, to);
      if (done < 0) return done;
      if (c->is_sealed) {
        h5_cause("the chunk at entry %lld is not stored as it was written", (long long)first);
        return -1;
      }
    }
    first += rows;
  }
  return 0;
}

herr_t h5_chunk_allocate(hid_t dataset, gidx first, const unsigned char *chunk, size_t bytes,
                         haddr_t wanted, haddr_t *at)
{
  hsize_t start[H5S_MAX_RANK] = {(hsize_t)first};
  size_t stored = bytes + H5_SUM_BYTES;
  h5_driver_find(chunk, wanted);
  herr_t done = H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, start, stored, chunk);
  int is_placed = h5_driver_found(stored, at);
  if (done >= 0 && !is_placed) h5_cause("HDF5 does not store the chunk in one piece");
  return is_placed ? done : -1;
}

int h5_chunk_write(const void *disk, haddr_t at, const unsigned char *chunk, size_t bytes,
                   uint32_t *sum)
{
  *sum = h5_fletcher32(chunk, bytes);
  int error = h5_driver_write(disk, at, bytes, chunk);
  return error ? error : h5_driver_write(disk, at + bytes, sizeof *sum, sum);
}
