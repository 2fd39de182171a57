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
  OPTION_TEXTS,  /* the same for several texts, one per line; the option may be repeated */
  OPTION_CHOICE, /* const char *, one of the words of `choices` */
};

/* What the value of an option may change. */
enum option_effect {
  OPTION_UNMARKED, /* an error, which tests/test_describe.py finds; counts as OPTION_BITS */
  OPTION_BITS,     /* a value that changes results: a resumed run must have the same */
  OPTION_EXTENT,   /* how far a job goes, such as --sweeps: a resumed run may have another */
  OPTION_RUN,      /* where, how fast, and how it is reported: it may differ */
};
enum option_flag {
  OPTION_PER_RANK = 1, /* may differ among ranks */
  OPTION_INPUT = 2,    /* names files that are read: only their contents count */
  OPTION_OUTPUT = 4,   /* names a path that is written */
};

/* A row of a table: {"key", type, offset, "default", min, max, choices, metavar, help, .effect =
 * ...}; .flags and .alias if it has them. */
struct option_row {
  const char *key; /* long option and deck key */
  int type;
  size_t offset;        /* of the value in the struct that the table describes */
  const char *standard; /* default as text; NULL: none; a TEXT is then NULL */
  double min, max;      /* range of a number, both inclusive */
  const char *choices;  /* words separated by '|' */
  const char *metavar;  /* what --help calls the value: ATOMS */
  const char *help;     /* what --help says about the option */
  enum option_effect effect;
  unsigned flags;    /* of enum option_flag */
  const char *alias; /* an old name, which is accepted, too; NULL: none */
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
  const char *command;               /* for --help: sagitta encode */
  const char *arguments;             /* for --help: [DECK] or FILE */
  const char *doc;                   /* for --help: what it does, '\v', examples */
  const struct option_table *tables; /* [count] */
  int count;
  int min_arguments, max_arguments; /* numbers of positional arguments */
  int has_config;                   /* the only positional argument is a deck */
  int takes_files; /* arguments are files, except that a single one ending in .in is a deck */
};

/* Fill *values, the command's options struct, from the defaults and then the command line, without
 * argv[0].  Text values point into argv, or are kept for the program's life.  positional[argc + 1],
 * given as NULLs, receives the other arguments.  --help and --usage print and exit 0, or ERR_IO.
 * ERR_USAGE names the option and the nearest known key. */
int options_parse(const struct option_set *set, int argc, char **argv, void *values,
                  const char **positional);

/* The argument that is a deck; NULL if there is none. */
const char *options_config_of(const struct option_set *set, const char *const *positional);

/* Apply a deck, text[length], below the command line that options_parse() read last.  name is for
 * messages: ERR_USAGE names the line, and the nearest known key.  If --force is on the command
 * line, `resume = yes` in the deck does not count. */
int options_config(const char *name, const char *text, size_t length);

/* Log each old name that was given, on the command line or in the deck. */
void options_log_old(void);

/* The row at a position, counted through all tables, and the offset of the struct that its table
 * describes; NULL after the last. */
const struct option_row *options_row(const struct option_set *set, int position, size_t *offset);

/* Is it one of the keys? */
int options_has(const struct option_set *set, const char *key);

/* An option that cannot be combined with others, and advice or a reason. */
struct option_advice {
  const char *key, *advice;
};
/* The first of all[count] whose value differs from its default; NULL: none. */
const struct option_advice *options_first_set(const struct option_set *set, const void *values,
                                              const struct option_advice *all, int count);

#endif
