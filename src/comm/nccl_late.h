/* SPDX-License-Identifier: BSD-3-Clause
 * NCCL for the wheel's program of several ranks: the functions of NCCL under their own names, in
 * place of a linked library.
 *
 * Floor: comm.  The first call opens libnccl.so.2, in the folder of NVIDIA's wheel, which DT_RPATH
 * names, or in another folder where the loader looks.  If there is none, each call fails. */
#ifndef COMM_NCCL_LATE_H
#define COMM_NCCL_LATE_H

#include <nccl.h>

#endif
