/* SPDX-License-Identifier: BSD-3-Clause
 * The directory at the end of the archive says where its members are.  Large archives have 64-bit
 * numbers instead of 32-bit ones (APPNOTE of PKWARE, 4.3 and 4.5.3). */
#include "io/npz.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/npy.h"

enum {
  END_BYTES = 22, /* the end record, which follows the directory; without its comment */
  MAX_COMMENT = 65535,
  LOCATOR_BYTES = 20, /* the locator: says where the 64-bit end record is */
  WIDE_END_BYTES = 56,
  ENTRY_BYTES = 46, /* a member's entry in the directory, without name and extra field */
  LOCAL_BYTES = 30, /* the header in front of a member's bytes, without name and extra field */
  MAX_DIRECTORY = 64 << 20,
  MAX_MEMBER_NAME = 4096,
  PIECE_BYTES = 1 << 20
};
static const uint32_t WIDE = 0xffffffff; /* the number is stored elsewhere, with 64 bits */

static uint32_t number2(const unsigned char *at)
{
  return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t number4(const unsigned char *at)
{
  return number2(at) | number2(at + 2) << 16;
}

static uint64_t number8(const unsigned char *at)
{
  return number4(at) | (uint64_t)number4(at + 4) << 32;
}

#define GOOD(f, condition, ...)                                                                    \
  do {                                                                                             \
    if (!(condition)) return damage_fail((f), __VA_ARGS__);                                        \
  } while (0)

static int damage_fail(const struct flat_file *f, const char *what)
{
  FAIL(ERR_INPUT, "'%s' is damaged, or no archive of NumPy: %s" ANEW, f->path, what);
}

/* The place of the directory in the file. */
struct directory {
  gidx at, bytes;
};

/* *d <- the place from the 64-bit end record.  The locator of this record is in front of the 32-bit
 * end record, which begins at byte `end`. */
static int wide_find(const struct flat_file *f, gidx end, struct directory *d)
{
  unsigned char locator[LOCATOR_BYTES], record[WIDE_END_BYTES];
  GOOD(f, end >= LOCATOR_BYTES, "its directory is missing");
  TRY(flat_bytes(f, end - LOCATOR_BYTES, sizeof locator, locator));
  uint64_t at = number8(locator + 8);
  GOOD(f,
       number4(locator) == 0x07064b50 && at < (uint64_t)end &&
           at + WIDE_END_BYTES + LOCATOR_BYTES == (uint64_t)end,
       "the place of its directory is wrong");
  TRY(flat_bytes(f, (gidx)at, sizeof record, record));
  GOOD(f,
       number4(record) == 0x06064b50 && number8(record + 48) <= at &&
           number8(record + 40) == at - number8(record + 48),
       "the size of its directory is wrong");
  *d = (struct directory){(gidx)number8(record + 48), (gidx)number8(record + 40)};
  return OK;
}

/* *d <- the place from the end record.  The record is valid if its comment reaches exactly to the
 * end of the file. */
static int directory_find(const struct flat_file *f, struct directory *d)
{
  gidx size = f->input->facts.size, tail = imin(size, END_BYTES + MAX_COMMENT),
       i = tail - END_BYTES;
  GOOD(f, i >= 0, "it is too short");
  unsigned char *bytes = malloc((size_t)tail);
  CHECK(bytes, ERR_MEMORY, "cannot allocate %lld bytes", (long long)tail);
  int status = flat_bytes(f, size - tail, (size_t)tail, bytes);
  while (!status && i >= 0 &&
         (number4(bytes + i) != 0x06054b50 || i + END_BYTES + number2(bytes + i + 20) != tail))
    i--;
  uint32_t length = status || i < 0 ? 0 : number4(bytes + i + 12);
  uint32_t begin = status || i < 0 ? 0 : number4(bytes + i + 16);
  free(bytes);
  TRY(status);
  GOOD(f, i >= 0, "it has no directory: it is truncated");
  gidx end = size - tail + i;
  if (length == WIDE || begin == WIDE) return wide_find(f, end, d);
  *d = (struct directory){begin, length};
  GOOD(f, (gidx)begin + length <= end, "the size of its directory is wrong");
  return OK;
}

/* A member, as its directory entry describes it. */
struct member {
  char *name; /* no 0 byte at its end */
  uint32_t name_bytes, checksum;
  uint64_t bytes, stored, local; /* its size, its size in the archive, offset of its header */
};

/* Read the 64-bit numbers from the extra field after the name. */
static int wide_read(const struct flat_file *f, const unsigned char *extra, uint32_t bytes,
                     struct member *m)
{
  uint64_t *const numbers[] = {&m->bytes, &m->stored, &m->local};
  for (uint32_t at = 0; at < bytes;) {
    GOOD(f, bytes - at >= 4 && number2(extra + at + 2) <= bytes - at - 4,
         "its directory is broken");
    uint32_t end = at + 4 + number2(extra + at + 2), is_wide = number2(extra + at) == 1;
    at += 4;
    for (int i = 0; i < LENGTH(numbers) && is_wide; i++)
      if (*numbers[i] == WIDE) {
        GOOD(f, end - at >= 8, "its directory is broken");
        *numbers[i] = number8(extra + at);
        at += 8;
      }
    at = end;
  }
  return OK;
}

/* Read the directory entry at *at, and move *at past it. */
static int entry_read(const struct flat_file *f, unsigned char **at, const unsigned char *end,
                      struct member *m)
{
  unsigned char *e = *at;
  GOOD(f, end - e >= ENTRY_BYTES && number4(e) == 0x02014b50, "its directory is broken");
  uint32_t name = number2(e + 28), extra = number2(e + 30), more = number2(e + 32);
  GOOD(f, end - e - ENTRY_BYTES >= (gidx)name + extra + more, "its directory is broken");
  *m = (struct member){.name = (char *)e + ENTRY_BYTES,
                       .name_bytes = name,
                       .checksum = number4(e + 16),
                       .bytes = number4(e + 24),
                       .stored = number4(e + 20),
                       .local = number4(e + 42)};
  TRY(wide_read(f, e + ENTRY_BYTES + name, extra, m));
  *at = e + ENTRY_BYTES + name + extra + more;
  CHECK(!(number2(e + 8) & 1), ERR_INPUT, "'%.*s' of '%s' is encrypted: save it without a password",
        (int)name, m->name, f->path);
  CHECK(number2(e + 10) == 0, ERR_INPUT,
        "'%.*s' of '%s' is compressed, which is not read here; save it once as it is: python3 -c "
        "\"import numpy; a = dict(numpy.load('%s')); numpy.savez('%s', **a)\"",
        (int)name, m->name, f->path, f->path, f->path);
  GOOD(f, m->bytes == m->stored, "a member has two sizes");
  return OK;
}

/* *begin <- the first byte of a member, after its local header. */
static int member_find(const struct flat_file *f, const struct member *m, gidx end, gidx *begin)
{
  unsigned char head[LOCAL_BYTES];
  char name[MAX_MEMBER_NAME];
  GOOD(f, m->name_bytes <= MAX_MEMBER_NAME, "the name of a member is too long");
  GOOD(f, m->local < (uint64_t)end && end - (gidx)m->local >= LOCAL_BYTES + m->name_bytes,
       "a member is outside of it");
  TRY(flat_bytes(f, (gidx)m->local, sizeof head, head));
  TRY(flat_bytes(f, (gidx)m->local + LOCAL_BYTES, m->name_bytes, name));
  GOOD(f,
       number4(head) == 0x04034b50 && number2(head + 26) == m->name_bytes &&
           memcmp(name, m->name, m->name_bytes) == 0 && number2(head + 8) == 0,
       "a member is not what its directory says");
  *begin = (gidx)m->local + LOCAL_BYTES + m->name_bytes + number2(head + 28);
  GOOD(f, *begin <= end && m->bytes <= (uint64_t)(end - *begin), "a member is truncated");
  return OK;
}

/* Add bytes to *sum, the CRC-32 of ZIP. */
static void checksum_add(const uint32_t *table, const unsigned char *bytes, gidx count,
                         uint32_t *sum)
{
  uint32_t s = *sum;
  for (gidx i = 0; i < count; i++) s = table[(s ^ bytes[i]) & 255] ^ s >> 8;
  *sum = s;
}

static int checksum_check(const struct flat_file *f, const struct member *m, gidx begin)
{
  uint32_t table[256], sum = 0xffffffff;
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
  }
  unsigned char *piece = malloc(PIECE_BYTES);
  CHECK(piece, ERR_MEMORY, "cannot allocate %d bytes", PIECE_BYTES);
  int status = OK;
  for (gidx at = 0, n; at < (gidx)m->bytes && !status; at += n) {
    n = imin((gidx)m->bytes - at, PIECE_BYTES);
    status = flat_bytes(f, begin + at, (size_t)n, piece);
    if (!status) checksum_add(table, piece, n, &sum);
  }
  free(piece);
  TRY(status);
  CHECK(~sum == m->checksum, ERR_INPUT,
        "'%.*s' of '%s' is damaged: its checksum is %08x, not %08x as the archive says" ANEW,
        (int)m->name_bytes, m->name, f->path, ~sum, m->checksum);
  return OK;
}

/* Make a member a tensor.  The array that its header describes must fill it exactly. */
static int tensor_fill(const struct flat_file *f, const struct member *m, gidx begin,
                       struct tensor *t)
{
  static const char *const types[] = {
      [TYPE_F16] = "F16", [TYPE_F32] = "F32", [TYPE_F64] = "F64", [TYPE_OTHER] = NULL};
  struct flat_file view = *f;
  gidx end = begin + (gidx)m->bytes;
  char dtype[16];
  TRY(npy_header(&view, begin, dtype));
  GOOD(f, view.data <= end, "the header of a member is longer than it");
  m->name[m->name_bytes - 4] = '\0'; /* without .npy */
  *t = (struct tensor){.name = m->name, .rank = view.rank, .begin = view.data, .end = end};
  memcpy(t->shape, view.shape, sizeof t->shape);
  t->dtype = view.swap ? "big-endian" : types[view.type] ? types[view.type] : "no float";
  double bytes = view.type == TYPE_F64 ? 8 : view.type == TYPE_F32 ? 4 : 2;
  for (int r = 0; r < t->rank && r < LENGTH(t->shape); r++) bytes *= (double)t->shape[r];
  CHECK(view.type == TYPE_OTHER || t->rank > LENGTH(t->shape) ||
            bytes == (double)(t->end - t->begin),
        ERR_INPUT, "'%s' of '%s' is damaged: it has %lld bytes of values, its shape wants %.0f",
        t->name, f->path, (long long)(t->end - t->begin), bytes);
  return OK;
}

static int is_npy(const struct member *m)
{
  return m->name_bytes > 4 && memcmp(m->name + m->name_bytes - 4, ".npy", 4) == 0 &&
         !memchr(m->name, '\0', m->name_bytes);
}

/* Check that members do not overlap, and that no name occurs twice. */
static int members_check(const struct flat_file *f, const struct tensor_table *t)
{
  for (gidx i = 0; i < t->count; i++)
    for (gidx j = 0; j < i; j++) {
      const struct tensor *a = &t->list[i], *b = &t->list[j];
      GOOD(f, a->begin >= b->end || b->begin >= a->end, "two members overlap");
      CHECK(strcmp(a->name, b->name) != 0, ERR_INPUT, "'%s' is damaged: it has '%s' twice" ANEW,
            f->path, a->name);
    }
  return OK;
}

static int members_read(const struct flat_file *f, struct tensor_table *t,
                        const struct directory *d)
{
  unsigned char *at = (unsigned char *)t->header, *end = at + d->bytes;
  while (at < end) {
    struct member m;
    gidx begin;
    TRY(entry_read(f, &at, end, &m));
    if (!is_npy(&m)) continue;
    GOOD(f, t->count < t->capacity, "it has too many members");
    TRY(member_find(f, &m, d->at, &begin));
    TRY(checksum_check(f, &m, begin));
    TRY(tensor_fill(f, &m, begin, &t->list[t->count++]));
  }
  return members_check(f, t);
}

int npz_open(struct flat_file *f, struct tensor_table *t, const char *path)
{
  enum { MAX_MEMBERS = 1024 };
  struct directory d = {0};
  *t = (struct tensor_table){.capacity = MAX_MEMBERS};
  TRY(flat_open(f, path));
  TRY(directory_find(f, &d));
  GOOD(f, d.bytes <= MAX_DIRECTORY, "its directory is too large");
  t->header = malloc((size_t)d.bytes + 1);
  t->list = calloc(MAX_MEMBERS, sizeof *t->list);
  CHECK(t->header && t->list, ERR_MEMORY, "cannot allocate %lld bytes", (long long)d.bytes);
  TRY(flat_bytes(f, d.at, (size_t)d.bytes, t->header));
  return members_read(f, t, &d);
}
