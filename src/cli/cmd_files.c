/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta inspect, verify and diff: show what is in a file, check it, compare two files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_facts.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"
#include "job/summary.h"
#include "encoding/own_codes.h"
#include "io/diff.h"
#include "io/file_names.h"
#include "io/inputs.h"
#include "io/inspect.h"
#include "io/inspect_atom.h"
#include "io/inspect_json.h"
#include "io/verify.h"

static const struct option_table tables[] = {{"General", general_rows, GENERAL_ROWS, 0}};

struct inspect_options {
  struct general_options general;
  idx top, sources;
  const char *atom, *rows, *tokens, *vocabulary, *attribution, *capture;
};
#define AT(member) offsetof(struct inspect_options, member)

static const struct option_row atom_rows[] = {
    {"atom", OPTION_TEXT, AT(atom), NULL, 0, 0, NULL, "ATOM",
     "FILE is a folder with dictionary.h5 and supports.h5: show this atom, not the files",
     .effect = OPTION_BITS},
    {"top", OPTION_INT, AT(top), "8", 1, 1000, NULL, "COUNT",
     "with --atom: how many of its nearest atoms and strongest rows to show",
     .effect = OPTION_BITS},
    {"rows", OPTION_TEXT, AT(rows), NULL, 0, 0, NULL, "FILE",
     "with --atom: the file of the rows that were encoded, HDF5 with their tokens as /token and "
     "the text around them as /window, which is shown for each row; default: the file of rows "
     "that the run was given, if it still exists and has tokens",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"tokens", OPTION_TEXT, AT(tokens), NULL, 0, 0, NULL, "FILE",
     "with --atom: the tokens of the rows, in place of --rows: a .npy with one integer per row, "
     "or FILE.h5:/path",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"vocabulary", OPTION_TEXT, AT(vocabulary), NULL, 0, 0, NULL, "FILE",
     "with --atom: the texts of tokens: a text file whose line i, counted from 0, is token i, "
     "or vocab.json or tokenizer.json of a tokenizer; without it tokens are shown as numbers",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"attribution", OPTION_TEXT, AT(attribution), NULL, 0, 0, NULL, "FILE",
     "with --atom: the attribution.h5 that `sagitta attribute` made from these supports; each of "
     "the strongest rows is shown with the positions and heads that contribute most; default: "
     "attribution.h5 of the folder, if it exists",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"capture", OPTION_TEXT, AT(capture), NULL, 0, 0, NULL, "FILE",
     "with --atom: the capture of that attribution, whose tokens are shown; default: the one "
     "that `sagitta attribute` was given, if it still exists",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"sources", OPTION_INT, AT(sources), "4", 1, 1024, NULL, "COUNT",
     "with --atom: number of contributions to show for each row", .effect = OPTION_BITS},
};

static const struct option_table inspect_tables[] = {
    {"One atom", atom_rows, LENGTH(atom_rows), 0},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static const struct option_set inspect_set = {
    .command = "sagitta inspect",
    .arguments = "FILE",
    .doc = "Show what is in a file: objects and shapes, metrics, and how it came to be."
           "\v"
           "FILE may be any HDF5 file; if Sagitta wrote it, the metrics are explained.  For a .npy "
           "file the page gives shape and type, which input it can be, and whether every value is "
           "finite; for a .safetensors file, which inputs its tensors can be.  A folder stands for "
           "all .h5 files in it.\n\n"
           "With --atom the page is about one atom of a run: how many rows have it, its codes, the "
           "atoms nearest to it, and the rows where it is strongest; after `sagitta attribute` "
           "also where in the text their scores come from.\n\n"
           "  sagitta inspect run/supports.h5\n"
           "  sagitta inspect acts.npy\n"
           "  sagitta inspect run/ --atom 17 --vocabulary vocab.txt",
    .tables = inspect_tables,
    .count = LENGTH(inspect_tables),
    .min_arguments = 1,
    .max_arguments = 1,
};

struct verify_options {
  struct general_options general;
  const char *rows;
  struct own_codes_options codes;
};

static const struct option_row verify_rows[] = {
    {"rows", OPTION_TEXT, offsetof(struct verify_options, rows), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "the rows from which `refit --encoder` made the folder; its supports must be those that its "
     "encoder finds in these rows",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};
static const struct option_table verify_tables[] = {
    {"Supports of an encoder", verify_rows, LENGTH(verify_rows), 0},
    {"Computing them", own_codes_rows, OWN_CODES_ROWS, offsetof(struct verify_options, codes)},
    {"General", general_rows, GENERAL_ROWS, 0},
};

static const struct option_set verify_set = {
    .command = "sagitta verify",
    .arguments = "FILE",
    .doc = "Check every checksum and every invariant of a file that Sagitta wrote."
           "\v"
           "Exit code 0: the file is whole; 65: it is broken, and the first fault is named; 74: it "
           "cannot be read.  Lines `damaged` say which entries of which datasets of numbers, and "
           "which rows of supports, cannot be read: all others can.  A folder stands for all .h5 "
           "files in it.\n\n"
           "With --rows the supports in a folder of `refit --encoder` are also compared with those "
           "that its encoder finds in these rows, for at most 65,536 rows.  Codes of `fit --find "
           "features` and `encode --l0` are compared, too, if their dictionary.h5 is in the same "
           "folder.\n\n"
           "  sagitta verify run/supports.h5\n"
           "  sagitta verify better/ --rows acts.h5\n\n"
           "`sagitta-bench verify` compares the arithmetic of training.",
    .tables = verify_tables,
    .count = LENGTH(verify_tables),
    .min_arguments = 1,
    .max_arguments = 1,
};

static const struct option_set diff_set = {
    .command = "sagitta diff",
    .arguments = "A B",
    .doc =
        "Compare two files bit for bit: all datasets and attributes but those of /run."
        "\v"
        "Prints nothing and exits 0 when they are equal; otherwise names the first difference and "
        "exits 1.  Two folders are compared file by file: all files whose names end in .h5.\n\n"
        "  sagitta diff one-rank/supports.h5 four-ranks/supports.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .min_arguments = 2,
    .max_arguments = 2,
};

static int folder_find(const char *name, int *is_folder)
{
  struct file_facts facts;
  const char *object;
  char *file;
  TRY(input_split(name, &(struct input_standard){.object = "", .file = ""}, &file, &object));
  int is_whole = !*object, length = (int)strlen(file);
  free(file);
  CHECK(is_whole, ERR_USAGE,
        "there is no file '%s': this command reads whole files; leave '%s' out of the name", name,
        name + length);
  TRY(file_facts_of(name, &facts));
  *is_folder = S_ISDIR(facts.mode);
  return OK;
}

/* The functions for each file: print a page about it, or add an object to the open JSON array. */
struct visit {
  int (*print)(const char *path, FILE *out);
  int (*tell)(const char *path, struct json *json);
  int answers;       /* ERR_INPUT about a file is an answer: the JSON is still printed */
  FILE *out;         /* NULL: print nothing */
  struct json *json; /* NULL: print text */
};

static int file_visit(const struct visit *v, const char *path)
{
  return v->json ? v->tell(path, v->json) : v->print(path, v->out);
}

static int folder_visit(const char *folder, const struct file_names *names, const struct visit *v)
{
  char path[MAX_NAME];
  CHECK(names->count, ERR_INPUT,
        "folder '%s' has no result, such as supports.h5: give the one that --output named", folder);
  for (int i = 0; i < names->count; i++) {
    if (i && v->out && !v->json) fputc('\n', v->out);
    TRY(input_in_folder(folder, names->entries[i]->d_name, path));
    TRY(file_visit(v, path));
  }
  return OK;
}

/* Visit a file, or each .h5 file of a folder. */
static int files_visit(const char *name, const struct visit *v)
{
  struct file_names names;
  int is_folder = 0;
  TRY(folder_find(name, &is_folder));
  if (!is_folder) return file_visit(v, name);
  int status = file_names_list(&names, name);
  if (status == OK) status = folder_visit(name, &names, v);
  file_names_free(&names);
  return status;
}

/* The same, as a JSON object with the array `files`. */
static int files_json(const struct run *run, const char *name, struct visit v)
{
  struct json j;
  TRY(facts_begin(run, &j));
  v.json = &j;
  json_array(&j, "files");
  int status = files_visit(name, &v);
  if (status && !(v.answers && status == ERR_INPUT && j.count)) return status;
  json_end(&j);
  TRY(facts_end(&j));
  return status;
}

/* *atom <- the number in the text of --atom.  The option is a text, because every number from 0 on
 * is an atom, so no number could mean that the option is missing. */
static int atom_number(const char *text, idx *atom)
{
  size_t digits = strspn(text, "0123456789");
  int is_number = digits > 0 && digits <= 10 && !text[digits];
  long long number = is_number ? strtoll(text, NULL, 10) : -1;
  CHECK(number >= 0 && number <= INT32_MAX, ERR_USAGE,
        "'--atom' is '%s': give the number of an atom, from 0 on", text);
  *atom = (idx)number;
  return OK;
}

static int atom_show(const struct run *run, const struct inspect_options *o, const char *name)
{
  int is_folder = 0;
  idx atom = 0;
  TRY(atom_number(o->atom, &atom));
  TRY(folder_find(name, &is_folder));
  CHECK(is_folder, ERR_USAGE,
        "'--atom' needs a folder with dictionary.h5 and supports.h5, and '%s' is a file: give its "
        "folder",
        name);
  const struct atom_request request = {.folder = name,
                                       .rows = o->rows,
                                       .tokens = o->tokens,
                                       .vocabulary = o->vocabulary,
                                       .attribution = o->attribution,
                                       .capture = o->capture,
                                       .atom = atom,
                                       .count = o->top,
                                       .sources = o->sources};
  if (!run->wants_json) return atom_inspect(&request, stdout, NULL);
  struct json j;
  TRY(facts_begin(run, &j));
  TRY(atom_inspect(&request, NULL, &j));
  return facts_end(&j);
}

static int inspect_command(struct run *run, const void *options, const char **arguments)
{
  const struct inspect_options *o = options;
  CHECK(!o->rows || !o->tokens, ERR_USAGE,
        "'--rows' and '--tokens' both name tokens: give one of them");
  if (o->atom) return atom_show(run, o, arguments[0]);
  const struct visit v = {.print = file_inspect, .tell = file_json, .out = stdout};
  CHECK(!o->rows && !o->tokens && !o->vocabulary && !o->attribution && !o->capture, ERR_USAGE,
        "'--rows', '--tokens', '--vocabulary', '--attribution' and '--capture' are about an atom: "
        "name it by '--atom'");
  return run->wants_json ? files_json(run, arguments[0], v) : files_visit(arguments[0], &v);
}

/* Add an object about a verified file.  The lines of its page become the array `checks`. */
static int check_json(const char *path, char *lines, int status, struct json *j)
{
  json_object(j, NULL);
  json_text(j, "file", path);
  json_flag(j, "whole", !status);
  json_text(j, "fault", status ? status_message() : NULL);
  json_array(j, "checks");
  for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) json_text(j, NULL, line);
  json_end(j);
  json_end(j);
  return status;
}

static int verify_json(const char *path, struct json *j)
{
  static const char what[] = "the lines about a file";
  char *lines;
  size_t bytes;
  FILE *memory;
  TRY(text_open(&memory, &lines, &bytes, what));
  int found = file_verify(path, memory), status = text_close(memory, what);
  if (!status) status = check_json(path, lines, found, j);
  free(lines);
  return status;
}

static int verify_command(struct run *run, const void *options, const char **arguments)
{
  const struct verify_options *all = options;
  const struct general_options *o = &all->general;
  const struct visit v = {
      .print = file_verify, .tell = verify_json, .answers = 1, .out = o->quiet ? NULL : stdout};
  TRY(o->json ? files_json(run, arguments[0], v) : files_visit(arguments[0], &v));
  if (!all->rows) return OK;
  const struct verify_supports given = {.folder = arguments[0],
                                        .rows = all->rows,
                                        .device = own_codes_device(&all->codes),
                                        .out = o->json ? NULL : v.out};
  return verify_supports(&given);
}

/* Print, or add to the open object, that the file `name` is only in one folder. */
static void only_differs(const char *name, const char *folder, struct json *j)
{
  if (!j) text_print(stdout, "'%s' is only in '%s'\n", name, folder);
  if (!j) return;
  json_object(j, "difference");
  json_text(j, "what", "only");
  json_text(j, "object", name);
  json_text(j, "in", folder);
  json_end(j);
}

/* Compare two folders file by file, by their sorted names, up to the first difference. */
static int names_merge(const char *const folder[2], const struct file_names names[2],
                       struct json *json, int *equal)
{
  char path[2][MAX_NAME];
  int i = 0, j = 0;
  *equal = 1;
  while (*equal && (i < names[0].count || j < names[1].count)) {
    const char *a = i < names[0].count ? names[0].entries[i]->d_name : NULL;
    const char *b = j < names[1].count ? names[1].entries[j]->d_name : NULL;
    int order = !a ? 1 : !b ? -1 : strcmp(a, b);
    if (order) {
      only_differs(order < 0 ? a : b, folder[order > 0], json);
      *equal = 0;
      return OK;
    }
    TRY(input_in_folder(folder[0], a, path[0]));
    TRY(input_in_folder(folder[1], b, path[1]));
    TRY(file_diff(path[0], path[1], json ? NULL : stdout, json, equal));
    i++, j++;
  }
  return OK;
}

static int folders_diff(const char *const folder[2], struct json *json, int *equal)
{
  struct file_names names[2] = {{0}, {0}};
  int status = file_names_list(&names[0], folder[0]);
  if (status == OK) status = file_names_list(&names[1], folder[1]);
  if (status == OK && !names[0].count && !names[1].count)
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "folders '%s' and '%s' have no results, such as supports.h5, to compare",
                         folder[0], folder[1]);
  if (status == OK) status = names_merge(folder, names, json, equal);
  for (int i = 0; i < 2; i++) file_names_free(&names[i]);
  return status;
}

static int pair_diff(const char *const name[2], struct json *json, int *equal)
{
  int is_folder[2] = {0};
  for (int i = 0; i < 2; i++) TRY(folder_find(name[i], &is_folder[i]));
  CHECK(is_folder[0] == is_folder[1], ERR_USAGE,
        "'%s' is a folder, '%s' is a file: give two files, or two folders", name[is_folder[1]],
        name[is_folder[0]]);
  return is_folder[0] ? folders_diff(name, json, equal)
                      : file_diff(name[0], name[1], json ? NULL : stdout, json, equal);
}

static int diff_command(struct run *run, const void *options, const char **arguments)
{
  (void)options;
  int equal = 0;
  struct json j;
  if (run->wants_json) {
    TRY(facts_begin(run, &j));
    json_text(&j, "first", arguments[0]);
    json_text(&j, "second", arguments[1]);
  }
  TRY(pair_diff(arguments, run->wants_json ? &j : NULL, &equal));
  if (run->wants_json) {
    if (equal) json_text(&j, "difference", NULL);
    json_flag(&j, "equal", equal);
    TRY(facts_end(&j));
  }
  return equal ? OK : ERR_ANSWER;
}

const struct command command_inspect = {"inspect",
                                        "show what is in a file, or what an atom is like",
                                        &inspect_set,
                                        sizeof(struct inspect_options),
                                        0,
                                        inspect_command};
const struct command command_verify = {"verify",    "check a file's checksums and invariants",
                                       &verify_set, sizeof(struct verify_options),
                                       0,           verify_command};
const struct command command_diff = {"diff",    "compare two files bit for bit",
                                     &diff_set, sizeof(struct general_options),
                                     0,         diff_command};
