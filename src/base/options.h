/* SPDX-License-Identifier: BSD-3-Clause
 * Options and decks: one table of keys gives parsing, --help, range checks, the deck reader and
 * used.in.
 *
 * Floor: base.
 *
 * Options and deck keys are the same words: `--top-s 32` and `top-s = 32`.  The deck is read first,
 * then the command line wins. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stddef.h>

enum option_type {
  OPTION_FLAG,   /* int, 0 or 1; deck: yes or no */
  OPTION_INT,    /* idx */
  OPTION_LONG,   /* gidx */
  OPTION_REAL,   /* real */
  OPTION_TEXT,   /* const char *, NULL when not given */
  OPTION_TEXTS,  /* the same of several texts, one a line, since the option may be given again */
  OPTION_CHOICE, /* const char *, one of the words of `choices` */
};

/* What the value of an option may change. */
enum option_effect {
  OPTION_UNMARKED, /* a mistake, which tests/test_describe.py finds; counts as OPTION_BITS */
  OPTION_BITS,     /* a value in a result: the same in a run that is resumed */
  OPTION_EXTENT,   /* how far a job goes, such as --sweeps: it may differ on resuming */
  OPTION_RUN,      /* where, how fast, how it is reported: it may differ */
};
enum option_flag {
  OPTION_PER_RANK = 1, /* may differ among ranks */
  OPTION_INPUT = 2,    /* names files that are read: what counts is their contents */
  OPTION_OUTPUT = 4,   /* names a place that is written */
};

/* A row of a table: {"key", type, offset, "default", min, max, choices, metavar, help,
 * .effect = ...}, and .flags and .alias where it has them. */
struct option_row {
  const char *key; /* long option and deck key */
  int type;
  size_t offset;        /* of the value in the struct that the table describes */
  const char *standard; /* default as text; NULL: there is none, and a TEXT is then NULL */
  double min, max;      /* range of a number, both inclusive */
  const char *choices;  /* words separated by '|' */
  const char *metavar;  /* what --help calls the value: ATOMS */
  const char *help;     /* and what it says about it */
  enum option_effect effect;
  unsigned flags;    /* of enum option_flag */
  const char *alias; /* an old name, which is taken too; NULL: none */
};

/* A titled group of options that describes a struct at `offset` of the command's options. */
struct option_table {
  const char *title;
  const struct option_row *rows;
  int count;
  size_t offset;
};

struct option_set {
  const char *command;               /* for --help: sagitta encode */
  const char *arguments;             /* for --help: [DECK] or FILE */
  const char *doc;                   /* for --help: what it does, '\v', examples */
  const struct option_table *tables; /* [count] */
  int count;
  int min_arguments, max_arguments; /* positional */
  int has_config;                   /* the only positional argument is a deck */
  int takes_files; /* arguments are files, but for a single one that ends in .in: a deck */
};

/* Fill *values, the command's options struct, from the defaults, then the command line, whose
 * argv[0] is skipped.  Text values point into argv or are kept for the program's life.
 * positional[argc + 1], of NULLs, receives the other arguments.  --help and
 * --usage print and exit 0, or ERR_IO.  ERR_USAGE names the option and the nearest known key. */
int options_parse(const struct option_set *set, int argc, char **argv, void *values,
                  const char **positional);

/* The argument that is a deck, NULL where there is none. */
const char *options_config_of(const struct option_set *set, const char *const *positional);

/* Put a deck, text[length], under the command line that options_parse() read last.  name is for
 * messages: ERR_USAGE names the line, and the nearest known key.  --force that was typed makes
 * `resume = yes` of a deck a no. */
int options_config(const char *name, const char *text, size_t length);

/* A line of the log for each old name that was given, on the command line or in the deck. */
void options_log_old(void);

/* The row at a position, counted through all tables, and the offset of the struct that its table
 * describes; NULL past the end. */
const struct option_row *options_row(const struct option_set *set, int position, size_t *offset);

/* Is it one of the keys? */
int options_has(const struct option_set *set, const char *key);

/* An option that does not go with others, and what to do or why. */
struct option_advice {
  const char *key, *advice;
};
/* The first of all[count] that has another value than its default; NULL: none. */
const struct option_advice *options_first_set(const struct option_set *set, const void *values,
                                              const struct option_advice *all, int count);

#endif
