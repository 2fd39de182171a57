/* SPDX-License-Identifier: BSD-3-Clause
 * NCCL for the wheel's program of several ranks: its functions under their own names, in the place
 * of a library that is linked.
 *
 * Floor: comm.  The first call opens libnccl.so.2, by DT_RPATH, which names the folder of NVIDIA's
 * wheel, or where the loader looks.  Without one each call fails. */
#ifndef COMM_NCCL_LATE_H
#define COMM_NCCL_LATE_H

#include <nccl.h>

#endif
