/* SPDX-License-Identifier: BSD-3-Clause
 * Turns failures of CUDA into messages. */
#include "device/cuda/cuda.h"

#include "base/status.h"

int cuda_fail(cudaError_t error, const char *file, int line)
{
  int number = -1;
  cudaGetLastError(); /* reset the error, if it can be reset */
  cudaGetDevice(&number);
  int code = error == cudaErrorMemoryAllocation ? ERR_MEMORY : ERR_DEVICE;
  return status_fail(code, file, line, "GPU %d failed: %s", number, cudaGetErrorString(error));
}

int cuda_finish(struct cuda_state *s)
{
  TRY_CU(cudaStreamSynchronize(s->stream));
  return OK;
}
