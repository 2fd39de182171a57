/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: the memory that the ranks of a node share is not available.
 *
 * FAULT_WINDOW=room: /dev/shm is full.  =window: MPI fails to allocate the memory.  =page: a page
 * is missing when it is first written.  With FAULT_RANK=R this happens only on rank R of mpirun.
 * With NODE_RANKS=N every N ranks of a machine appear as a node. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MPI_ERR_OTHER_OF_OPEN_MPI = 16 };

static int fails(const char *kind)
{
  const char *text = getenv("FAULT_WINDOW"), *of = getenv("FAULT_RANK");
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  return text && !strcmp(text, kind) && (!of || (rank && !strcmp(of, rank)));
}

/* The system's function of this name, which this library replaces. */
#define NEXT(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))

int statvfs(const char *restrict path, struct statvfs *restrict room)
{
  int error = NEXT(int (*)(const char *, struct statvfs *), "statvfs")(path, room);
  if (!strcmp(path, "/dev/shm") && fails("room")) room->f_bavail = 1;
  return error;
}

int MPI_Win_allocate_shared(intptr_t bytes, int unit, void *info, void *ranks, void *at,
                            void *window)
{
  typedef int make(intptr_t, int, void *, void *, void *, void *);
  if (fails("window")) return MPI_ERR_OTHER_OF_OPEN_MPI;
  return NEXT(make *, "MPI_Win_allocate_shared")(bytes, unit, info, ranks, at, window);
}

/* With NODE_RANKS: consecutive ranks form a node.  The program only splits the communicator of all
 * ranks in this way. */
int MPI_Comm_split_type(void *ranks, int type, int key, void *info, void **node)
{
  typedef int split(void *, int, int, void *, void **);
  typedef int divide(void *, int, int, void **);
  const char *of = getenv("NODE_RANKS"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (of && rank) return NEXT(divide *, "MPI_Comm_split")(ranks, atoi(rank) / atoi(of), key, node);
  return NEXT(split *, "MPI_Comm_split_type")(ranks, type, key, info, node);
}

/* The program touches its pages by reading zeros into them from /dev/zero: the device with the
 * major number 1 and the minor number 5. */
ssize_t read(int file, void *bytes, size_t count)
{
  struct stat facts;
  int is_zero = fails("page") && fstat(file, &facts) == 0 && S_ISCHR(facts.st_mode) &&
                facts.st_rdev == makedev(1, 5);
  if (!is_zero) return syscall(SYS_read, file, bytes, count);
  errno = EFAULT;
  return -1;
}
