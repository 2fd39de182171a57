# SAGITTA_PETSC sets PETSC_CFLAGS, PETSC_LIBS and HAVE_PETSC.  Only tests and benchmarks use PETSc.
# Of its compiler flags only the folders of headers are kept.
AC_DEFUN([SAGITTA_PETSC], [
AC_ARG_WITH([petsc], [AS_HELP_STRING([--with-petsc], [compare with PETSc in the tests])],
  [], [with_petsc=no])
AS_IF([test "x$with_petsc" != xno], [
  PKG_CHECK_MODULES([PETSC], [petsc],
    [AC_DEFINE([HAVE_PETSC], [1], [Tests compare with PETSc.])])
  PETSC_CFLAGS=$(printf '%s\n' $PETSC_CFLAGS | sed -n 's/^-I/-isystem /p')])
])
