/* SPDX-License-Identifier: BSD-3-Clause
 * Variable-length texts.  HDF5 gives the descriptor, through a conversion registered here that
 * leaves it as it is; the descriptor points to a collection of the global heap, which is read and
 * checked here. */
#include "io/h5/vlen_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/retry.h"
#include "base/watchdog.h"

enum { HEAP_HEADER = 16 }; /* bytes before a collection, and before each object in it */
enum { HEAP_PAGE = 4096 }; /* bytes read at a time; the smallest size of a collection */

/* The little-endian number in bytes[count]. */
static uint64_t little(const unsigned char *bytes, int count)
{
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; i--) value = value << 8 | bytes[i];
  return value;
}

/* HDF5 calls this to convert texts to descriptors: only the sizes are compared, the bytes stay. */
static herr_t keep_descriptor(hid_t from, hid_t to, H5T_cdata_t *data, size_t n, size_t stride,
                              size_t background_stride, void *buffer, void *background, hid_t list)
{
  (void)n, (void)stride, (void)background_stride, (void)buffer, (void)background, (void)list;
  if (data->command != H5T_CONV_INIT) return 0;
  data->need_bkg = H5T_BKG_NO;
  return H5Tget_size(from) == sizeof(struct h5_text) && H5Tget_size(to) == sizeof(struct h5_text)
             ? 0
             : -1;
}

hid_t h5_text_type(void)
{
  static hid_t type;
  if (type > 0) return type;
  hid_t text = H5Tcopy(H5T_C_S1), descriptor = H5Tcreate(H5T_OPAQUE, sizeof(struct h5_text));
  if (text < 0 || descriptor < 0 || H5Tset_size(text, H5T_VARIABLE) < 0) return -1;
  if (H5Tset_tag(descriptor, "text descriptor") < 0) return -1;
  if (H5Tregister(H5T_PERS_SOFT, "text descriptor", text, descriptor, keep_descriptor) < 0)
    return -1;
  H5Tclose(text);
  return type = descriptor;
}

struct heap {
  int file;           /* the descriptor that HDF5 has open */
  uint64_t base, end; /* where the file's HDF5 part begins and ends, in bytes of the file */
  const char *path;
  uint64_t at; /* offset of the page in the file */
  size_t held; /* bytes in the page; 0: no page was read */
  unsigned char page[HEAP_PAGE];
};

static int heap_open(const struct h5_file *f, struct heap *heap)
{
  void *handle;
  struct stat facts;
  hsize_t block = 0;
  TRY_H5(H5Fget_vfd_handle(f->id, H5P_DEFAULT, &handle), ERR_IO, "cannot read '%s'", f->path);
  heap->file = *(int *)handle;
  heap->path = f->path;
  hid_t creation = H5Fget_create_plist(f->id);
  herr_t got = creation < 0 ? -1 : H5Pget_userblock(creation, &block);
  if (creation >= 0) H5Pclose(creation);
  TRY_H5(got, ERR_INPUT, "cannot read '%s'", f->path);
  CHECK(fstat(heap->file, &facts) == 0, ERR_IO, "cannot read '%s'", f->path);
  heap->base = block;
  heap->end = (uint64_t)facts.st_size;
  heap->at = heap->held = 0;
  return OK;
}

static int bytes_read(const struct heap *heap, uint64_t at, void *out, size_t bytes)
{
  for (size_t done = 0; done < bytes;) {
    int step = watchdog_begin(ERR_IO, "reading", heap->path);
    ssize_t got = retry_pread(heap->file, (char *)out + done, bytes - done, (off_t)(at + done));
    watchdog_end(step);
    CHECK(got > 0, ERR_IO, "cannot read '%s' at byte %llu", heap->path,
          (unsigned long long)(at + done));
    done += (size_t)got;
  }
  return OK;
}

/* Headers lie close together, so one read of a small header also brings those that follow. */
static int heap_read(struct heap *heap, uint64_t at, void *out, size_t bytes)
{
  CHECK(at <= heap->end && bytes <= heap->end - at, ERR_INPUT,
        "the text heap of '%s' is damaged: it ends outside the file" ANEW, heap->path);
  if (bytes > HEAP_PAGE) return bytes_read(heap, at, out, bytes);
  if (at < heap->at || at + bytes > heap->at + heap->held) {
    size_t held = heap->end - at < HEAP_PAGE ? (size_t)(heap->end - at) : HEAP_PAGE;
    heap->at = at;
    heap->held = 0;
    TRY(bytes_read(heap, at, heap->page, held));
    heap->held = held;
  }
  memcpy(out, heap->page + (at - heap->at), bytes);
  return OK;
}

/* *at <- the byte of the file where object `index` of the collection begins; 0: there is no such
 * object.  The object must have the size `length`.  Objects and free space must fill the
 * collection, since HDF5 reads beyond its end if an object claims to be larger. */
static int heap_scan(struct heap *heap, uint64_t start, unsigned index, uint64_t length,
                     uint64_t *at)
{
  unsigned char head[HEAP_HEADER];
  TRY(heap_read(heap, start, head, sizeof head));
  uint64_t size = little(head + 8, 8), p = HEAP_HEADER;
  CHECK(memcmp(head, "GCOL\1", 5) == 0 && size <= heap->end - start, ERR_INPUT,
        "the text heap of '%s' is damaged: no collection at byte %llu" ANEW, heap->path,
        (unsigned long long)start);
  *at = 0;
  while (p + HEAP_HEADER <= size) {
    TRY(heap_read(heap, start + p, head, sizeof head));
    uint64_t bytes = little(head + 8, 8), left = size - p - HEAP_HEADER;
    unsigned number = (unsigned)little(head, 2);
    if (number == 0 && bytes == size - p) break; /* the rest is free, this header included */
    CHECK(number && bytes <= left && (number != index || bytes == length), ERR_INPUT,
          "the text heap of '%s' is damaged: object %u has %llu bytes" ANEW, heap->path, number,
          (unsigned long long)bytes);
    if (number == index) *at = start + p + HEAP_HEADER;
    p += HEAP_HEADER + (bytes + 7) / 8 * 8;
  }
  return OK;
}

static int heap_find(struct heap *heap, uint64_t address, unsigned index, uint64_t length,
                     uint64_t *at)
{
  CHECK(address < heap->end, ERR_INPUT, "the text heap of '%s' is damaged: no address" ANEW,
        heap->path);
  TRY(heap_scan(heap, heap->base + address, index, length, at));
  CHECK(*at, ERR_INPUT, "the text heap of '%s' is damaged: no object %u at byte %llu" ANEW,
        heap->path, index, (unsigned long long)(heap->base + address));
  return OK;
}

int h5_text_fetch(const struct h5_file *f, const struct h5_text *text, char **out, size_t *length)
{
  struct heap heap;
  uint64_t at = 0, bytes = little(text->bytes, 4), address = little(text->bytes + 4, 8);
  TRY(heap_open(f, &heap));
  if (bytes) TRY(heap_find(&heap, address, (unsigned)little(text->bytes + 12, 4), bytes, &at));
  char *copy = malloc(bytes + 1);
  CHECK(copy, ERR_MEMORY, "cannot allocate %llu bytes", (unsigned long long)bytes + 1);
  copy[bytes] = '\0';
  *out = copy;
  *length = bytes;
  return bytes ? heap_read(&heap, at, copy, bytes) : OK;
}
