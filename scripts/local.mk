# What surrounds the program: revision, set-up scripts, templates, man pages, completion, formatting.
EXTRA_DIST += %D%/bootstrap %D%/revision

# Which source a program was built from, checked at every build; touched only when it changes.
BUILT_SOURCES += src/cli/revision.h
CLEANFILES += src/cli/revision.h
src/cli/revision.h: FORCE
	@$(SHELL) $(srcdir)/%D%/revision $(srcdir) $@
FORCE:
.PHONY: FORCE

dist-hook:
	sed -n 's/.*REVISION "\(.*\)"/\1/p' src/cli/revision.h > $(distdir)/.revision
