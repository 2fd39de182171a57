/* SPDX-License-Identifier: BSD-3-Clause
 * Includes ZeroMQ if this build has it; NET_HAS_ZEROMQ is then defined.
 *
 * Floor: net; included by src/net only. */
#ifndef NET_ZEROMQ_H
#define NET_ZEROMQ_H

#include "base/status.h"
#include "config.h"

#if defined HAVE_ZMQ && !defined SAGITTA_ALONE
#define NET_HAS_ZEROMQ
#include <errno.h>
#include <zmq.h>

#define TRY_ZMQ(call, what)                                                                        \
  do {                                                                                             \
    if ((call) < 0) FAIL(ERR_COMM, "%s: %s", (what), zmq_strerror(errno));                         \
  } while (0)
#endif

#endif
