/* SPDX-License-Identifier: BSD-3-Clause
 * The three operations of a sparse side, each beside the dense one, on a device. */
#include "cli/verify_dense.h"

#include <string.h>

#include "base/cores.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/own_codes.h"
#include "device/triad.h"
#include "io/dictionary.h"
#include "io/inputs.h"
#include "io/rows.h"
#include "io/supports_input.h"
#include "model/identity.h"

#define AT(member) offsetof(struct verify_dense_options, member)
const struct option_row verify_dense_rows[VERIFY_DENSE_ROWS] = {
    {"dense", OPTION_FLAG, AT(dense), "no", 0, 1, NULL, NULL,
     "compute what the decoder side of `train` does with few codes a row, and again with dense "
     "matrices that have zeros in the other places, and compare all bits: of the codes and atoms "
     "of a folder, or without FILE of shapes that are built in"},
    {"rows", OPTION_TEXT, AT(rows), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "with --dense: the rows of these codes, whose errors are what gradients are made of; default: "
     "the sums of atoms take their place; of a folder without codes, as of `train`, rows of which "
     "its encoder finds them"},
    {"dictionary", OPTION_TEXT, AT(dictionary), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "with --dense: the atoms of these codes, where the folder has none, as of `encode`"},
    {"threads", OPTION_INT, AT(threads), "0", 0, 4096, NULL, "COUNT",
     "with --dense: threads; 0: one for each core"},
    CPU_VARIANT_OPTION(AT(cpu_variant), "with --dense: instruction set of the CPU's loops"),
    {"device", OPTION_CHOICE, AT(device), "cpu", 0, 0, "cpu|cuda", NULL,
     "with --dense: what computes"},
    KERNELS_OPTION(AT(kernels)),
};

/* Of a folder: so many rows at most, multiply-adds of an operation, numbers of a dense matrix. */
enum { MOST_ROWS = 4096 };
static const gidx MOST_WORK = (gidx)1 << 35, MOST_NUMBERS = (gidx)1 << 26;
enum { ITEM = sizeof(float) };

enum operation { FORWARD, BACK, GRADIENT, OPERATIONS };
static const char *const names[OPERATIONS] = {"forward", "back", "gradient"};

/* Codes of rows, and what they are multiplied with; then the results of one operation. */
struct dense_case {
  const char *name;
  idx n, k, p;
  gidx entries;
  gidx *start;          /* [n + 1] */
  idx *atom;            /* [entries] ascending in a row */
  float *code;          /* [entries] */
  gidx *begin;          /* [k + 1] the same by atoms: */
  idx *row;             /* [entries] */
  float *value;         /* [entries] */
  float *atoms, *error; /* [k][p], [n][p] */
  float *full;          /* [n][k] the codes with zeros */
  float *sparse, *dense;
  struct arena arena;
};

/* What became of an operation. */
struct finding {
  gidx outputs, differ, first;
};

struct verifier {
  const struct verify_dense_options *o;
  struct device device;
  FILE *out;
  struct json *json;
  int equal;
};

static int codes_alloc(struct dense_case *c, gidx entries)
{
  struct arena *a = &c->arena;
  gidx n = c->n, k = c->k, p = c->p;
  c->entries = entries;
  TRY(arena_alloc(a, &c->start, n + 1, sizeof *c->start));
  TRY(arena_alloc(a, &c->atom, entries, sizeof *c->atom));
  TRY(arena_alloc(a, &c->code, entries, sizeof *c->code));
  TRY(arena_alloc(a, &c->begin, k + 1, sizeof *c->begin));
  TRY(arena_alloc(a, &c->row, entries, sizeof *c->row));
  TRY(arena_alloc(a, &c->value, entries, sizeof *c->value));
  TRY(arena_alloc(a, &c->atoms, k * p, sizeof *c->atoms));
  TRY(arena_alloc(a, &c->error, n * p, sizeof *c->error));
  TRY(arena_alloc(a, &c->full, n * k, sizeof *c->full));
  gidx most = imax(imax(n * p, k * p), n * k);
  TRY(arena_alloc(a, &c->sparse, imax(imax(n * p, k * p), entries), sizeof *c->sparse));
  return arena_alloc(a, &c->dense, most, sizeof *c->dense);
}

/* The codes of a row by ascending atom. */
static void row_sort(idx *atom, float *code, gidx n)
{
  for (gidx i = 1; i < n; i++)
    for (gidx j = i; j > 0 && atom[j] < atom[j - 1]; j--) {
      idx a = atom[j];
      float c = code[j];
      atom[j] = atom[j - 1];
      code[j] = code[j - 1];
      atom[j - 1] = a;
      code[j - 1] = c;
    }
}

/* From rows: the codes with zeros, and those of each atom. */
static void codes_turn(struct dense_case *c)
{
  for (gidx e = 0; e < c->entries; e++) c->begin[c->atom[e] + 1]++;
  for (idx a = 0; a < c->k; a++) c->begin[a + 1] += c->begin[a];
  for (idx i = 0; i < c->n; i++)
    for (gidx e = c->start[i]; e < c->start[i + 1]; e++) {
      gidx at = c->begin[c->atom[e]]++;
      c->row[at] = i;
      c->value[at] = c->code[e];
      c->full[(gidx)i * c->k + c->atom[e]] = c->code[e];
    }
  for (idx a = c->k; a > 0; a--) c->begin[a] = c->begin[a - 1];
  c->begin[0] = 0;
}

/* Arrays of the host on the device while an operation runs. */
enum { MAX_SIDES = 6 };
struct sides {
  struct device *dev;
  struct buffer all[MAX_SIDES];
  int count, status;
};

static void *side_put(struct sides *s, const void *host, gidx bytes)
{
  struct buffer *b = &s->all[s->count++];
  if (s->status) return NULL;
  s->status = buffer_wrap(s->dev, b, (void *)host, bytes);
  if (!s->status) s->status = device_put(s->dev, b, 0, bytes);
  return b->device;
}

/* The last one is the result. */
static int sides_end(struct sides *s)
{
  if (!s->status)
    s->status = device_get(s->dev, &s->all[s->count - 1], 0, s->all[s->count - 1].bytes);
  for (int i = 0; i < s->count; i++) buffer_free(s->dev, &s->all[i]);
  return s->status;
}

/* c->sparse <- the operation by lists of entries. */
static int sparse_run(struct device *dev, const struct dense_case *c, enum operation which)
{
  struct sides s = {.dev = dev};
  gidx n = c->n, k = c->k, p = c->p;
  int turned = which == GRADIENT;
  struct triad_lists lists = {.count = turned ? k : n, .width = c->p};
  gidx many = lists.count + 1;
  lists.start = side_put(&s, turned ? c->begin : c->start, many * (gidx)sizeof *c->start);
  lists.index = side_put(&s, turned ? c->row : c->atom, c->entries * (gidx)sizeof *c->atom);
  lists.matrix = side_put(&s, turned ? c->error : c->atoms, (turned ? n : k) * p * ITEM);
  if (which == BACK) {
    float *rows = side_put(&s, c->error, n * p * ITEM);
    float *out = side_put(&s, c->sparse, c->entries * ITEM);
    if (!s.status) s.status = device_triad_dots(dev, &lists, rows, out);
    return sides_end(&s);
  }
  lists.value = side_put(&s, turned ? c->value : c->code, c->entries * ITEM);
  float *out = side_put(&s, c->sparse, lists.count * p * ITEM);
  if (!s.status)
    s.status = turned ? device_triad_sparse_gradient(dev, &lists, out)
                      : device_triad_sparse(dev, &lists, out);
  return sides_end(&s);
}

static void *side_work(struct sides *s, gidx bytes)
{
  struct buffer *b = &s->all[s->count];
  if (s->status || !bytes) return NULL;
  s->count++;
  s->status = buffer_alloc_device(s->dev, b, bytes);
  return b->device;
}

/* c->dense <- the operation by whole matrices. */
static int dense_run(struct device *dev, const struct dense_case *c, enum operation which)
{
  struct sides s = {.dev = dev};
  const enum precision f32 = PRECISION_F32;
  gidx n = c->n, k = c->k, p = c->p;
  float *full = which == BACK ? NULL : side_put(&s, c->full, n * k * ITEM);
  float *atoms = which == GRADIENT ? NULL : side_put(&s, c->atoms, k * p * ITEM);
  float *error = which == FORWARD ? NULL : side_put(&s, c->error, n * p * ITEM);
  gidx outputs = which == FORWARD ? n * p : which == BACK ? n * k : k * p;
  struct triad_product product = {full, {atoms, p, 1}, NULL, NULL, k, p, c->n, c->k, c->p};
  struct triad_gradient gradient = {full, error, NULL, k, p, p, c->n, c->k, c->p};
  if (which == BACK)
    product = (struct triad_product){error, {atoms, 1, p}, NULL, NULL, p, k, c->n, c->p, c->k};
  gidx bytes = which == GRADIENT ? device_triad_gradient_bytes(dev, f32, &gradient)
                                 : device_triad_product_bytes(dev, f32, &product);
  void *work = side_work(&s, bytes);
  gradient.dw = product.y = side_put(&s, c->dense, outputs * ITEM);
  if (!s.status)
    s.status = which == GRADIENT ? device_triad_gradient(dev, f32, &gradient, work)
                                 : device_triad_product(dev, f32, &product, work);
  return sides_end(&s);
}

/* The number of the dense result that output i of the sparse one has to be. */
static gidx place_of(const struct dense_case *c, enum operation which, gidx i, idx *row)
{
  if (which != BACK) return i;
  while (i >= c->start[*row + 1]) ++*row;
  return (gidx)*row * c->k + c->atom[i];
}

/* All bits count, but the sign of 0. */
static struct finding results_compare(const struct dense_case *c, enum operation which)
{
  gidx p = c->p;
  struct finding f = {.outputs = which == FORWARD ? c->n * p
                                 : which == BACK  ? c->entries
                                                  : c->k * p};
  idx row = 0;
  for (gidx i = 0; i < f.outputs; i++) {
    const float *a = &c->sparse[i], *b = &c->dense[place_of(c, which, i, &row)];
    if (memcmp(a, b, ITEM) == 0 || (*a == 0 && *b == 0)) continue;
    if (f.differ++ == 0) f.first = i;
  }
  return f;
}

static void finding_tell(const struct verifier *v, const struct dense_case *c, enum operation which,
                         const struct finding *f)
{
  if (v->json) {
    json_object(v->json, NULL);
    json_text(v->json, "operation", names[which]);
    json_long(v->json, "outputs", f->outputs);
    json_long(v->json, "differ", f->differ);
    json_end(v->json);
  }
  if (!v->out) return;
  text_print(v->out, "%-9s %lld of %lld outputs differ", names[which], (long long)f->differ,
             (long long)f->outputs);
  if (f->differ) {
    idx row = 0;
    text_print(v->out, ": number %lld is %.9g by codes alone, %.9g with zeros", (long long)f->first,
               c->sparse[f->first], c->dense[place_of(c, which, f->first, &row)]);
  }
  text_print(v->out, "\n");
}

static int operation_check(struct verifier *v, struct dense_case *c, enum operation which)
{
  gidx atoms = (gidx)c->k * c->p;
  if (which == GRADIENT) { /* is added to what is there */
    memcpy(c->sparse, c->atoms, (size_t)atoms * sizeof *c->atoms);
    memcpy(c->dense, c->atoms, (size_t)atoms * sizeof *c->atoms);
  }
  TRY(sparse_run(&v->device, c, which));
  TRY(dense_run(&v->device, c, which));
  struct finding f = results_compare(c, which);
  finding_tell(v, c, which, &f);
  v->equal &= f.differ == 0;
  return OK;
}

/* error <- the sums of atoms, less the rows that are there. */
static int errors_make(struct verifier *v, struct dense_case *c)
{
  gidx numbers = (gidx)c->n * c->p;
  TRY(sparse_run(&v->device, c, FORWARD));
  for (gidx i = 0; i < numbers; i++) c->error[i] = c->sparse[i] - c->error[i];
  return rows_check(c->error, c->n, c->p, 0, c->name);
}

static int case_check(struct verifier *v, struct dense_case *c)
{
  for (idx i = 0; i < c->n; i++)
    row_sort(c->atom + c->start[i], c->code + c->start[i], c->start[i + 1] - c->start[i]);
  codes_turn(c);
  TRY(errors_make(v, c));
  if (v->json) {
    json_object(v->json, NULL);
    json_text(v->json, "of", c->name);
    json_long(v->json, "rows", c->n);
    json_long(v->json, "atoms", c->k);
    json_long(v->json, "columns", c->p);
    json_long(v->json, "codes", c->entries);
    json_array(v->json, "operations");
  }
  if (v->out)
    text_print(v->out, "dense     %s: %d rows, %d atoms, %d columns, %lld codes\n", c->name, c->n,
               c->k, c->p, (long long)c->entries);
  for (int which = 0; which < OPERATIONS; which++) TRY(operation_check(v, c, which));
  if (v->json) json_end(v->json), json_end(v->json);
  return OK;
}

/* Rows around chunks of gradients, columns and atoms around tiles; some rows have no codes. */
static const struct shape {
  idx n, k, p, most;
} shapes[] = {{1, 1, 1, 1},         {2, 3, 31, 3},      {33, 127, 32, 5},   {64, 3072, 768, 32},
              {250, 1000, 129, 16}, {1024, 129, 33, 8}, {1025, 128, 65, 8}, {2730, 257, 128, 12}};

static void normals_fill(float *values, gidx n, uint64_t number, uint64_t stream)
{
  for (gidx i = 0; i < n; i++) values[i] = (float)random_normal(number, stream, (uint64_t)i);
}

static int shape_check(struct verifier *v, const struct shape *z, uint64_t number)
{
  struct dense_case c = {.name = "built in", .n = z->n, .k = z->k, .p = z->p};
  gidx at = 0;
  int status = codes_alloc(&c, (gidx)z->n * z->most);
  for (idx i = 0; i < z->n && !status; i++) {
    idx many = (idx)random_below(number, 1, (uint64_t)i, (uint64_t)z->most + 1);
    for (idx j = 0; j < many; j++, at++) { /* one of each of equal parts of the atoms */
      gidx first = (gidx)j * z->k / many, end = ((gidx)j + 1) * z->k / many;
      uint64_t drawn = random_below(number, 2, (uint64_t)at, (uint64_t)(end - first));
      c.atom[at] = (idx)(first + (gidx)drawn);
      c.code[at] = (float)random_normal(number, 3, (uint64_t)at);
    }
    c.start[i + 1] = at;
  }
  c.entries = at;
  if (!status) normals_fill(c.atoms, (gidx)z->k * z->p, number, 4);
  if (!status) normals_fill(c.error, (gidx)z->n * z->p, number, 5);
  if (!status) status = case_check(v, &c);
  arena_free(&c.arena);
  return status;
}

/* The rows that are looked at. */
static idx rows_choose(gidx n, idx k, idx p)
{
  gidx most = imin(MOST_WORK / ((gidx)k * p), MOST_NUMBERS / k);
  return (idx)imin(n, imin(imax(most, 1), MOST_ROWS));
}

static int rows_take(const struct verify_dense_options *o, const struct supports_input *in,
                     struct dense_case *c)
{
  struct rows_input rows = {0};
  if (!o->rows) return OK;
  int status = rows_input_open(&rows, o->rows);
  const struct row_source *s = &rows.source;
  if (!status && (s->p != c->p || s->n != in->source.n))
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "'%s' has %lld rows of %d columns, the codes are of %lld rows of %d",
                         s->name, (long long)s->n, s->p, (long long)in->source.n, c->p);
  if (!status) status = s->read(s->self, 0, c->n, c->error);
  if (!status) status = rows_check(c->error, c->n, c->p, 0, s->name);
  if (!status) rows_center(c->error, c->n, c->p, in->mean);
  rows_input_close(&rows);
  return status;
}

/* Is a dictionary that lies elsewhere that of the codes? */
static int atoms_check_identity(const struct supports_input *in, const struct dense_case *c,
                                const char *name)
{
  uint64_t hash = content_hash(items_terms(c->atoms, c->k, c->p, 0), c->k, 1, c->p);
  CHECK(!in->inputs.dictionary || in->inputs.dictionary == hash, ERR_INPUT,
        "the codes of '%s' are for another dictionary than '%s': dictionary_hash %016llx, not "
        "%016llx",
        in->source.name, name, (unsigned long long)in->inputs.dictionary, (unsigned long long)hash);
  return OK;
}

/* The first codes of a folder. */
static int codes_take(const struct verify_dense_options *o, const struct supports_input *in,
                      const struct atom_source *atoms, struct supports *codes, struct dense_case *c)
{
  const struct support_source *s = &in->source;
  CHECK(s->has_codes, ERR_INPUT, "'%s' has scores, not codes", s->name);
  CHECK(s->d == 1 && atoms->d == 1, ERR_INPUT, "'%s' has frames: training has single atoms",
        s->name);
  CHECK(s->k == atoms->k, ERR_INPUT, "'%s' is of %d atoms, '%s' has %d", s->name, s->k, atoms->name,
        atoms->k);
  CHECK(s->n > 0, ERR_INPUT, "'%s' has no rows", s->name);
  CHECK(!in->mean || in->mean_length == atoms->p, ERR_INPUT, "'%s' has a mean of %lld columns",
        s->name, (long long)in->mean_length);
  c->k = s->k;
  c->p = atoms->p;
  c->n = rows_choose(s->n, c->k, c->p);
  TRY(supports_load(codes, s, 0, c->n, 1));
  TRY(codes_alloc(c, codes->view.start[c->n]));
  memcpy(c->start, codes->view.start, ((size_t)c->n + 1) * sizeof *c->start);
  memcpy(c->atom, codes->view.atoms, (size_t)c->entries * sizeof *c->atom);
  memcpy(c->code, codes->codes, (size_t)c->entries * sizeof *c->code);
  TRY(atoms->read(atoms->self, 0, c->k, c->atoms));
  TRY(atoms_check(c->atoms, c->k, 1, c->p, 0, atoms->name));
  if (o->dictionary) TRY(atoms_check_identity(in, c, atoms->name));
  return rows_take(o, in, c);
}

static struct device_options device_options_of(const struct verify_dense_options *o)
{
  const char *asked;
  struct cores own;
  idx threads = o->threads ? o->threads : cores_asked(&asked);
  cores_find(&own);
  if (!threads) threads = cores_share(&own, 1, 0).threads;
  return (struct device_options){.p = 1,
                                 .d = 1,
                                 .threads = threads,
                                 .variant = o->cpu_variant,
                                 .kind = o->device,
                                 .kernels = o->kernels};
}

/* The codes that the encoder of a folder finds of the first rows. */
static int codes_find(const struct verify_dense_options *o, const struct dictionary_input *in,
                      struct own_codes *own, struct dense_case *c)
{
  const struct atom_source *atoms = &in->source;
  struct device_options options = device_options_of(o);
  CHECK(atoms->d == 1, ERR_INPUT, "'%s' has frames: training has single atoms", atoms->name);
  TRY(own_codes_find(own, in, o->rows, rows_choose(MOST_ROWS, atoms->k, atoms->p), &options));
  c->n = own->n;
  c->k = own->k;
  c->p = own->p;
  TRY(codes_alloc(c, own->found.n));
  memcpy(c->start, own->start, ((size_t)c->n + 1) * sizeof *c->start);
  memcpy(c->atom, own->found.atoms, (size_t)c->entries * sizeof *c->atom);
  memcpy(c->code, own->found.codes, (size_t)c->entries * sizeof *c->code);
  memcpy(c->error, own->rows, (size_t)c->n * (size_t)c->p * sizeof *c->error);
  TRY(atoms->read(atoms->self, 0, c->k, c->atoms));
  return atoms_check(c->atoms, c->k, 1, c->p, 0, atoms->name);
}

/* A folder without codes, such as `train` leaves. */
static int encoder_check_folder(struct verifier *v, const char *folder)
{
  struct dictionary_input dictionary = {0};
  struct own_codes own = {0};
  struct dense_case c = {.name = folder};
  CHECK(v->o->rows, ERR_USAGE,
        "'%s' has no supports.h5: give '--rows', of which its encoder finds the codes", folder);
  int status = dictionary_input_open(&dictionary, folder);
  if (!status) status = codes_find(v->o, &dictionary, &own, &c);
  if (!status) status = case_check(v, &c);
  arena_free(&c.arena);
  own_codes_free(&own);
  dictionary_input_close(&dictionary);
  return status;
}

static int folder_check(struct verifier *v, const char *folder)
{
  struct supports_input in = {0};
  struct dictionary_input dictionary = {0};
  struct supports codes = {0};
  struct dense_case c = {.name = folder};
  char path[MAX_NAME];
  const char *atoms = v->o->dictionary ? v->o->dictionary : folder;
  TRY(input_in_folder(folder, "supports.h5", path));
  if (!input_is_there(path) && !v->o->dictionary) return encoder_check_folder(v, folder);
  TRY(input_in_folder(folder, "dictionary.h5", path));
  CHECK(v->o->dictionary || input_is_there(path), ERR_USAGE,
        "'%s' has codes and no dictionary.h5: give '--dictionary', of which they are, such as what "
        "`encode --encoder` was given",
        folder);
  int status = supports_input_open(&in, folder);
  if (!status) status = dictionary_input_open(&dictionary, atoms);
  if (!status) status = codes_take(v->o, &in, &dictionary.source, &codes, &c);
  if (!status) status = case_check(v, &c);
  arena_free(&c.arena);
  supports_free(&codes);
  dictionary_input_close(&dictionary);
  supports_input_close(&in);
  return status;
}

static int device_begin(struct verifier *v)
{
  struct device_options options = device_options_of(v->o);
  TRY(device_open(&v->device, &options));
  if (v->out) text_print(v->out, "computed  by %s %s\n", v->device.kind, v->device.variant);
  if (!v->json) return OK;
  json_text(v->json, "device", v->device.kind);
  json_text(v->json, "variant", v->device.variant);
  return OK;
}

int verify_dense(const struct verify_dense_options *o, const char *folder, FILE *out,
                 struct json *json, int *equal)
{
  struct verifier v = {.o = o, .out = json ? NULL : out, .json = json, .equal = 1};
  int status = OK;
  TRY(device_begin(&v));
  if (json) json_array(json, "dense");
  if (folder) status = folder_check(&v, folder);
  for (int i = 0; !folder && i < LENGTH(shapes) && !status; i++)
    status = shape_check(&v, &shapes[i], (uint64_t)i + 1);
  device_close(&v.device);
  TRY(status);
  if (json) json_end(json);
  if (json) json_flag(json, "equal", v.equal);
  *equal = v.equal;
  return OK;
}
