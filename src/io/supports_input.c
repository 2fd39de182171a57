/* SPDX-License-Identifier: BSD-3-Clause
 * A CSR group is opened array by array.  Integers of any width are read if their values fit; floats
 * are rounded once to float32. */
#include "io/supports_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/encoder.h"
#include "io/score_cuts.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"
#include "io/mean.h"
#include "io/run_option.h"

/* A file with many atoms must store something about them.  FREE_ATOMS: this many atoms need no
 * stored data.  ENTRY_ATOMS: each stored entry allows this many atoms.  PACKED_ATOMS: one stored
 * byte can hold the densities of this many atoms, after deflate. */
enum { FREE_ATOMS = 1 << 20, ENTRY_ATOMS = 64, PACKED_ATOMS = 250 };
#define MAX_ROWS (INT64_C(1) << 48)

struct supports_input_state {
  char *file;
  char name[4096]; /* FILE:/GROUP */
  const char *group;
  struct h5_file h5;
  struct h5_array indptr, indices, data, score, codes;
  int has_score;
};

static int starts_read(void *self, gidx first, gidx count, gidx *out)
{
  const struct supports_input_state *s = self;
  TRY(h5_array_read(&s->indptr, first, count + 1, TYPE_I64, out));
  return OK;
}

static int entries_read(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct supports_input_state *s = self;
  TRY(h5_array_read(&s->indices, first, count, TYPE_I32, atoms));
  if (score && s->has_score) TRY(h5_array_read(&s->score, first, count, TYPE_F32, score));
  if (codes) TRY(h5_array_read(s->codes.id ? &s->codes : &s->data, first, count, TYPE_F32, codes));
  return OK;
}

/* Advice for codes of another program: how to save them as a CSR matrix that can be read.  CODES is
 * a SciPy matrix or a dense array. */
#define CSR_MEND                                                                                   \
  "save them as a CSR matrix: python3 -c 'import h5py, numpy, scipy.sparse as s; m = "             \
  "s.csr_matrix(CODES); g = h5py.File(\"NEW.h5\", \"w\").create_group(\"supports\"); "             \
  "g.attrs[\"shape\"] = m.shape; [g.create_dataset(k, data=getattr(m, k)) for k in (\"data\", "    \
  "\"indices\", \"indptr\")]', where CODES reads yours"

/* Open an array of the group.  If it does not exist and is not needed, *a stays closed. */
static int array_open(struct supports_input_state *s, const char *name, int needed,
                      struct h5_array *a)
{
  char object[256];
  CHECK(strlen(s->group) < 200, ERR_INPUT, "the name '%s' is too long: give a shorter one",
        s->group);
  snprintf(object, sizeof object, "%.200s/%.20s", s->group, name);
  int there;
  TRY(h5_exists(&s->h5, object, &there));
  CHECK(there || !needed, ERR_INPUT, "no '%s' in '%s', which a CSR matrix has: " CSR_MEND, object,
        s->file);
  if (there) TRY(h5_array_open(&s->h5, object, a));
  return OK;
}

/* found <- "'/a', '/b'": the groups of a file that look like a CSR matrix. */
static void groups_list(const struct h5_file *f, char *found, size_t capacity)
{
  struct h5_listing list = {0};
  size_t used = 0;
  found[0] = '\0';
  if (h5_list(f, &list) != OK) status_clear();
  for (gidx i = 0; i < list.count && used < capacity; i++) {
    const char *path = list.entries[i].path, *end = strstr(path, "/indptr");
    int is_one = list.entries[i].kind == ENTRY_DATASET && end && !end[strlen("/indptr")];
    if (is_one && !h5_is_leaves(f, path))
      used += (size_t)snprintf(found + used, capacity - used, "%s'%.*s'", used ? ", " : "",
                               end > path ? (int)(end - path) : 1, path);
  }
  h5_listing_free(&list);
}

/* Check that the name is a group with a shape.  Other programs may have a dense array there. */
static int group_check(const struct supports_input_state *s)
{
  struct h5_array dense = {0};
  int there, status = h5_array_open(&s->h5, s->group, &dense);
  h5_array_close(&dense);
  if (status) status_clear();
  CHECK(status, ERR_INPUT, "'%s' of '%s' is an array, and codes are sparse: " CSR_MEND, s->group,
        s->file);
  TRY(h5_attribute_is(&s->h5, s->group, "encoding-type", "csc_matrix", &there));
  CHECK(!there, ERR_INPUT, "'%s' of '%s' is a CSC matrix, rows have to be together: save m.tocsr()",
        s->group, s->file);
  TRY(h5_attribute_exists(&s->h5, s->group, "shape", &there));
  CHECK(there, ERR_INPUT,
        "'%s' of '%s' has no attribute 'shape', rows and atoms: in Python h5py.File(\"%s\", "
        "\"r+\")[\"%s\"].attrs[\"shape\"] = (ROWS, ATOMS)",
        s->group, s->file, s->file, s->group);
  return OK;
}

static int arrays_open(struct supports_input_state *s)
{
  int there;
  TRY(h5_exists(&s->h5, s->group, &there));
  char found[512];
  if (!there) groups_list(&s->h5, found, sizeof found);
  CHECK(there || !*found, ERR_INPUT,
        "no group '%s' in '%s', which has codes in %s: name it as %s:/PATH", s->group, s->file,
        found, s->file);
  CHECK(
      there, ERR_INPUT,
      "no group '%s' in '%s', nor codes elsewhere: give the supports.h5 of `sagitta encode`, or a "
      "CSR matrix of another program as FILE.h5:/PATH",
      s->group, s->file);
  TRY(group_check(s));
  TRY(array_open(s, "indptr", 1, &s->indptr));
  TRY(array_open(s, "indices", 1, &s->indices));
  TRY(array_open(s, "data", 1, &s->data));
  TRY(array_open(s, "score", 0, &s->score));
  TRY(array_open(s, "codes", 0, &s->codes));
  s->has_score = s->score.id != 0;
  return OK;
}

/* Check the shape of an array, if it is open. */
static int length_check(const struct supports_input_state *s, const struct h5_array *a, int rank,
                        gidx length)
{
  CHECK(!a->id || (a->rank == rank && a->shape[0] == length), ERR_INPUT,
        "'%s' of '%s' has %d dimensions and %lld entries, not %d and %lld" ANEW, a->object, s->file,
        a->rank, (long long)a->shape[0], rank, (long long)length);
  return OK;
}

static int whole_check(const struct supports_input_state *s, const struct h5_array *a,
                       const char *name)
{
  CHECK(a->type == TYPE_I32 || a->type == TYPE_I64, ERR_INPUT,
        "'%s' of '%s' is not of whole numbers: save it as %s.astype(\"i8\")", a->object, s->file,
        name);
  return OK;
}

/* *stores <- 1: the file has enough stored bytes for a density of each atom, compressed or not. */
static int density_find(const struct h5_file *f, gidx k, int *stores)
{
  struct h5_values v = {0};
  TRY(h5_exists(f, "/metrics/density", stores));
  if (!*stores) return OK;
  int status = h5_values_open(f, "/metrics/density", NULL, &v);
  *stores = !status && v.rank == 1 && v.shape[0] == k && v.stored >= k / PACKED_ATOMS;
  h5_values_close(&v);
  if (status) status_clear(); /* a dataset that cannot be opened stores nothing */
  return OK;
}

int supports_shape_check(const struct h5_file *f, const gidx *shape, gidx entries)
{
  CHECK(shape[0] >= 0 && shape[0] <= MAX_ROWS && shape[1] >= 1 && shape[1] <= INT32_MAX, ERR_INPUT,
        "the supports of '%s' have %lld rows of %lld atoms" ANEW, f->path, (long long)shape[0],
        (long long)shape[1]);
  gidx backed =
      imax(FREE_ATOMS, entries > INT32_MAX / ENTRY_ATOMS ? INT32_MAX : entries * ENTRY_ATOMS);
  int stores = 0;
  if (shape[1] > backed) TRY(density_find(f, shape[1], &stores));
  CHECK(shape[1] <= backed || stores, ERR_INPUT,
        "the attribute 'shape' of the supports of '%s' says %lld atoms, but there are %lld entries "
        "alone and no '/metrics/density': it is damaged, or give the matrix fewer columns",
        f->path, (long long)shape[1], (long long)entries);
  return OK;
}

/* Check all shapes against the matrix's shape[2], and fill in the source. */
static int shapes_check(struct supports_input *f, const gidx *shape)
{
  struct supports_input_state *s = f->state;
  gidx entries = s->indices.rank == 1 ? s->indices.shape[0] : -1;
  TRY(supports_shape_check(&s->h5, shape, entries));
  TRY(length_check(s, &s->indptr, 1, shape[0] + 1));
  TRY(length_check(s, &s->indices, 1, entries));
  TRY(length_check(s, &s->data, 1, entries));
  TRY(length_check(s, &s->score, 1, entries));
  TRY(length_check(s, &s->codes, 2, entries));
  TRY(whole_check(s, &s->indptr, "indptr"));
  TRY(whole_check(s, &s->indices, "indices"));
  gidx d = s->codes.id ? s->codes.shape[1] : 1;
  CHECK(d >= 1 && d <= MAX_FRAME, ERR_INPUT,
        "'%s' of '%s' has blocks of %lld codes, 1 to %d are "
        "possible",
        s->codes.object, s->file, (long long)d, MAX_FRAME);
  f->source = (struct support_source){.n = shape[0],
                                      .entries = entries,
                                      .k = (idx)shape[1],
                                      .d = (idx)d,
                                      .has_codes = 1,
                                      .is_unscored = !s->has_score,
                                      .name = s->name,
                                      .self = s,
                                      .starts = starts_read,
                                      .read = entries_read};
  return OK;
}

int supports_encoder_read(const struct h5_file *f, const char **encoder)
{
  char name[32];
  int there;
  *encoder = NULL;
  TRY(h5_attribute_exists(f, "/", "encoder", &there));
  if (!there) return OK;
  TRY(h5_read_text(f, "/", "encoder", name, sizeof name));
  int kind = encoder_kind_find(name);
  CHECK(kind >= 0, ERR_INPUT, "'%s' has codes of an encoder '%s', which is not known", f->path,
        name);
  *encoder = encoder_names[kind];
  return OK;
}

/* Read the attributes of a file that Sagitta wrote.  Files of other programs have none. */
static int facts_read(struct supports_input *f)
{
  const struct h5_file *h5 = &f->state->h5;
  gidx top_s, rounds, frame, codes;
  f->top_s = -1;
  f->rounds = 1;
  f->explained_variance = nan_canonical();
  int is_ours, has_fit, has_sweeps, normalized;
  TRY(h5_attribute_exists(h5, "/", "top_s", &is_ours));
  TRY(h5_attribute_exists(h5, "/metrics", "explained_variance", &has_fit));
  TRY(h5_attribute_exists(h5, "/", "sweeps", &has_sweeps));
  if (!is_ours) return OK;
  TRY(h5_read_long(h5, "/", "top_s", &top_s));
  TRY(h5_read_long(h5, "/", "rounds", &rounds));
  TRY(h5_read_long(h5, "/", "frame", &frame));
  TRY(h5_read_long(h5, "/", "codes", &codes));
  TRY(h5_read_real(h5, "/", "rho", &f->rho));
  if (codes && has_fit)
    TRY(h5_read_real(h5, "/metrics", "explained_variance", &f->explained_variance));
  TRY(nonnegative_read(h5, &f->nonnegative));
  TRY(supports_encoder_read(h5, &f->encoder));
  TRY(h5_attribute_exists(h5, "/", "solved", &f->solved));
  TRY(cuts_read(h5, &f->cuts));
  CHECK(!f->nonnegative || frame == 1, ERR_INPUT,
        "'%s' says that codes are nonnegative, and that atoms are frames of %lld" ANEW,
        f->state->file, (long long)frame);
  if (has_sweeps) TRY(h5_read_long(h5, "/", "sweeps", &f->sweeps));
  TRY(identity_read(h5, INPUTS_GROUP, &f->inputs));
  TRY(identity_read(h5, CONTENTS_GROUP, &f->contents));
  TRY(h5_attribute_exists(h5, "/", "normalized", &normalized));
  if (normalized) f->inputs.dictionary = 0; /* the hash is of the scaled dictionary */
  f->normalized = normalized;
  CHECK(top_s >= 1 && top_s <= f->source.k && rounds >= 1 && rounds <= INT32_MAX && f->rho >= 0 &&
            isfinite(f->rho) && f->sweeps >= 0 && f->sweeps < INT32_MAX,
        ERR_INPUT, "'%s' says top_s %lld, rounds %lld, rho %g, sweeps %lld" ANEW, f->state->file,
        (long long)top_s, (long long)rounds, f->rho, (long long)f->sweeps);
  CHECK(!codes || frame == f->source.d, ERR_INPUT,
        "'%s' says frames of %lld, its codes are of %d" ANEW, f->state->file, (long long)frame,
        f->source.d);
  f->top_s = (idx)top_s;
  f->rounds = (idx)rounds;
  f->source.d = (idx)frame;
  f->source.has_codes = codes != 0;
  return OK;
}

/* Report a file that is not HDF5, with advice about codes. */
static int file_check(const char *path)
{
  size_t length = strlen(path);
  int is_array =
      input_format_of(path) != INPUT_H5 || (length > 4 && strcmp(path + length - 4, ".npz") == 0);
  CHECK(!is_array || !input_is_there(path), ERR_INPUT,
        "'%s' is no HDF5 file, and codes are read from HDF5 alone: " CSR_MEND
        ", as s.load_npz(\"%s\") or numpy.load(\"%s\") does",
        path, path, path);
  return OK;
}

int supports_part_open(struct supports_input *f, const char *name)
{
  gidx shape[2];
  *f = (struct supports_input){0};
  struct supports_input_state *s = f->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  TRY(input_split(name, &(struct input_standard){.object = "/supports", .file = "supports.h5"},
                  &s->file, &s->group));
  TRY(file_check(s->file));
  f->file = s->file;
  snprintf(s->name, sizeof s->name, "%s:%s", s->file, s->group);
  TRY(h5_open(&s->h5, s->file));
  TRY(arrays_open(s));
  TRY(h5_read_longs(&s->h5, s->group, "shape", 2, shape));
  TRY(shapes_check(f, shape));
  TRY(facts_read(f));
  int has_mean;
  TRY(h5_exists(&s->h5, "/mean", &has_mean));
  if (has_mean) TRY(mean_read(&s->h5, -1, &f->mean, &f->mean_length));
  return mean_values_check(f->mean, f->mean_length, s->file);
}

int supports_mean_find(const struct supports_input *f, const char *dictionary, const real *of_atoms,
                       gidx p, const real **mean)
{
  const real *own = f->mean;
  const char *name = f->source.name;
  CHECK(!own || f->mean_length == p, ERR_INPUT,
        "'/mean' of '%s' has %lld columns, the atoms of '%s' have %lld: give the dictionary of "
        "these codes",
        name, (long long)f->mean_length, dictionary, (long long)p);
  CHECK(!of_atoms || own || f->top_s < 0, ERR_INPUT,
        "'%s' brings a mean, the codes of '%s' were solved without one: give the atoms alone",
        dictionary, name);
  CHECK(!of_atoms || !own || memcmp(of_atoms, own, (size_t)p * sizeof *own) == 0, ERR_INPUT,
        "the means of '%s' and '%s' differ: give the dictionary of these codes", dictionary, name);
  *mean = of_atoms ? of_atoms : own;
  return OK;
}

int supports_have_scores(const struct supports_input *f)
{
  return f->state->has_score;
}

struct h5_file *supports_input_file(const struct supports_input *f)
{
  return &f->state->h5;
}

int supports_input_open(struct supports_input *f, const char *name)
{
  int is_part, is_range;
  TRY(supports_part_open(f, name));
  TRY(h5_exists(&f->state->h5, "/part", &is_part));
  if (!is_part || !f->state->h5.version) return OK;
  TRY(run_is_of_range(&f->state->h5, &is_range));
  CHECK(!is_range, ERR_INPUT, "'%s' is a part of an encoding: join all parts with `sagitta merge`",
        f->file);
  FAIL(ERR_INPUT,
       "'%s' is a part of an encoding whose job was stopped: the same command with --resume makes "
       "the other rows",
       f->file);
}

void supports_input_close(struct supports_input *f)
{
  struct supports_input_state *s = f->state;
  free(f->mean);
  if (s) {
    struct h5_array *arrays[] = {&s->indptr, &s->indices, &s->data, &s->score, &s->codes};
    for (int i = 0; i < LENGTH(arrays); i++) h5_array_close(arrays[i]);
    h5_close(&s->h5);
    free(s->file);
  }
  free(s);
  *f = (struct supports_input){0};
}
