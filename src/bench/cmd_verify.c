/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench verify: checks that the sparse operations of training give the same numbers as
 * dense products of matrices with zeros where there are no codes (N.42).  The codes are random with
 * built-in shapes, or read from a folder, or found by the encoder of a folder. */
#include <string.h>
#include <sys/stat.h>

#include "base/file_facts.h"
#include "base/json.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/commands.h"
#include "bench/dense_case.h"
#include "cli/command.h"
#include "encoding/own_codes.h"
#include "io/dictionary.h"
#include "io/inputs.h"
#include "io/rows.h"
#include "io/supports_input.h"
#include "job/summary.h"
#include "model/identity.h"

struct verify_options {
  struct general_options general;
  const char *rows, *dictionary;
  struct own_codes_options codes;
};
#define AT(member) offsetof(struct verify_options, member)

static const struct option_row codes_of[] = {
    {"rows", OPTION_TEXT, AT(rows), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "the rows that the folder's codes describe: gradients are then made from the errors of the "
     "reconstructions, and without it from the reconstructions themselves. For a folder without "
     "codes, such as one of "
     "`train`: the rows from which its encoder finds codes",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"dictionary", OPTION_TEXT, AT(dictionary), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "the atoms of the codes, for a folder without dictionary.h5, such as a folder of `encode`",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_table tables[] = {
    {"Codes", codes_of, LENGTH(codes_of), 0},
    {"Computing", own_codes_rows, OWN_CODES_ROWS, AT(codes)},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static const struct option_set verify_set = {
    .command = "sagitta-bench verify",
    .arguments = "[FOLDER]",
    .doc =
        "Compare the sparse side of training with dense products, bit for bit."
        "\v"
        "The decoder side of `train` multiplies by the few codes of each row, in the order in "
        "which a dense product takes all atoms.  So its bits are those of dense matrices with "
        "zeros; only a 0 may have another sign.  Sums of atoms, slopes of codes and gradients of "
        "atoms are computed both ways.  The codes are those of the first rows of a folder with "
        "supports.h5 and dictionary.h5, or of a folder of `encode` with --dictionary; or those "
        "that the encoder in a folder of `train` or `import` finds in --rows; or built-in ones. "
        " Exit code 1: a number differs; the first one of each operation is shown.\n\n"
        "  sagitta-bench verify\n"
        "  sagitta-bench verify run/ --rows acts.h5 --device cuda\n"
        "  sagitta-bench verify sae/ --rows acts.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
};

/* Limits for a folder: rows; multiply-adds of an operation; numbers of the dense matrix of codes.
 * At least one row is checked. */
enum { MOST_ROWS = 4096 };
static const gidx MOST_WORK = (gidx)1 << 35, MOST_NUMBERS = (gidx)1 << 26;
static const char *const names[DENSE_OPERATIONS] = {"forward", "back", "gradient"};

struct verifier {
  const struct verify_options *o;
  struct device device;
  FILE *out;
  struct json *json;
  int equal;
};

static int operation_check(struct verifier *v, struct dense_case *c, enum dense_operation which)
{
  struct dense_finding f;
  TRY(dense_case_compare(&v->device, c, which, &f));
  v->equal &= f.differ == 0;
  if (v->json) {
    json_object(v->json, NULL);
    json_text(v->json, "operation", names[which]);
    json_long(v->json, "outputs", f.outputs);
    json_long(v->json, "differ", f.differ);
    json_end(v->json);
  }
  if (!v->out) return OK;
  text_print(v->out, "%-9s %lld of %lld outputs differ", names[which], (long long)f.differ,
             (long long)f.outputs);
  if (f.differ)
    text_print(v->out, ": number %lld is %.9g by codes alone, %.9g with zeros", (long long)f.first,
               f.sparse, f.dense);
  text_print(v->out, "\n");
  return OK;
}

/* On entry c->error has rows, or zeros; on return the sums of atoms minus these numbers. */
static int errors_make(struct verifier *v, struct dense_case *c)
{
  gidx numbers = (gidx)c->n * c->p;
  TRY(dense_case_sparse(&v->device, c, DENSE_FORWARD));
  for (gidx i = 0; i < numbers; i++) c->error[i] = c->sparse[i] - c->error[i];
  return rows_check(c->error, c->n, c->p, 0, c->name);
}

static int case_check(struct verifier *v, struct dense_case *c)
{
  dense_case_next(c);
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
  for (int which = 0; which < DENSE_OPERATIONS; which++) TRY(operation_check(v, c, which));
  if (v->json) json_end(v->json), json_end(v->json);
  return OK;
}

/* Small shapes, and shapes whose rows, atoms or columns are just below, at, or just above sizes of
 * tiles and of chunks of gradients.  A row has 0 to `most` codes. */
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
  int status = dense_case_alloc(&c, (gidx)z->n * z->most);
  for (idx i = 0; i < z->n && !status; i++) {
    idx many = (idx)random_below(number, 1, (uint64_t)i, (uint64_t)z->most + 1);
    for (idx j = 0; j < many; j++, at++) { /* draw one atom from each of `many` equal parts */
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

/* The number of rows to check, of n. */
static idx rows_choose(gidx n, idx k, idx p)
{
  gidx most = imin(MOST_WORK / ((gidx)k * p), MOST_NUMBERS / k);
  return (idx)imin(n, imin(imax(most, 1), MOST_ROWS));
}

static int rows_take(const struct verify_options *o, const struct supports_input *in,
                     struct dense_case *c)
{
  struct rows_input rows = {0};
  if (!o->rows) return OK;
  int status = rows_input_open(&rows, NULL, o->rows);
  const struct row_source *s = &rows.source;
  if (!status && (s->p != c->p || s->n != in->source.n))
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "'%s' has %lld rows of %d columns, the codes are of %lld rows of %d: give "
                         "the rows that were "
                         "encoded",
                         s->name, (long long)s->n, s->p, (long long)in->source.n, c->p);
  if (!status) status = s->read(s->self, 0, c->n, c->error);
  if (!status) status = rows_check(c->error, c->n, c->p, 0, s->name);
  if (!status) rows_center(c->error, c->n, c->p, in->mean);
  rows_input_close(&rows);
  return status;
}

/* Read the codes of the first rows of a folder, and its atoms. */
static int codes_take(const struct verify_options *o, const struct supports_input *in,
                      const struct atom_source *atoms, struct supports *codes, struct dense_case *c)
{
  const struct support_source *s = &in->source;
  CHECK(s->has_codes, ERR_INPUT, "'%s' has scores, not codes: make codes with `sagitta encode`",
        s->name);
  CHECK(s->d == 1 && atoms->d == 1, ERR_INPUT, "'%s' has frames: training has single atoms",
        s->name);
  CHECK(s->k == atoms->k, ERR_INPUT,
        "'%s' is of %d atoms, '%s' has %d: give the dictionary of these codes", s->name, s->k,
        atoms->name, atoms->k);
  CHECK(s->n > 0, ERR_INPUT, "'%s' has no rows", s->name);
  CHECK(!in->mean || in->mean_length == atoms->p, ERR_INPUT, "'%s' has a mean of %lld columns",
        s->name, (long long)in->mean_length);
  c->k = s->k;
  c->p = atoms->p;
  c->n = rows_choose(s->n, c->k, c->p);
  TRY(supports_load(codes, s, 0, c->n, 1));
  TRY(dense_case_alloc(c, codes->view.start[c->n]));
  memcpy(c->start, codes->view.start, ((size_t)c->n + 1) * sizeof *c->start);
  memcpy(c->atom, codes->view.atoms, (size_t)c->entries * sizeof *c->atom);
  memcpy(c->code, codes->codes, (size_t)c->entries * sizeof *c->code);
  TRY(atoms->read(atoms->self, 0, c->k, c->atoms));
  TRY(atoms_check(c->atoms, c->k, 1, c->p, 0, atoms->name));
  uint64_t hash = content_hash(items_terms(c->atoms, c->k, c->p, 0), c->k, 1, c->p);
  TRY(identity_dictionary_check(s->name, in->inputs.dictionary, atoms->name, hash));
  return rows_take(o, in, c);
}

/* Find the codes of the first rows with the encoder of a folder, and read its atoms. */
static int codes_find(const struct verify_options *o, const struct dictionary_input *in,
                      struct own_codes *own, struct dense_case *c)
{
  const struct atom_source *atoms = &in->source;
  struct device_options options = own_codes_device(&o->codes);
  CHECK(atoms->d == 1, ERR_INPUT, "'%s' has frames: training has single atoms", atoms->name);
  const struct own_codes_task task = {
      in, o->rows, rows_choose(MOST_ROWS, atoms->k, atoms->p), &options, NULL, in->mean, 0};
  TRY(own_codes_find(own, &task));
  c->n = own->n;
  c->k = own->k;
  c->p = own->p;
  TRY(dense_case_alloc(c, own->found.n));
  memcpy(c->start, own->start, ((size_t)c->n + 1) * sizeof *c->start);
  memcpy(c->atom, own->found.atoms, (size_t)c->entries * sizeof *c->atom);
  memcpy(c->code, own->found.codes, (size_t)c->entries * sizeof *c->code);
  memcpy(c->error, own->rows, (size_t)c->n * (size_t)c->p * sizeof *c->error);
  TRY(atoms->read(atoms->self, 0, c->k, c->atoms));
  return atoms_check(c->atoms, c->k, 1, c->p, 0, atoms->name);
}

/* Check a folder without codes, such as one of `train`. */
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
        "'%s' has codes and no dictionary.h5: give '--dictionary', the dictionary of these codes, "
        "such as the FILE of `encode --encoder`",
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
  struct device_options options = own_codes_device(&v->o->codes);
  TRY(device_open(&v->device, &options));
  if (v->out) text_print(v->out, "computed  by %s %s\n", v->device.kind, v->device.variant);
  if (!v->json) return OK;
  json_text(v->json, "device", v->device.kind);
  json_text(v->json, "variant", v->device.variant);
  return OK;
}

static int cases_check(struct verifier *v, const char *folder)
{
  int status = OK;
  TRY(device_begin(v));
  if (v->json) json_array(v->json, "dense");
  if (folder) status = folder_check(v, folder);
  for (int i = 0; !folder && i < LENGTH(shapes) && !status; i++)
    status = shape_check(v, &shapes[i], (uint64_t)i + 1);
  device_close(&v->device);
  TRY(status);
  if (v->json) json_end(v->json);
  if (v->json) json_flag(v->json, "equal", v->equal);
  return OK;
}

static int verify_command(struct run *run, const void *options, const char **arguments)
{
  const struct verify_options *o = options;
  const char *folder = arguments[0];
  struct file_facts facts = {0};
  struct json j;
  struct verifier v = {.o = o, .json = run->wants_json ? &j : NULL, .equal = 1};
  if (!v.json && !o->general.quiet) v.out = stdout;
  if (folder) TRY(file_facts_of(folder, &facts));
  CHECK(!folder || S_ISDIR(facts.mode), ERR_USAGE,
        "'%s' is a file: give a folder with dictionary.h5 or supports.h5, or no argument", folder);
  CHECK(folder || !o->rows, ERR_USAGE, "'--rows' goes with a folder of codes: name the folder");
  CHECK(folder || !o->dictionary, ERR_USAGE,
        "'--dictionary' goes with a folder of codes: name the folder");
  if (v.json) TRY(facts_begin(run, &j));
  TRY(cases_check(&v, folder));
  if (v.json) TRY(facts_end(&j));
  return v.equal ? OK : ERR_ANSWER;
}

const struct command bench_verify_command = {
    "verify",    "sparse sums of training against dense products, bit for bit",
    &verify_set, sizeof(struct verify_options),
    0,           verify_command};
