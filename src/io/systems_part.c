/* SPDX-License-Identifier: BSD-3-Clause
 * A part has four attributes; a complete result has one. */
#include "io/systems_part.h"

#include <string.h>

#include "base/status.h"
#include "io/check.h"
#include "io/identity.h"

int systems_part_is_whole(const struct systems_part *part)
{
  return part->systems == part->total;
}

int systems_part_write(const struct h5_file *f, const struct file_kind *kind,
                       const struct systems_part *part)
{
  gidx mark, fingerprint;
  memcpy(&mark, &part->mark, sizeof mark);
  memcpy(&fingerprint, &part->fingerprint, sizeof fingerprint);
  if (systems_part_is_whole(part)) return h5_attribute_long(f, INPUTS_GROUP, "mark", mark);
  TRY(h5_attribute_text(f, "/", "kind", kind->name));
  TRY(h5_attribute_long(f, "/part", "systems", part->systems));
  TRY(h5_attribute_long(f, "/part", "systems_total", part->total));
  TRY(h5_attribute_long(f, "/part", "mark", mark));
  return h5_attribute_long(f, "/part", "fingerprint", fingerprint);
}

int systems_part_is(const struct h5_file *f, const struct file_kind *kind, int *is_part)
{
  *is_part = 0;
  return f->version ? h5_attribute_is(f, "/", "kind", kind->name, is_part) : OK;
}

/* *part <- the mark of a complete result; all else in *part is 0. */
static int whole_read(const struct h5_file *f, struct systems_part *part)
{
  int there;
  gidx mark;
  *part = (struct systems_part){0};
  TRY(h5_exists(f, INPUTS_GROUP, &there));
  if (there) TRY(h5_attribute_exists(f, INPUTS_GROUP, "mark", &there));
  CHECK(there, ERR_INPUT, "'%s' is complete, and does not say what it was made from" ANEW, f->path);
  TRY(h5_read_long(f, INPUTS_GROUP, "mark", &mark));
  memcpy(&part->mark, &mark, sizeof mark);
  return OK;
}

int systems_part_read(const struct h5_file *f, const struct file_kind *kind,
                      const struct file_kind *whole, struct systems_part *part)
{
  int is_part, is_whole = 0;
  gidx mark, fingerprint;
  TRY(systems_part_is(f, kind, &is_part));
  if (whole) TRY(systems_part_is(f, whole, &is_whole));
  if (is_whole) return whole_read(f, part);
  CHECK(is_part, ERR_INPUT, "'%s' was not left by a run that was stopped" ANEW, f->path);
  TRY(h5_read_long(f, "/part", "systems", &part->systems));
  TRY(h5_read_long(f, "/part", "systems_total", &part->total));
  TRY(h5_read_long(f, "/part", "mark", &mark));
  TRY(h5_read_long(f, "/part", "fingerprint", &fingerprint));
  CHECK(part->systems >= 1 && part->systems < part->total, ERR_INPUT,
        "'%s' says that it has %lld of %lld systems" ANEW, f->path, (long long)part->systems,
        (long long)part->total);
  memcpy(&part->mark, &mark, sizeof mark);
  memcpy(&part->fingerprint, &fingerprint, sizeof fingerprint);
  return OK;
}

int systems_part_check(const struct verify *v, const struct file_kind *kind)
{
  struct systems_part part;
  if (strcmp(v->kind, kind->name) != 0) return OK;
  TRY(systems_part_read(v->file, kind, NULL, &part));
  CHECK(part.systems == dimension_value(&v->dims, "B"), ERR_INPUT,
        "'/part' says that there are %lld systems, there are %lld" ANEW, (long long)part.systems,
        (long long)dimension_value(&v->dims, "B"));
  check_note(v, "part      the first %lld of %lld systems", (long long)part.systems,
             (long long)part.total);
  return OK;
}

int systems_part_show(const struct h5_file *f, const struct file_kind *kind, FILE *out)
{
  struct systems_part part;
  int is_part;
  TRY(systems_part_is(f, kind, &is_part));
  if (!is_part) return OK;
  TRY(systems_part_read(f, kind, NULL, &part));
  fprintf(out, "\na part: the first %lld of %lld systems; --resume continues it\n",
          (long long)part.systems, (long long)part.total);
  return OK;
}
