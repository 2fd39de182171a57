/* SPDX-License-Identifier: BSD-3-Clause
 * ledger.h5: the ledger of a server.
 *
 * Floor: io.  Not collective. */
#ifndef IO_LEDGER_H
#define IO_LEDGER_H

#include "base/memory.h"
#include "io/outputs.h"
#include "model/ledger.h"

extern const struct file_kind ledger_kind;

/* The contents of the file besides its tables. */
struct ledger_facts {
  uint64_t dictionary; /* its hash */
  gidx left_out;       /* steps that came after the end of the ledger */
};

/* Write and publish. */
int ledger_write(const char *path, const struct ledger *ledger, const struct ledger_facts *said,
                 const struct run_fact *facts, int n_facts);
/* Read the tables into the arena.  ERR_INPUT: the file is not a ledger. */
int ledger_read(const struct h5_file *f, struct arena *arena, struct ledger *ledger,
                struct ledger_facts *said);

#endif
