/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta inspect, verify and diff: what is in a file, is it whole, are two the same. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"
#include "io/diff.h"
#include "io/inspect.h"
#include "io/schema.h"
#include "io/verify.h"

static const struct option_table tables[] = {{"General", general_rows, GENERAL_ROWS, 0}};

static const struct option_set inspect_set = {
    .command = "sagitta inspect",
    .arguments = "FILE",
    .doc =
        "Show what is in a file: objects and shapes, metrics, and how it came to be."
        "\v"
        "Any HDF5 file will do; of those that Sagitta wrote the metrics are explained.  A folder "
        "stands for all results in it.\n\n"
        "  sagitta inspect run/supports.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .min_arguments = 1,
    .max_arguments = 1,
};

static const struct option_set verify_set = {
    .command = "sagitta verify",
    .arguments = "FILE",
    .doc =
        "Check every checksum and every invariant of a file that Sagitta wrote."
        "\v"
        "Exit code 0: whole; 65: broken, the first fault is named; 74: cannot be read.  A folder "
        "stands for all results in it.\n\n"
        "  sagitta verify run/supports.h5",
    .tables = tables,
    .count = LENGTH(tables),
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
        "exits 1.  Two folders are compared result by result.\n\n"
        "  sagitta diff one-rank/supports.h5 four-ranks/supports.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .min_arguments = 2,
    .max_arguments = 2,
};

enum { NAME_CAPACITY = 4096 };

static int is_folder(const char *name)
{
  struct stat facts;
  return stat(name, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* path[NAME_CAPACITY] <- a folder's result of a kind; returns 1 if it is there. */
static int result_path(const char *folder, const struct file_kind *kind, char *path)
{
  int length = (int)strlen(folder);
  while (length > 1 && folder[length - 1] == '/') length--;
  snprintf(path, NAME_CAPACITY, "%.*s/%s.h5", length, folder, kind->name);
  return access(path, F_OK) == 0;
}

/* Call visit() for a file, or for each result in a folder. */
static int results_visit(const char *name, int (*visit)(const char *path, FILE *out), FILE *out)
{
  char path[NAME_CAPACITY];
  int count = 0;
  if (!is_folder(name)) return visit(name, out);
  for (int k = 0; k < file_kind_count; k++) {
    if (!result_path(name, file_kinds[k], path)) continue;
    if (count++ && out) fputc('\n', out);
    TRY(visit(path, out));
  }
  CHECK(count, ERR_INPUT, "folder '%s' has no result, such as supports.h5", name);
  return OK;
}

static int inspect_command(struct run *run, const void *options, const char **arguments)
{
  (void)run, (void)options;
  return results_visit(arguments[0], file_inspect, stdout);
}

static int verify_command(struct run *run, const void *options, const char **arguments)
{
  (void)run;
  const struct general_options *o = options;
  return results_visit(arguments[0], file_verify, o->quiet ? NULL : stdout);
}

/* Compare the results of two folders; the first difference ends it. */
static int folders_diff(const char *a, const char *b, int *equal)
{
  char in_a[NAME_CAPACITY], in_b[NAME_CAPACITY];
  int count = 0;
  *equal = 1;
  for (int k = 0; k < file_kind_count && *equal; k++) {
    int has_a = result_path(a, file_kinds[k], in_a), has_b = result_path(b, file_kinds[k], in_b);
    count += has_a || has_b;
    if (has_a && has_b) {
      TRY(file_diff(in_a, in_b, stdout, equal));
    } else if (has_a || has_b) {
      text_print(stdout, "'%s.h5' is only in '%s'\n", file_kinds[k]->name, has_a ? a : b);
      *equal = 0;
    }
  }
  CHECK(count, ERR_INPUT, "folders '%s' and '%s' have no results, such as supports.h5", a, b);
  return OK;
}

static int diff_command(struct run *run, const void *options, const char **arguments)
{
  (void)run, (void)options;
  int equal = 0;
  const char *a = arguments[0], *b = arguments[1];
  CHECK(is_folder(a) == is_folder(b), ERR_USAGE, "'%s' is a folder, '%s' is none",
        is_folder(a) ? a : b, is_folder(a) ? b : a);
  TRY(is_folder(a) ? folders_diff(a, b, &equal) : file_diff(a, b, stdout, &equal));
  return equal ? OK : ERR_ANSWER;
}

const struct command command_inspect = {
    "inspect", "show what is in a file", &inspect_set, sizeof(struct general_options),
    0,         inspect_command};
const struct command command_verify = {"verify",    "check a file's checksums and invariants",
                                       &verify_set, sizeof(struct general_options),
                                       0,           verify_command};
const struct command command_diff = {"diff",    "compare two files bit for bit",
                                     &diff_set, sizeof(struct general_options),
                                     0,         diff_command};
