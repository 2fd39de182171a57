/* SPDX-License-Identifier: BSD-3-Clause
 * A strict reader of the header, which is the text of a Python dictionary of three known keys. */
#include "io/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/status.h"
#include "base/watchdog.h"

enum { MAX_HEADER = 1 << 16, STEP_BYTES = 64 << 20, PIECE_BYTES = 1 << 20, MAX_RANK = 8 };

/* Read bytes at an offset, all of them, in steps of the watchdog. */
static int read_whole(const struct npy_file *f, gidx at, size_t bytes, void *out)
{
  for (size_t done = 0; done < bytes;) {
    size_t part = bytes - done < STEP_BYTES ? bytes - done : STEP_BYTES;
    int step = watchdog_begin(ERR_IO, "reading", f->path);
    ssize_t got = pread(f->file - 1, (char *)out + done, part, (off_t)at + (off_t)done);
    watchdog_end(step);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, ERR_IO, "cannot read '%s': %s", f->path, strerror(errno));
    CHECK(got > 0, ERR_INPUT, "'%s' is truncated at byte %lld", f->path,
          (long long)at + (long long)done);
    done += (size_t)got;
  }
  return OK;
}

/* The text behind a key and its colon, blanks skipped; NULL when the key is missing. */
static const char *value_of(const char *header, const char *key)
{
  char quoted[32];
  snprintf(quoted, sizeof quoted, "'%s'", key);
  const char *at = strstr(header, quoted);
  if (!at) return NULL;
  at += strlen(quoted);
  at += strspn(at, " ");
  if (*at++ != ':') return NULL;
  return at + strspn(at, " ");
}

/* Refuse Fortran order. */
static int order_read(struct npy_file *f, const char *header)
{
  const char *fortran = value_of(header, "fortran_order");
  CHECK(fortran && (strncmp(fortran, "True", 4) == 0 || strncmp(fortran, "False", 5) == 0),
        ERR_INPUT, "the header of '%s' has no fortran_order", f->path);
  CHECK(*fortran == 'F', ERR_INPUT,
        "'%s' is in Fortran order: save it with numpy.save(name, numpy.ascontiguousarray(x))",
        f->path);
  return OK;
}

static int type_read(struct npy_file *f, const char *header)
{
  const char *descr = value_of(header, "descr");
  CHECK(descr, ERR_INPUT, "the header of '%s' has no descr", f->path);
  int length = descr[0] == '\'' ? (int)strcspn(descr + 1, "'") : 0;
  const char *letters = descr + 1;
  int known =
      length == 3 && strchr("<>=|", letters[0]) && letters[1] == 'f' && strchr("248", letters[2]);
  CHECK(known, ERR_INPUT,
        "'%s' holds values of type %.*s: save it as float16, float32 or float64, for instance "
        "with x.astype('f4')",
        f->path, length ? length : 12, length ? letters : descr);
  const unsigned short probe = 1;
  int is_little = *(const unsigned char *)&probe;
  f->swap = letters[0] == (is_little ? '>' : '<');
  f->type = letters[2] == '2' ? TYPE_F16 : letters[2] == '4' ? TYPE_F32 : TYPE_F64;
  return OK;
}

static int shape_read(struct npy_file *f, const char *header)
{
  const char *at = value_of(header, "shape");
  CHECK(at && *at == '(', ERR_INPUT, "the header of '%s' has no shape", f->path);
  double values = 1;
  f->rank = 0;
  for (at += 1 + strspn(at + 1, " "); *at != ')'; at += strspn(at, " ")) {
    char *end;
    errno = 0;
    long long size = strtoll(at, &end, 10);
    values *= (double)size;
    CHECK(end > at && errno == 0 && size >= 0 && values < 0x1p60 && f->rank < MAX_RANK, ERR_INPUT,
          "the header of '%s' has a broken shape", f->path);
    if (f->rank < LENGTH(f->shape)) f->shape[f->rank] = size;
    f->rank++;
    at = end + strspn(end, " ");
    CHECK(*at == ',' || *at == ')', ERR_INPUT, "the header of '%s' has a broken shape", f->path);
    at += *at == ',';
  }
  return OK;
}

static size_t type_bytes(enum h5_type type)
{
  return type == TYPE_F16 ? 2 : type == TYPE_F32 ? 4 : 8;
}

/* Is the file as long as its shape says? */
static int length_check(const struct npy_file *f)
{
  struct stat facts;
  CHECK(fstat(f->file - 1, &facts) == 0, ERR_IO, "cannot read '%s': %s", f->path, strerror(errno));
  gidx bytes = (gidx)type_bytes(f->type);
  for (int i = 0; i < f->rank && i < LENGTH(f->shape); i++) bytes *= f->shape[i];
  CHECK(facts.st_size - f->data >= bytes, ERR_INPUT,
        "'%s' is truncated: it has %lld bytes of values, its shape wants %lld", f->path,
        (long long)(facts.st_size - f->data), (long long)bytes);
  return OK;
}

/* header <- the text of the header.  Before it are the magic, the version, and the length of the
 * header in 2 bytes (version 1) or 4. */
static int header_read(struct npy_file *f, char *header)
{
  unsigned char head[12] = {0};
  TRY(read_whole(f, 0, 10, head));
  CHECK(memcmp(head, "\x93NUMPY", 6) == 0, ERR_INPUT, "'%s' is not a NumPy file", f->path);
  CHECK(head[6] >= 1 && head[6] <= 3, ERR_INPUT,
        "'%s' has version %d of the NumPy format, 1 to 3 are read", f->path, head[6]);
  if (head[6] > 1) TRY(read_whole(f, 10, 2, head + 10));
  size_t length = head[8] | (size_t)head[9] << 8 | (size_t)head[10] << 16 | (size_t)head[11] << 24;
  CHECK(length < MAX_HEADER, ERR_INPUT, "'%s' is damaged: its header has %zu bytes", f->path,
        length);
  f->data = (head[6] > 1 ? 12 : 10) + (gidx)length;
  TRY(read_whole(f, f->data - (gidx)length, length, header));
  header[length] = '\0';
  CHECK(header[0] == '{' && strchr(header, '}') && strlen(header) == length, ERR_INPUT,
        "'%s' is damaged: its header is not a dictionary", f->path);
  return OK;
}

int npy_open(struct npy_file *f, const char *path)
{
  struct stat facts;
  char header[MAX_HEADER];
  *f = (struct npy_file){.path = path};
  int step = watchdog_begin(ERR_IO, "opening", path);
  int is_there = stat(path, &facts) == 0, is_regular = is_there && S_ISREG(facts.st_mode);
  int file = is_regular ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  watchdog_end(step);
  CHECK(!is_there || is_regular, ERR_IO, "cannot open '%s': it is not a regular file", path);
  CHECK(file >= 0, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  f->file = file + 1;
  TRY(header_read(f, header));
  TRY(order_read(f, header));
  TRY(type_read(f, header));
  TRY(shape_read(f, header));
  return f->rank <= LENGTH(f->shape) ? length_check(f) : OK;
}

void npy_close(struct npy_file *f)
{
  if (f->file) close(f->file - 1);
  *f = (struct npy_file){0};
}

static void swap_bytes(unsigned char *bytes, gidx count, size_t width)
{
  for (gidx i = 0; i < count; i++, bytes += width)
    for (size_t b = 0; b < width / 2; b++) {
      unsigned char byte = bytes[b];
      bytes[b] = bytes[width - 1 - b];
      bytes[width - 1 - b] = byte;
    }
}

int npy_read(const struct npy_file *f, gidx first, gidx count, float *out)
{
  size_t width = type_bytes(f->type);
  gidx row = 1;
  for (int i = 1; i < f->rank; i++) row *= f->shape[i];
  CHECK(first >= 0 && count >= 0 && f->rank > 0 && first <= f->shape[0] - count, ERR_INTERNAL,
        "rows %lld + %lld of '%s' are beyond its end", (long long)first, (long long)count, f->path);
  gidx at = f->data + first * row * (gidx)width, values = count * row;
  if (f->type == TYPE_F32) {
    TRY(read_whole(f, at, (size_t)values * width, out));
    if (f->swap) swap_bytes((unsigned char *)out, values, width);
    return OK;
  }
  gidx piece = imin(PIECE_BYTES / (gidx)width, values);
  void *buffer = malloc((size_t)piece * width + 1);
  CHECK(buffer, ERR_MEMORY, "cannot allocate %zu bytes", (size_t)piece * width);
  int status = OK;
  for (gidx done = 0; done < values && status == OK; done += piece) {
    gidx n = imin(piece, values - done);
    status = read_whole(f, at + done * (gidx)width, (size_t)n * width, buffer);
    if (status == OK && f->swap) swap_bytes(buffer, n, width);
    if (status == OK) h5_to_f32(f->type, buffer, n, out + done);
  }
  free(buffer);
  return status;
}
