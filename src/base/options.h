/* SPDX-License-Identifier: BSD-3-Clause
 * Options and decks: one table of keys gives parsing, --help, range checks, the deck reader and
 * used.in.
 *
 * Floor: base.
 *
 * Options and deck keys are the same words: `--top-s 32` and `top-s = 32`.  If both give an option,
 * the value on the command line is used. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stddef.h>

enum option_type {
  OPTION_FLAG,   /* int, 0 or 1; deck: yes or no */
  OPTION_INT,    /* idx */
  OPTION_LONG,   /* gidx */
  OPTION_REAL,   /* real */
  OPTION_TEXT,   /* const char *, NULL when not given */
  OPTION_TEXTS,  /* several texts, as one text with a line for each; the option may be repeated */
  OPTION_CHOICE, /* const char *, one of the words of `choices` */
};

/* What the value of an option may change; this decides whether a resumed run may have another
 * value. */
enum option_effect {
  OPTION_UNMARKED, /* not set, an error that tests/test_describe.py finds; treated as OPTION_BITS */
  OPTION_BITS,     /* results: a resumed run must have the same value */
  OPTION_EXTENT,   /* how far a job goes, such as --sweeps: a resumed run may have another value */
  /* where and how fast the job runs, and how it reports: a resumed run may have another value */
  OPTION_RUN,
};
enum option_flag {
  OPTION_PER_RANK = 1, /* may differ among ranks */
  /* names files that are read; for a resumed run only their contents must be the same */
  OPTION_INPUT = 2,
  OPTION_OUTPUT = 4, /* names a path that is written */
};

/* A row of a table: {"key", type, offset, "default", min, max, choices, metavar, help, .effect =
 * ...}; .flags and .alias if it has them. */
struct option_row {
  const char *key; /* long option and deck key */
  int type;
  size_t offset;        /* of the value in the struct that the table describes */
  const char *standard; /* default as text; NULL: none, and then the value of a TEXT is NULL */
  double min, max;      /* range of a number, both inclusive */
  const char *choices;  /* words separated by '|' */
  const char *metavar;  /* what --help calls the value: ATOMS */
  const char *help;     /* what --help says about the option */
  enum option_effect effect;
  unsigned flags;    /* of enum option_flag */
  const char *alias; /* an old name, which is also accepted; NULL: none */
};

/* A titled group of options; they are members of the struct at `offset` of the command's
 * options. */
struct option_table {
  const char *title;
  const struct option_row *rows;
  int count;
  size_t offset;
};

struct option_set {
  const char *command;   /* for --help: sagitta encode */
  const char *arguments; /* for --help: [DECK] or FILE */
  /* for --help: what the command does, then '\v', then examples */
  const char *doc;
  const struct option_table *tables; /* [count] */
  int count;
  int min_arguments, max_arguments; /* numbers of positional arguments */
  int has_config;                   /* 1: the only positional argument is a deck */
  int takes_files; /* 1: arguments are files; but a single argument that ends in .in is a deck */
};

/* Set *values, the command's struct of options, from the defaults and then from the command line
 * argv[1] .. argv[argc - 1].  Text values point into argv, or are kept for the program's life.
 * positional[argc + 1], given as NULLs, receives the other arguments.  --help and --usage print,
 * and exit with 0, or with ERR_IO if printing fails.  ERR_USAGE names the option and the nearest
 * known key. */
int options_parse(const struct option_set *set, int argc, char **argv, void *values,
                  const char **positional);

/* The argument that is a deck; NULL if there is none. */
const char *options_config_of(const struct option_set *set, const char *const *positional);

/* Apply a deck, text[length], to the values of the last options_parse(); options on its command
 * line keep their values.  name: the deck, for messages.  ERR_USAGE names the line, and the nearest
 * known key.  If --force is on the command line, `resume = yes` in the deck does not count. */
int options_config(const char *name, const char *text, size_t length);

/* Log each old name that was given, on the command line or in the deck. */
void options_log_old(void);

/* The row at a position, counted through all tables; NULL after the last row.  *offset <- the
 * offset of the struct that its table describes. */
const struct option_row *options_row(const struct option_set *set, int position, size_t *offset);

/* Is `key` a key of the set? */
int options_has(const struct option_set *set, const char *key);

/* An option that cannot be combined with others, and advice or a reason. */
struct option_advice {
  const char *key, *advice;
};
/* The first of all[count] whose option has another value than its default; NULL: none. */
const struct option_advice *options_first_set(const struct option_set *set, const void *values,
                                              const struct option_advice *all, int count);

#endif
