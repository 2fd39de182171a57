/* SPDX-License-Identifier: BSD-3-Clause
 * Reading turns the lists into the class of each atom, and then into lists again.  So the order of
 * the lists in a file does not matter. */
#include "io/classes.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "io/check.h"

enum { SLACK_BYTES = 4 << 20 };

static const struct object_row object_rows[] = {
    {"/color", TYPE_I32, "K", 1, "class of each atom; -1: in no row's support"},
    {"/class_offsets", TYPE_I64, "C+1", 1, "where the atoms of each class begin"},
    {"/class_atoms", TYPE_I32, "placed", 1, "atoms of each class, ascending"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

int classes_write(const char *path, const struct classes *c, gidx lower_bound,
                  const struct identity *inputs, const struct run_fact *facts, int n_facts)
{
  static struct result_file r;
  TRY(result_create(&r, path, &classes_kind, 8 * ((gidx)c->k + 2 * (gidx)c->count) + SLACK_BYTES));
  TRY(h5_attribute_long(&r.h5, "/", "lower_bound", lower_bound));
  TRY(identity_write(&r.h5, INPUTS_GROUP, inputs));
  TRY(object_write_vector(&r.h5, "/color", c->k, c->color));
  TRY(object_write_vector(&r.h5, "/class_offsets", (gidx)c->count + 1, c->start));
  TRY(object_write_vector(&r.h5, "/class_atoms", c->start[c->count], c->atoms));
  TRY(result_publish(&r, facts, n_facts));
  return OK;
}

/* *(T **)out <- a whole vector of the file, from the arena; *count <- its entries. */
static int vector_read(const struct h5_file *f, const char *object, enum h5_type type,
                       struct arena *arena, gidx *count, void *out)
{
  struct h5_array a;
  void *values;
  TRY(h5_array_open(f, object, &a));
  int status = OK;
  if (a.rank != 1 || (a.type != TYPE_I32 && a.type != type))
    status = status_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' of '%s' is not a vector of %s" ANEW,
                         object, f->path, type_name(type));
  *count = a.shape[0];
  if (!status) status = arena_alloc(arena, &values, *count, type == TYPE_I64 ? 8 : 4);
  if (!status) status = h5_array_read(&a, 0, *count, type, values);
  if (!status) memcpy(out, &values, sizeof values);
  h5_array_close(&a);
  return status;
}

/* The lists of a file: entries start[c] .. start[c + 1] - 1 of atoms are in class c. */
struct lists {
  const gidx *start;     /* [count + 1] */
  const idx *atoms;      /* [placed] */
  const idx *color;      /* [k] /color; NULL: the file has none */
  gidx count, placed, k; /* numbers of classes, atoms in classes, atoms (-1: not known) */
};

/* Read the lists, and check that the offsets fit the atoms. */
static int lists_read(const struct h5_file *f, struct arena *arena, struct lists *l)
{
  gidx offsets;
  int has_colors;
  TRY(h5_exists(f, "/color", &has_colors));
  TRY(vector_read(f, "/class_offsets", TYPE_I64, arena, &offsets, &l->start));
  TRY(vector_read(f, "/class_atoms", TYPE_I32, arena, &l->placed, &l->atoms));
  l->count = offsets - 1;
  l->color = NULL;
  l->k = -1;
  if (has_colors) TRY(vector_read(f, "/color", TYPE_I32, arena, &l->k, &l->color));
  CHECK(offsets >= 1 && l->count < INT32_MAX && l->start[0] == 0, ERR_INPUT,
        "'/class_offsets' of '%s' does not begin with 0" ANEW, f->path);
  for (gidx c = 0; c < l->count; c++)
    CHECK(l->start[c + 1] >= l->start[c], ERR_INPUT,
          "'/class_offsets' of '%s' falls from %lld to %lld at class %lld" ANEW, f->path,
          (long long)l->start[c], (long long)l->start[c + 1], (long long)c);
  CHECK(l->start[l->count] == l->placed, ERR_INPUT,
        "'/class_offsets' of '%s' ends with %lld, there are %lld atoms" ANEW, f->path,
        (long long)l->start[l->count], (long long)l->placed);
  return OK;
}

/* color[k] <- the class of each atom, -1 for an atom in none; check that no atom occurs twice, and
 * that /color agrees. */
static int lists_color(const struct lists *l, const char *path, idx k, idx *color)
{
  CHECK(l->k < 0 || l->k == k, ERR_INPUT,
        "'%s' has the classes of %lld atoms, not of %d: give the classes of these supports", path,
        (long long)l->k, k);
  for (idx a = 0; a < k; a++) color[a] = -1;
  for (gidx c = 0; c < l->count; c++)
    for (gidx e = l->start[c]; e < l->start[c + 1]; e++) {
      idx atom = l->atoms[e];
      CHECK(atom >= 0 && atom < k, ERR_INPUT, "class %lld of '%s': atom %d is not in 0 .. %d" ANEW,
            (long long)c, path, atom, k - 1);
      CHECK(color[atom] < 0, ERR_INPUT, "atom %d is twice in '%s', in classes %d and %lld" ANEW,
            atom, path, color[atom], (long long)c);
      color[atom] = (idx)c;
    }
  for (idx a = 0; l->color && a < k; a++)
    CHECK(l->color[a] == color[a], ERR_INPUT,
          "'/color' of '%s' says class %d of atom %d, its lists say %d" ANEW, path, l->color[a], a,
          color[a]);
  return OK;
}

static int file_read(const struct h5_file *f, struct arena *arena, idx k, struct classes *c)
{
  struct lists l;
  idx *color;
  TRY(lists_read(f, arena, &l));
  TRY(arena_alloc(arena, &color, k, sizeof *color));
  TRY(lists_color(&l, f->path, k, color));
  TRY(classes_from_colors(c, color, k, (idx)l.count));
  return OK;
}

int classes_read(struct classes *c, const struct h5_file *file, idx k)
{
  struct arena arena = {0};
  *c = (struct classes){0};
  int status = file_read(file, &arena, k, c);
  arena_free(&arena);
  return status;
}

/* Check that no class is empty, and that the atoms of each class ascend, as in all files of
 * Sagitta. */
static int ours_check(const struct lists *l, const char *path)
{
  for (gidx c = 0; c < l->count; c++) {
    CHECK(l->start[c] < l->start[c + 1], ERR_INPUT, "class %lld of '%s' is empty" ANEW,
          (long long)c, path);
    for (gidx e = l->start[c] + 1; e < l->start[c + 1]; e++)
      CHECK(l->atoms[e - 1] < l->atoms[e], ERR_INPUT,
            "class %lld of '%s': atoms %d and %d are not in ascending order" ANEW, (long long)c,
            path, l->atoms[e - 1], l->atoms[e]);
  }
  return OK;
}

static int file_check(struct verify *v)
{
  int there;
  TRY(h5_exists(v->file, "/class_offsets", &there));
  if (!there) return OK;
  struct arena arena = {0};
  struct lists l;
  idx *color;
  int status = lists_read(v->file, &arena, &l);
  gidx k = status || l.k >= 0 ? l.k : INT32_MAX;
  if (!status && l.k >= 0) status = arena_alloc(&arena, &color, k, sizeof *color);
  if (!status && l.k >= 0) status = lists_color(&l, v->file->path, (idx)k, color);
  if (!status && v->is_ours) status = ours_check(&l, v->file->path);
  arena_free(&arena);
  TRY(status);
  check_note(v, "classes   %lld, each placed atom in one, lists agree with colours",
             (long long)l.count);
  return OK;
}

const struct file_kind classes_kind = {"classes", {&objects}, file_check, NULL, NULL, NULL};
