/* SPDX-License-Identifier: BSD-3-Clause
 * A strict reader of the header, which is the text of a Python dictionary of three known keys, each
 * once, in any order.  A reader of a value moves *at behind it. */
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
  input_file_read(f->input);
  for (size_t done = 0; done < bytes;) {
    size_t part = bytes - done < STEP_BYTES ? bytes - done : STEP_BYTES;
    int step = watchdog_begin(ERR_IO, "reading", f->path);
    ssize_t got = pread(f->file - 1, (char *)out + done, part, (off_t)at + (off_t)done);
    watchdog_end(step);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, ERR_IO, "cannot read '%s': %s", f->path, strerror(errno));
    if (got == 0)
      return input_file_failed(f->input, status_fail(ERR_INPUT, __FILE__, __LINE__,
                                                     "'%s' is truncated at byte %lld", f->path,
                                                     (long long)at + (long long)done));
    done += (size_t)got;
  }
  return OK;
}

static void blanks_skip(const char **at)
{
  *at += strspn(*at, " ");
}

static int word_skip(const char **at, const char *word)
{
  size_t length = strlen(word);
  int is_there = strncmp(*at, word, length) == 0;
  if (is_there) *at += length;
  return is_there;
}

/* Refuse Fortran order. */
static int order_read(struct npy_file *f, const char **at)
{
  int is_fortran = word_skip(at, "True");
  CHECK(is_fortran || word_skip(at, "False"), ERR_INPUT,
        "the header of '%s' has a fortran_order that is neither True nor False", f->path);
  CHECK(!is_fortran, ERR_INPUT,
        "'%s' is in Fortran order: save it with numpy.save(name, numpy.ascontiguousarray(x))",
        f->path);
  return OK;
}

static int type_read(struct npy_file *f, const char **at)
{
  const char *descr = *at, *letters = descr + 1;
  int length = descr[0] == '\'' ? (int)strcspn(letters, "'") : 0;
  int known = length == 3 && letters[3] && strchr("<>=|", letters[0]) && letters[1] == 'f' &&
              strchr("248", letters[2]);
  CHECK(known, ERR_INPUT,
        "'%s' holds values of type %.*s: save it as float16, float32 or float64, for instance "
        "with x.astype('f4')",
        f->path, length ? length : 12, length ? letters : descr);
  const unsigned short probe = 1;
  int is_little = *(const unsigned char *)&probe;
  f->swap = letters[0] == (is_little ? '>' : '<');
  f->type = letters[2] == '2' ? TYPE_F16 : letters[2] == '4' ? TYPE_F32 : TYPE_F64;
  *at = letters + 4;
  return OK;
}

/* A number of a shape: digits without a sign, and without zeros in front. */
static int size_read(const char **at, long long *size)
{
  size_t digits = strspn(*at, "0123456789");
  errno = 0;
  *size = strtoll(*at, NULL, 10);
  int good = digits && errno == 0 && (digits == 1 || **at != '0');
  *at += digits;
  return good;
}

static int shape_read(struct npy_file *f, const char **at)
{
  double values = 1;
  int good = word_skip(at, "(");
  blanks_skip(at);
  for (f->rank = 0; good && !word_skip(at, ")"); f->rank++) {
    long long size;
    good = f->rank < MAX_RANK && size_read(at, &size);
    values *= good ? (double)size : 1;
    if (good && f->rank < LENGTH(f->shape)) f->shape[f->rank] = size;
    blanks_skip(at);
    /* Only behind the last of several sizes is no comma needed: (3) is a number. */
    good = good && values < 0x1p60 && (word_skip(at, ",") || (**at == ')' && f->rank > 0));
    blanks_skip(at);
  }
  CHECK(good, ERR_INPUT, "the header of '%s' has a broken shape", f->path);
  return OK;
}

static int entry_read(struct npy_file *f, const char **at, unsigned *seen)
{
  static const struct {
    const char *key;
    int (*read)(struct npy_file *f, const char **at);
  } keys[] = {{"'descr'", type_read}, {"'fortran_order'", order_read}, {"'shape'", shape_read}};
  int k = 0;
  while (k < LENGTH(keys) && !word_skip(at, keys[k].key)) k++;
  CHECK(k < LENGTH(keys), ERR_INPUT,
        "the header of '%s' has '%.12s' where a key should be: descr, fortran_order or shape",
        f->path, *at);
  CHECK(!(*seen & 1u << k), ERR_INPUT, "the header of '%s' has %s twice", f->path, keys[k].key);
  *seen |= 1u << k;
  blanks_skip(at);
  CHECK(word_skip(at, ":"), ERR_INPUT, "the header of '%s' has no colon behind %s", f->path,
        keys[k].key);
  blanks_skip(at);
  TRY(keys[k].read(f, at));
  blanks_skip(at);
  CHECK(word_skip(at, ",") || **at == '}', ERR_INPUT,
        "the header of '%s' has '%.12s' behind the value of %s", f->path, *at, keys[k].key);
  blanks_skip(at);
  return OK;
}

static int header_parse(struct npy_file *f, const char *header)
{
  const char *at = header + 1; /* behind the brace */
  unsigned seen = 0;
  blanks_skip(&at);
  while (!word_skip(&at, "}")) TRY(entry_read(f, &at, &seen));
  CHECK(seen & 1, ERR_INPUT, "the header of '%s' has no descr", f->path);
  CHECK(seen & 2, ERR_INPUT, "the header of '%s' has no fortran_order", f->path);
  CHECK(seen & 4, ERR_INPUT, "the header of '%s' has no shape", f->path);
  blanks_skip(&at);
  word_skip(&at, "\n");
  CHECK(!*at, ERR_INPUT, "the header of '%s' goes on behind its dictionary", f->path);
  return OK;
}

static size_t type_bytes(enum h5_type type)
{
  return type == TYPE_F16 ? 2 : type == TYPE_F32 ? 4 : 8;
}

/* Is the file as long as its shape says? */
static int length_check(const struct npy_file *f)
{
  gidx held = f->input->facts.size - f->data;
  gidx bytes = (gidx)type_bytes(f->type);
  for (int i = 0; i < f->rank && i < LENGTH(f->shape); i++) bytes *= f->shape[i];
  CHECK(held >= bytes, ERR_INPUT,
        "'%s' is truncated: it has %lld bytes of values, its shape wants %lld", f->path,
        (long long)held, (long long)bytes);
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
  struct file_facts facts;
  char header[MAX_HEADER];
  *f = (struct npy_file){.path = path};
  TRY(file_facts_of(path, &facts));
  CHECK(S_ISREG(facts.mode), ERR_IO, "cannot open '%s': it is not a regular file", path);
  int step = watchdog_begin(ERR_IO, "opening", path), file = open(path, O_RDONLY | O_CLOEXEC);
  watchdog_end(step);
  CHECK(file >= 0, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  f->file = file + 1;
  TRY(input_file_begin(&f->input, path, file, &facts));
  TRY(header_read(f, header));
  TRY(header_parse(f, header));
  input_file_array(f->input, "", f->type, f->rank, f->shape);
  return f->rank <= LENGTH(f->shape) ? length_check(f) : OK;
}

int npy_close(struct npy_file *f)
{
  int status = input_file_end(&f->input);
  if (f->file) close(f->file - 1);
  *f = (struct npy_file){0};
  return status;
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
