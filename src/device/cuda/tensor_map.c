/* SPDX-License-Identifier: BSD-3-Clause
 * Calls the driver's cuTensorMapEncodeTiled, whose address the CUDA runtime gives once. */
#include "device/cuda/tensor_map.h"

#include <cuda.h>
#include <string.h>

#include "base/status.h"

_Static_assert(sizeof(struct tensor_map) == sizeof(CUtensorMap), "kernels have the driver's maps");

typedef CUresult (*map_encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                               const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                               const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                               CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* The first version of CUDA that has maps. */
enum { MAPS_SINCE = 12000 };

int cuda_tensor_mappable(const struct tensor_matrix *m)
{
  return m->stride % 8 == 0 && (uintptr_t)m->at % 16 == 0;
}

static int encode_find(struct cuda_state *s)
{
  enum cudaDriverEntryPointQueryResult found;
  if (s->map_encode) return OK;
  TRY_CU(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &s->map_encode, MAPS_SINCE,
                                          cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess && s->map_encode, ERR_DEVICE,
        "the driver has no tensor maps: install a newer driver");
  return OK;
}

int cuda_tensor_map(struct cuda_state *s, enum precision precision, const struct tensor_matrix *m,
                    struct tensor_map *map)
{
  enum { BYTES = 2 };
  cuuint64_t sizes[] = {(cuuint64_t)m->inner, (cuuint64_t)m->outer};
  cuuint64_t strides[] = {(cuuint64_t)m->stride * BYTES};
  cuuint32_t box[] = {TENSOR_BOX, (cuuint32_t)m->box}, steps[] = {1, 1};
  CUtensorMapDataType type = precision == PRECISION_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                         : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  CUtensorMap own;
  map_encode encode;
  TRY(encode_find(s));
  memcpy(&encode, &s->map_encode, sizeof encode);
  CUresult result = encode(&own, type, 2, (void *)m->at, sizes, strides, box, steps,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(result == CUDA_SUCCESS, ERR_DEVICE,
        "the driver makes no map of %lld lines of %lld numbers, %lld apart: error %d",
        (long long)m->outer, (long long)m->inner, (long long)m->stride, (int)result);
  memcpy(map, &own, sizeof *map);
  return OK;
}
