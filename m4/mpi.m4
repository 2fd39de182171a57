# SAGITTA_MPI sets MPI_CFLAGS, MPI_LIBS and MPIEXEC.  The flags of MPI come from pkg-config.  If it
# has none, CC must be a compiler wrapper such as mpicc.  The launcher of another MPI would start
# processes that do not know of each other.  So headers and launcher must be of the same MPI, as far
# as their MPIs are recognised.
AC_DEFUN([SAGITTA_MPI], [
AC_ARG_VAR([MPIEXEC], [MPI launcher of the tests (default: mpirun)])
PKG_CHECK_MODULES([MPI], [ompi-c], [],
  [AC_CHECK_HEADER([mpi.h], [], [AC_MSG_ERROR([no MPI found: install libopenmpi-dev, or set CC=mpicc])])])
sagitta_launcher=$MPIEXEC
AC_CHECK_PROGS([MPIEXEC], [mpirun mpiexec], [mpirun])

AC_MSG_CHECKING([whether headers and launcher are of one MPI])
sagitta_flags=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
sagitta_headers=unknown
AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef OPEN_MPI
#error another
#endif
]])], [sagitta_headers='Open MPI'],
  [AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef MPICH_NUMVERSION
#error another
#endif
]])], [sagitta_headers=MPICH])])
CPPFLAGS=$sagitta_flags
sagitta_started=unknown
# If MPIEXEC was not set, also try the names under which Debian has Open MPI and MPICH.
for sagitta_try in "$MPIEXEC" mpirun.openmpi mpiexec.mpich; do
  case `$sagitta_try --version 2> /dev/null | tr '\n' ' '` in
    *'Open MPI'* | *OpenRTE* | *PRRTE*) sagitta_found='Open MPI' ;;
    *HYDRA* | *'Intel(R) MPI'*) sagitta_found=MPICH ;; # or an MPI derived from MPICH
    *) sagitta_found=unknown ;;
  esac
  test "$sagitta_try" != "$MPIEXEC" || sagitta_started=$sagitta_found
  AS_IF([test "$sagitta_headers" = unknown || test "$sagitta_started" = unknown], [break])
  AS_IF([test "$sagitta_found" = "$sagitta_headers"],
    [MPIEXEC=$sagitta_try sagitta_started=$sagitta_found; break])
  AS_IF([test -n "$sagitta_launcher"], [break])
done
AC_MSG_RESULT([$sagitta_headers, $sagitta_started ($MPIEXEC)])
AS_IF([test "$sagitta_headers" != unknown && test "$sagitta_started" != unknown &&
  test "$sagitta_headers" != "$sagitta_started"],
  [AC_MSG_ERROR([the headers are those of $sagitta_headers, and the launcher '$MPIEXEC' is that of $sagitta_started: each process would take itself to be alone; set MPIEXEC to the launcher of $sagitta_headers, or CC to the wrapper of $sagitta_started with MPI_CFLAGS=' ' and MPI_LIBS=' '])])
])
