/* SPDX-License-Identifier: BSD-3-Clause
 * Messages name the object, its file, and both numbers that disagree. */
#include "io/capture_objects.h"

#include <math.h>
#include <stdio.h>

#include "base/status.h"
#include "io/inputs.h"
#include "io/schema.h"

#define MAX_SEQUENCES (INT64_C(1) << 40)

int capture_floats_open(const struct h5_file *f, const char *object, int rank, const char *shape,
                        struct h5_array *a)
{
  int there;
  TRY(h5_exists(f, object, &there));
  CHECK(there, ERR_INPUT, "'%s' has no '%s' %s: it is no capture (doc/formats.md, Captures)",
        f->path, object, shape);
  TRY(h5_array_open(f, object, a));
  h5_array_stream(a);
  const char *type = a->type == TYPE_I32 || a->type == TYPE_I64 ? "integers" : type_name(a->type);
  CHECK(a->type == TYPE_F16 || a->type == TYPE_BF16 || a->type == TYPE_F32, ERR_INPUT,
        "'%s' of '%s' holds %s: store float16, float32, or bfloat16 as uint16 with the attribute "
        "dtype = \"bfloat16\"",
        object, f->path, type);
  CHECK(!rank || a->rank == rank, ERR_INPUT, "'%s' of '%s' has %d dimensions, not those of %s",
        object, f->path, a->rank, shape);
  for (int i = 1; i < a->rank && i < H5_RANK; i++)
    CHECK(a->shape[i] >= 1 && a->shape[i] <= INT32_MAX, ERR_INPUT,
          "dimension %d of '%s' of '%s' is %lld", i, object, f->path, (long long)a->shape[i]);
  return OK;
}

int capture_integers_read(const struct h5_file *f, struct arena *arena, const char *object,
                          int rank, enum h5_type as, struct h5_array *a, void *values)
{
  TRY(h5_array_open(f, object, a));
  int is_right = a->rank == rank && (a->type == TYPE_I32 || (a->type == TYPE_I64 && as == a->type));
  CHECK(is_right, ERR_INPUT, "'%s' of '%s' is no array of %s with %d dimensions", object, f->path,
        type_name(as), rank);
  gidx count = a->shape[0] * (rank > 1 ? a->shape[1] : 1);
  void **out = values;
  TRY(arena_alloc(arena, out, count, as == TYPE_I32 ? sizeof(idx) : sizeof(gidx)));
  return h5_array_read(a, 0, a->shape[0], as, *out);
}

int capture_starts_read(const struct h5_file *f, struct arena *arena, const char *object, gidx n,
                        gidx *sequences, gidx **start)
{
  struct h5_array a = {0};
  int status = capture_integers_read(f, arena, object, 1, TYPE_I64, &a, start);
  gidx count = a.shape[0];
  h5_array_close(&a);
  TRY(status);
  CHECK(count >= 2 && count <= MAX_SEQUENCES, ERR_INPUT,
        "'%s' of '%s' has %lld entries: one more than there are sequences is needed", object,
        f->path, (long long)count);
  gidx *s = *start;
  CHECK(s[0] == 0 && s[count - 1] == n, ERR_INPUT,
        "'%s' of '%s' goes from %lld to %lld, not from 0 to %lld", object, f->path, (long long)s[0],
        (long long)s[count - 1], (long long)n);
  for (gidx i = 1; i < count; i++)
    CHECK(s[i] >= s[i - 1], ERR_INPUT, "'%s' of '%s' falls at entry %lld, from %lld to %lld",
          object, f->path, (long long)i, (long long)s[i - 1], (long long)s[i]);
  *sequences = count - 1;
  return OK;
}

int capture_sequences_read(const struct h5_file *f, struct arena *arena, const char *object, gidx n,
                           gidx *sequences, gidx **start)
{
  int there;
  TRY(h5_exists(f, object, &there));
  if (there) return capture_starts_read(f, arena, object, n, sequences, start);
  *sequences = 1;
  TRY(arena_alloc(arena, start, 2, sizeof **start));
  (*start)[1] = n;
  return OK;
}

int capture_number_read(const struct h5_file *f, const char *name, real *value)
{
  int there;
  TRY(h5_attribute_exists(f, "/", name, &there));
  if (there) TRY(h5_read_number(f, "/", name, value));
  CHECK(isfinite(*value), ERR_INPUT, "'%s' of '%s' is %g", name, f->path, *value);
  return OK;
}

int capture_text_read(const struct h5_file *f, const char *name, char *text, int capacity)
{
  int there;
  *text = 0;
  TRY(h5_attribute_exists(f, "/", name, &there));
  return there ? h5_read_text(f, "/", name, text, capacity) : OK;
}

int capture_mixer_read(const struct h5_file *f, char *text, int capacity)
{
  TRY(capture_text_read(f, "mixer", text, capacity));
  if (!*text) snprintf(text, (size_t)capacity, "attention");
  return OK;
}

int capture_mixer_find(const char *name, char *text, int capacity)
{
  char path[4096];
  struct h5_file f;
  TRY(input_of_folder(name, "capture.h5", path));
  TRY(h5_open(&f, path));
  return h5_close_after(&f, capture_mixer_read(&f, text, capacity));
}
