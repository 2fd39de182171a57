/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays are read in blocks of about a megabyte, so that a check needs little memory. */
#include "io/check.h"

#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/text.h"

void check_note(const struct verify *v, const char *format, ...)
{
  char text[1024];
  va_list args;
  if (!v->out) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  text_print(v->out, "%s\n", text);
}

int check_text(const struct verify *v, const char *object, const char *name, const char *wanted)
{
  char text[512];
  TRY(h5_read_text(v->file, object, name, text, sizeof text));
  CHECK(strcmp(text, wanted) == 0, ERR_INPUT, "attribute '%s' of '%s' is '%s', not '%s'" ANEW, name,
        object, text, wanted);
  return OK;
}

enum { BLOCK_VALUES = 1 << 18 };

static int blocks_run(const struct verify *v, const struct h5_array *a, struct arena *arena,
                      int (*check)(const struct verify *, const struct value_block *))
{
  struct value_block b = {.array = a, .width = 1};
  float *values;
  for (int i = 1; i < a->rank; i++) b.width *= a->shape[i];
  gidx rows = b.width < BLOCK_VALUES && b.width > 0 ? BLOCK_VALUES / b.width : 1;
  CHECK(a->rank <= LENGTH(a->shape) && b.width <= INT32_MAX, ERR_INPUT,
        "'%s' of '%s' has entries of %lld values" ANEW, a->object, a->path, (long long)b.width);
  TRY(arena_alloc(arena, &values, rows * b.width, sizeof *values));
  b.values = values;
  for (; b.first < a->shape[0]; b.first += rows) {
    b.count = imin(rows, a->shape[0] - b.first);
    TRY(h5_array_read(a, b.first, b.count, TYPE_F32, values));
    TRY(check(v, &b));
  }
  return OK;
}

int check_blocks(const struct verify *v, const char *object,
                 int (*check)(const struct verify *v, const struct value_block *block))
{
  struct arena arena = {0};
  struct h5_array a = {0};
  int status = h5_array_open(v->file, object, &a);
  if (status == OK) status = blocks_run(v, &a, &arena, check);
  h5_array_close(&a);
  arena_free(&arena);
  return status;
}
