/* SPDX-License-Identifier: BSD-3-Clause
 * Each read is a step of the watchdog; values are converted in pieces of a megabyte. */
#include "io/flat_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/retry.h"
#include "base/status.h"
#include "base/watchdog.h"

enum { STEP_BYTES = 64 << 20, PIECE_BYTES = 1 << 20 };

int flat_open(struct flat_file *f, const char *path)
{
  struct file_facts facts;
  *f = (struct flat_file){.path = path};
  TRY(file_facts_of(path, &facts));
  CHECK(S_ISREG(facts.mode), ERR_IO, "cannot open '%s': it is not a regular file", path);
  int step = watchdog_begin(ERR_IO, "opening", path), file = retry_open(path, O_RDONLY | O_CLOEXEC);
  watchdog_end(step);
  CHECK(file >= 0, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  f->file = file + 1;
  TRY(input_file_begin(&f->input, path, file, &facts));
  return OK;
}

int flat_close(struct flat_file *f)
{
  int status = input_file_end(&f->input);
  if (f->file) close(f->file - 1);
  *f = (struct flat_file){0};
  return status;
}

/* Report that the file ends at byte `at`, although more is needed. */
static int end_fail(const struct flat_file *f, gidx at)
{
  CHECK(at > 0, ERR_INPUT, "'%s' is empty: copy it again, or make it anew", f->path);
  FAIL(ERR_INPUT, "'%s' is truncated at byte %lld" ANEW, f->path, (long long)at);
}

int flat_bytes(const struct flat_file *f, gidx at, size_t bytes, void *out)
{
  input_file_read(f->input);
  for (size_t done = 0; done < bytes;) {
    size_t part = bytes - done < STEP_BYTES ? bytes - done : STEP_BYTES;
    int step = watchdog_begin(ERR_IO, "reading", f->path);
    ssize_t got = retry_pread(f->file - 1, (char *)out + done, part, (off_t)at + (off_t)done);
    watchdog_end(step);
    CHECK(got >= 0, ERR_IO, "cannot read '%s': %s", f->path, strerror(errno));
    if (got == 0) return input_file_failed(f->input, end_fail(f, at + (gidx)done));
    done += (size_t)got;
  }
  return OK;
}

static size_t type_bytes(enum h5_type type)
{
  return type == TYPE_F16 || type == TYPE_BF16 ? 2 : type == TYPE_F32 ? 4 : 8;
}

gidx flat_array_bytes(const struct flat_file *f)
{
  gidx bytes = (gidx)type_bytes(f->type);
  for (int i = 0; i < f->rank; i++) bytes *= f->shape[i];
  return bytes;
}

int flat_array(const struct flat_file *f, const char *object)
{
  input_file_array(f->input, object, f->type, f->rank, f->shape);
  if (f->rank > LENGTH(f->shape)) return OK;
  gidx held = f->input->facts.size - f->data, bytes = flat_array_bytes(f);
  CHECK(held >= bytes, ERR_INPUT,
        "'%s' is truncated: it has %lld bytes of values, its shape wants %lld", f->path,
        (long long)held, (long long)bytes);
  return OK;
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

int flat_read(const struct flat_file *f, gidx first, gidx count, float *out)
{
  size_t width = type_bytes(f->type);
  gidx row = 1;
  for (int i = 1; i < f->rank; i++) row *= f->shape[i];
  CHECK(first >= 0 && count >= 0 && f->rank > 0 && first <= f->shape[0] - count, ERR_INTERNAL,
        "rows %lld + %lld of '%s' are beyond its end", (long long)first, (long long)count, f->path);
  gidx at = f->data + first * row * (gidx)width, values = count * row;
  if (f->type == TYPE_F32) {
    TRY(flat_bytes(f, at, (size_t)values * width, out));
    if (f->swap) swap_bytes((unsigned char *)out, values, width);
    return OK;
  }
  gidx piece = imin(PIECE_BYTES / (gidx)width, values);
  void *buffer = malloc((size_t)piece * width + 1);
  CHECK(buffer, ERR_MEMORY, "cannot allocate %zu bytes", (size_t)piece * width);
  int status = OK;
  for (gidx done = 0; done < values && status == OK; done += piece) {
    gidx n = imin(piece, values - done);
    status = flat_bytes(f, at + done * (gidx)width, (size_t)n * width, buffer);
    if (status == OK && f->swap) swap_bytes(buffer, n, width);
    if (status == OK) h5_to_f32(f->type, buffer, n, out + done);
  }
  free(buffer);
  return status;
}
