/* SPDX-License-Identifier: BSD-3-Clause
 * Atoms that are new: what is left of the rows of the batch at hand, or these rows as they are if
 * it was not coded.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_RENEW_H
#define FIND_RENEW_H

#include "find/find_impl.h"

/* Twins and dead atoms start anew.  Collective, as is the next. */
int atoms_replace(struct finder *f);

/* The dictionary has k atoms from now on. */
int atoms_grow(struct finder *f, idx k);

#endif
