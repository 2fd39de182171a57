# SAGITTA_ZMQ sets ZMQ_CFLAGS, ZMQ_LIBS, the word zmq_found for the summary, and HAVE_ZMQ: the
# transport of `sagitta serve`.  Everything else builds without it.
AC_DEFUN([SAGITTA_ZMQ], [
AC_ARG_WITH([zmq],
  [AS_HELP_STRING([--with-zmq],
    [`sagitta serve` by ZeroMQ 4.3: yes insists, no does without (default: where there is one)])],
  [], [with_zmq=auto])
zmq_found=no
AS_IF([test "x$with_zmq" != xno], [
  PKG_CHECK_MODULES([ZMQ], [libzmq >= 4.3], [zmq_found=yes],
    [AS_IF([test "x$with_zmq" != xauto],
      [AC_MSG_ERROR([no ZeroMQ 4.3 found: install libzmq3-dev, or leave out --with-zmq])])])])
AS_IF([test "x$zmq_found" = xyes], [AC_DEFINE([HAVE_ZMQ], [1], [Clients connect by ZeroMQ.])])
])
