/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of a job on a GPU: on the host's cores. */
#include "base/status.h"
#include "device/cuda.h"

gidx cuda_codes_state(const struct device *dev, idx m_most, real rho)
{
  const struct cuda_state *s = dev->state;
  return codes_state(&s->host, m_most, rho);
}

int cuda_codes(struct device *dev, const struct codes_job *job)
{
  struct cuda_state *s = dev->state;
  gidx p = s->options.p, at = job->first * p, values = (gidx)job->n * p;
  struct buffer sides[7];
  const struct buffer *from[] = {job->rows,     job->atoms, job->slot,   job->state,
                                 job->residual, job->codes, job->quality};
  for (int i = 0; i < LENGTH(from); i++)
    if (from[i]) {
      sides[i] = *from[i];
      sides[i].device = sides[i].host;
    }
  struct codes_job own = *job;
  own.rows = &sides[0];
  own.atoms = &sides[1];
  own.slot = &sides[2];
  own.state = job->state ? &sides[3] : NULL;
  own.residual = job->residual ? &sides[4] : NULL;
  own.codes = job->codes ? &sides[5] : NULL;
  own.quality = job->quality ? &sides[6] : NULL;
  TRY(device_codes(&s->host, &own));
  gidx codes = (gidx)job->n * job->m_new * s->options.d * (gidx)sizeof(float);
  gidx quality = job->n * (gidx)sizeof(struct row_quality);
  if (job->residual)
    TRY(cuda_put(dev, job->residual, at * (gidx)sizeof(float), values * (gidx)sizeof(float)));
  if (job->codes) TRY(cuda_put(dev, job->codes, 0, codes));
  return job->quality ? cuda_put(dev, job->quality, 0, quality) : OK;
}
