/* SPDX-License-Identifier: BSD-3-Clause
 * A strict reader of the header.  The header is the text of a Python dictionary with three known
 * keys, each once, in any order.  Each function that reads a value moves *at past it. */
#include "io/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/format.h"

enum { MAX_HEADER = 1 << 16, MAX_RANK = 8 };

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

/* Read fortran_order, and refuse Fortran order. */
static int order_read(struct flat_file *f, const char **at)
{
  int is_fortran = word_skip(at, "True");
  CHECK(is_fortran || word_skip(at, "False"), ERR_INPUT,
        "the header of '%s' has a fortran_order that is neither True nor False" ANEW, f->path);
  CHECK(!is_fortran, ERR_INPUT,
        "'%s' is in Fortran order: save it with numpy.save(name, numpy.ascontiguousarray(x))",
        f->path);
  return OK;
}

/* Read a type that is a single word.  A type with several fields is refused at once. */
static int type_read(struct flat_file *f, const char **at)
{
  const char *descr = *at, *letters = descr + 1;
  int length = descr[0] == '\'' ? (int)strcspn(letters, "'") : 0;
  CHECK(length && letters[length], ERR_INPUT,
        "'%s' holds values of type %.12s: save it as float16, float32 or float64, for instance "
        "with x.astype('f4')",
        f->path, descr);
  int known =
      length == 3 && strchr("<>=|", letters[0]) && letters[1] == 'f' && strchr("248", letters[2]);
  const unsigned short probe = 1;
  int is_little = *(const unsigned char *)&probe;
  f->swap = known && letters[0] == (is_little ? '>' : '<');
  f->type = !known              ? TYPE_OTHER
            : letters[2] == '2' ? TYPE_F16
            : letters[2] == '4' ? TYPE_F32
                                : TYPE_F64;
  *at = letters + length + 1;
  return OK;
}

/* Read one size of a shape: digits without a sign and without leading zeros.  Python 2 added an L,
 * as in 600L. */
static int size_read(const char **at, long long *size)
{
  size_t digits = strspn(*at, "0123456789");
  errno = 0;
  *size = strtoll(*at, NULL, 10);
  int good = digits && errno == 0 && (digits == 1 || **at != '0');
  *at += digits;
  if (good) word_skip(at, "L");
  return good;
}

static int shape_read(struct flat_file *f, const char **at)
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
    /* Only the last of several sizes needs no comma: (3) is a number, not a shape. */
    good = good && values < 0x1p60 && (word_skip(at, ",") || (**at == ')' && f->rank > 0));
    blanks_skip(at);
  }
  CHECK(good, ERR_INPUT, "the header of '%s' has a broken shape" ANEW, f->path);
  return OK;
}

static int entry_read(struct flat_file *f, const char **at, unsigned *seen)
{
  static const struct {
    const char *key;
    int (*read)(struct flat_file *f, const char **at);
  } keys[] = {{"'descr'", type_read}, {"'fortran_order'", order_read}, {"'shape'", shape_read}};
  int k = 0;
  while (k < LENGTH(keys) && !word_skip(at, keys[k].key)) k++;
  CHECK(k < LENGTH(keys), ERR_INPUT,
        "the header of '%s' has '%.12s' where a key should be: descr, fortran_order or shape" ANEW,
        f->path, *at);
  CHECK(!(*seen & 1u << k), ERR_INPUT, "the header of '%s' has %s twice" ANEW, f->path,
        keys[k].key);
  *seen |= 1u << k;
  blanks_skip(at);
  CHECK(word_skip(at, ":"), ERR_INPUT, "the header of '%s' has no colon behind %s" ANEW, f->path,
        keys[k].key);
  blanks_skip(at);
  TRY(keys[k].read(f, at));
  blanks_skip(at);
  CHECK(word_skip(at, ",") || **at == '}', ERR_INPUT,
        "the header of '%s' has '%.12s' behind the value of %s" ANEW, f->path, *at, keys[k].key);
  blanks_skip(at);
  return OK;
}

static int header_parse(struct flat_file *f, const char *header)
{
  const char *at = header + 1; /* after the brace */
  unsigned seen = 0;
  blanks_skip(&at);
  while (!word_skip(&at, "}")) TRY(entry_read(f, &at, &seen));
  CHECK(seen & 1, ERR_INPUT, "the header of '%s' has no descr" ANEW, f->path);
  CHECK(seen & 2, ERR_INPUT, "the header of '%s' has no fortran_order" ANEW, f->path);
  CHECK(seen & 4, ERR_INPUT, "the header of '%s' has no shape" ANEW, f->path);
  blanks_skip(&at);
  word_skip(&at, "\n");
  CHECK(!*at, ERR_INPUT, "the header of '%s' goes on behind its dictionary" ANEW, f->path);
  return OK;
}

/* header <- the text of the header.  In the file, magic, version, and the length of the header (2
 * bytes in version 1, otherwise 4) come first. */
static int header_read(struct flat_file *f, gidx at, char *header)
{
  unsigned char head[12] = {0};
  TRY(flat_bytes(f, at, 10, head));
  int is_npy = memcmp(head, "\x93NUMPY", 6) == 0;
  if (!is_npy && at == 0) TRY(format_check(f->path)); /* at > 0: the array is in an archive */
  CHECK(is_npy, ERR_INPUT, "'%s' is not a NumPy file" ANEW, f->path);
  CHECK(head[6] >= 1 && head[6] <= 3, ERR_INPUT,
        "'%s' has version %d of the NumPy format, 1 to 3 are read" ANEW, f->path, head[6]);
  if (head[6] > 1) TRY(flat_bytes(f, at + 10, 2, head + 10));
  size_t length = head[8] | (size_t)head[9] << 8 | (size_t)head[10] << 16 | (size_t)head[11] << 24;
  CHECK(length < MAX_HEADER, ERR_INPUT, "'%s' is damaged: its header has %zu bytes" ANEW, f->path,
        length);
  f->data = at + (head[6] > 1 ? 12 : 10) + (gidx)length;
  TRY(flat_bytes(f, f->data - (gidx)length, length, header));
  header[length] = '\0';
  CHECK(header[0] == '{' && strchr(header, '}') && strlen(header) == length, ERR_INPUT,
        "'%s' is damaged: its header is not a dictionary" ANEW, f->path);
  return OK;
}

int npy_header(struct flat_file *f, gidx at, char *dtype)
{
  char header[MAX_HEADER];
  TRY(header_read(f, at, header));
  TRY(header_parse(f, header));
  const char *word = strchr(strstr(header, "'descr'") + 7, '\'') + 1;
  snprintf(dtype, 16, "%.*s", (int)strcspn(word, "'"), word);
  return OK;
}

/* numpy.save() to an open file appends arrays, but numpy.load() reads only the first.  So a file
 * with several is refused. */
static int single_check(const struct flat_file *f)
{
  char magic[6] = "";
  if (f->rank > LENGTH(f->shape)) return OK;
  gidx end = f->data + flat_array_bytes(f);
  if (f->input->facts.size - end < (gidx)sizeof magic) return OK;
  TRY(flat_bytes(f, end, sizeof magic, magic));
  CHECK(memcmp(magic, "\x93NUMPY", sizeof magic) != 0, ERR_INPUT,
        "'%s' has several arrays, one behind the other: save each as a file of its own, or all as "
        "one by numpy.concatenate()",
        f->path);
  return OK;
}

int npy_open(struct flat_file *f, const char *path)
{
  char dtype[16];
  TRY(flat_open(f, path));
  TRY(npy_header(f, 0, dtype));
  CHECK(f->type != TYPE_OTHER, ERR_INPUT,
        "'%s' holds values of type %s: save it as float16, float32 or float64, for instance with "
        "x.astype('f4')",
        f->path, dtype);
  TRY(flat_array(f, ""));
  return single_check(f);
}
