/* SPDX-License-Identifier: BSD-3-Clause
 * Headers are padded with blanks, so that values begin at a multiple of 8 bytes; of 64 in .npy. */
#include "io/tensors_write.h"

#include <string.h>

#include "base/half.h"
#include "base/num.h"
#include "base/status.h"
#include "io/temporary.h"

enum { HEADER_BYTES = 4096, PIECE = 4096 };

static gidx tensor_count(const struct tensor_out *t)
{
  gidx count = 1;
  for (int i = 0; i < t->rank; i++) count *= t->shape[i];
  return count;
}

static int type_bytes(const char *dtype)
{
  return !strcmp(dtype, "F64") ? 8 : !strcmp(dtype, "F32") ? 4 : 2;
}

/* The stored bits of value i. */
static uint64_t bits_at(const struct tensor_out *t, gidx i)
{
  uint64_t wide = 0;
  uint32_t bits;
  if (t->reals) {
    memcpy(&wide, &t->reals[i], sizeof wide);
    return wide;
  }
  float value = t->values[t->turned ? i % t->shape[1] * t->shape[0] + i / t->shape[1] : i];
  if (!strcmp(t->dtype, "F16")) return f16_bits(value);
  if (!strcmp(t->dtype, "BF16")) return bf16_bits(value);
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static int values_write(FILE *out, const char *path, const struct tensor_out *t)
{
  unsigned char piece[PIECE * 8];
  int width = type_bytes(t->dtype);
  gidx count = tensor_count(t);
  for (gidx done = 0; done < count; done += PIECE) {
    unsigned char *at = piece;
    gidx end = imin(count, done + PIECE);
    for (gidx i = done; i < end; i++) {
      uint64_t bits = bits_at(t, i);
      for (int b = 0; b < width; b++) *at++ = (unsigned char)(bits >> 8 * b);
    }
    TRY(temporary_write(out, path, piece, (size_t)(at - piece)));
  }
  return OK;
}

/* text <- the shape, with `between` between the sizes, such as "16, 24". */
static void shape_print(const struct tensor_out *t, const char *between, char *text)
{
  *text = '\0';
  for (int i = 0; i < t->rank; i++)
    text += sprintf(text, "%s%lld", i ? between : "", (long long)t->shape[i]);
}

int tensors_write(FILE *out, const char *path, const struct tensor_out *list, int count)
{
  char header[HEADER_BYTES + 8], shape[80];
  unsigned char length[8];
  gidx at = 0;
  int used = 0;
  for (int i = 0; i < count; i++) {
    gidx bytes = tensor_count(&list[i]) * type_bytes(list[i].dtype);
    shape_print(&list[i], ",", shape);
    used += snprintf(header + used, (size_t)(HEADER_BYTES - used),
                     "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}",
                     i ? "," : "{", list[i].name, list[i].dtype, shape, (long long)at,
                     (long long)(at + bytes));
    CHECK(used < HEADER_BYTES - 1, ERR_INTERNAL, "the header of '%s' is too long", path);
    at += bytes;
  }
  header[used++] = '}';
  while (used % 8) header[used++] = ' ';
  for (int b = 0; b < 8; b++) length[b] = (unsigned char)((uint64_t)used >> 8 * b);
  TRY(temporary_write(out, path, length, sizeof length));
  TRY(temporary_write(out, path, header, (size_t)used));
  for (int i = 0; i < count; i++) TRY(values_write(out, path, &list[i]));
  return OK;
}

int npy_write(FILE *out, const char *path, const struct tensor_out *t)
{
  char header[HEADER_BYTES], shape[80];
  shape_print(t, ", ", shape);
  int used =
      10 + sprintf(header + 10, "{'descr': '<f%d', 'fortran_order': False, 'shape': (%s%s), }",
                   type_bytes(t->dtype), shape, t->rank == 1 ? "," : "");
  while (used % 64 != 63) header[used++] = ' ';
  header[used++] = '\n';
  memcpy(header, "\x93NUMPY\x01\x00", 8);
  header[8] = (char)((used - 10) & 255);
  header[9] = (char)((used - 10) >> 8);
  TRY(temporary_write(out, path, header, (size_t)used));
  return values_write(out, path, t);
}
