/* SPDX-License-Identifier: BSD-3-Clause
 * The virtual file driver through which HDF5 reads and writes; each system call is a step of the
 * watchdog.
 *
 * Floor: io; included by src/io/h5/ only. */
#ifndef IO_H5_DRIVER_H
#define IO_H5_DRIVER_H

#include "io/h5/h5_impl.h"

/* Let a property list for opening files use this driver; negative if HDF5 refuses it. */
herr_t h5_driver_set(hid_t list);

/* For a new file: HDF5 places its own metadata before `base` if they fit, and after `end` if they
 * do not; the bytes between are for chunks with given addresses. */
void h5_driver_reserve(const void *handle, haddr_t base, haddr_t end);

/* While is_on, files that HDF5 creates keep their existing bytes and length, until
 * h5_driver_whole() says that the file is complete.  So a process that ends earlier does not cut
 * what others have written. */
void h5_driver_over(int is_on);
void h5_driver_whole(const void *handle);

/* Find the address of a chunk.  Until this thread calls h5_driver_found(), the driver does not
 * perform HDF5's transfers of a chunk, and only notes their address.  These are reads of raw data
 * if chunk is NULL, and otherwise the write of the data at `chunk`.  So finding an address costs
 * HDF5 one lookup.  H5Dget_chunk_info_by_coord() would walk through all chunks.  Other transfers,
 * such as writes of texts, are performed.  at: the address to write at; HADDR_UNDEF: any. */
void h5_driver_find(const void *chunk, haddr_t at);
/* Was exactly one transfer of `bytes` bytes noted?  *at <- its address. */
int h5_driver_found(size_t bytes, haddr_t *at);

/* out[bytes] <- the bytes of a file at address `at`, without HDF5.  handle is from
 * H5Fget_vfd_handle() for a file with this driver.  Several threads may call this at once.  Returns
 * 0 if not all bytes were read. */
int h5_driver_read(const void *handle, haddr_t at, size_t bytes, void *out);
/* The same for writing.  Returns the system's error, or 0. */
int h5_driver_write(const void *handle, haddr_t at, size_t bytes, const void *in);

/* Start writing these bytes to the disk, without waiting (base/retry.h).  Returns the system's
 * error, or 0. */
int h5_driver_push(const void *handle, haddr_t at, haddr_t bytes);

/* A handle of a file that HDF5 has not opened, such as one that another rank has created; NULL:
 * cannot open, see errno.  h5_driver_sync() and h5_driver_close() return the system's error, or
 * 0. */
const void *h5_driver_open(const char *path);
int h5_driver_sync(const void *handle);
/* Does the file still have the name by which it was opened? */
int h5_driver_is_named(const void *handle);
int h5_driver_close(const void *handle);

#endif
