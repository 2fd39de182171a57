# What surrounds the program: revision, set-up scripts, templates, man pages, completion, checks.
EXTRA_DIST += %D%/bench_page %D%/gpu_check %D%/gpu_several %D%/bench_torch.py %D%/bench_sae.py %D%/sae_peers.py %D%/bench_features.py %D%/bench_worlds.py %D%/scale_model.py %D%/scale_try
EXTRA_DIST += .clang-format %D%/bootstrap %D%/check %D%/plot %D%/plot_time %D%/plot_live %D%/report \
  %D%/report_page.html %D%/gallery %D%/quickstart \
  %D%/revision %D%/setup %D%/wheel %D%/sdist %D%/python/autotools.py %D%/python/sagitta_dictionaries.py %D%/peers.txt %D%/peers-full.txt input/README.md input/minilm-l3-kjv-8k.h5 input/minilm-l3-kjv-next.h5 \
  input/minilm-l3-kjv-attention.h5 input/minilm-l3-kjv-tokens.npy input/minilm-l3-kjv-words.txt output/README.md
dist_doc_DATA += README.md LICENSE CONTRIBUTING.md CHANGELOG.md CITATION.cff
dist_pkgdata_DATA = %D%/slurm/job.sbatch %D%/slurm/encode_gpu.sbatch \
  %D%/slurm/encode_array.sbatch %D%/slurm/merge.sbatch %D%/slurm/chain \
  input/minilm.in input/minilm-refit.in
# The Python package, as a folder that pip installs and that PYTHONPATH may name.
pythonpackagedir = $(pkgdatadir)/python
dist_pythonpackage_DATA = %D%/python/pyproject.toml %D%/python/README.md
pythonmodulesdir = $(pythonpackagedir)/sagitta
dist_pythonmodules_DATA = %D%/python/sagitta/__init__.py %D%/python/sagitta/results.py \
  %D%/python/sagitta/program.py %D%/python/sagitta/arrays.py %D%/python/sagitta/job.py \
  %D%/python/sagitta/calls.py %D%/python/sagitta/check.py %D%/python/sagitta/errors.py %D%/python/sagitta/features.py %D%/python/sagitta/words.py %D%/python/sagitta/library.py \
  %D%/python/sagitta/dictionary.py %D%/python/sagitta/sklearn.py \
  %D%/python/sagitta/torch.py %D%/python/sagitta/live.py %D%/python/sagitta/least_squares.py \
  %D%/python/sagitta/hooks.py %D%/python/sagitta/interventions.py %D%/python/sagitta/capture.py \
  %D%/python/sagitta/comparison.py %D%/python/sagitta/plots.py %D%/python/sagitta/trials.py %D%/python/sagitta/variance.py %D%/python/sagitta/exports.py %D%/python/sagitta/feature_page.py %D%/python/sagitta/anndata.py %D%/python/sagitta/late.py %D%/python/sagitta/gpu.py %D%/python/sagitta/hints.py %D%/python/sagitta/memory.py %D%/python/sagitta/py.typed
pythonexamplesdir = $(pythonpackagedir)/examples
dist_pythonexamples_SCRIPTS = %D%/python/examples/faithfulness.py \
  %D%/python/examples/capture_attention.py %D%/python/examples/capture_mixer.py %D%/python/examples/write_rows.py %D%/python/examples/watch_features.py
dist_bashcomp_DATA = %D%/completion/sagitta %D%/completion/sagitta-bench

# Recipes for Spack, EasyBuild and containers, and a modulefile with the folders of this
# installation.
EXTRA_DIST += %D%/packaging/spack/repo.yaml %D%/packaging/spack/packages/sagitta/package.py \
  %D%/packaging/Sagitta-0.1.0-foss-2024a.eb %D%/packaging/Dockerfile \
  %D%/packaging/Dockerfile.dockerignore %D%/packaging/sagitta.def %D%/packaging/container_build \
  %D%/packaging/installcheck %D%/packaging/old_libc %D%/packaging/modulefile.in
modulefiledir = $(datadir)/modulefiles/sagitta
nodist_modulefile_DATA = %D%/packaging/$(PACKAGE_VERSION)
CLEANFILES += $(nodist_modulefile_DATA)
$(nodist_modulefile_DATA): %D%/packaging/modulefile.in Makefile
	@$(MKDIR_P) %D%/packaging
	$(AM_V_GEN)sed -e 's|{VERSION}|$(PACKAGE_VERSION)|g; s|{bindir}|$(bindir)|g' \
	  -e 's|{mandir}|$(mandir)|g; s|{docdir}|$(docdir)|g; s|{pkgdatadir}|$(pkgdatadir)|g' \
	  $(srcdir)/%D%/packaging/modulefile.in > $@
if MAN_PAGES
man_pages_at = $(mandir)
endif
installcheck-local:
	$(SHELL) $(srcdir)/%D%/packaging/installcheck '$(DESTDIR)' '$(PACKAGE_VERSION)' '$(PYTHON)' \
	  '$(bindir)' '$(man_pages_at)' '$(pkgdatadir)' '$(docdir)' '$(bashcompdir)' \
	  '$(modulefiledir)/$(PACKAGE_VERSION)'

# The revision of the source from which a program is built.  Every build computes it, but writes the
# header only if it has changed.
BUILT_SOURCES += src/cli/revision.h
CLEANFILES += src/cli/revision.h
src/cli/revision.h: FORCE
	@$(SHELL) $(srcdir)/%D%/revision $(srcdir) $@
src/cli/program.$(OBJEXT): src/cli/revision.h
FORCE:

dist-hook:
	sed -n 's/.*REVISION "\(.*\)"/\1/p' src/cli/revision.h > $(distdir)/.revision

# Man pages come from --help; configure has command_pages from src/cli/commands.def.  A release
# archive has the pages, for machines without help2man.  A checkout on such a machine makes none.
man_pages = doc/man/sagitta.1 $(command_pages) $(bench_pages)
bench_pages = doc/man/sagitta-bench.1 doc/man/sagitta-bench-route.1 \
  doc/man/sagitta-bench-solve.1 doc/man/sagitta-bench-terminal.1 \
  doc/man/sagitta-bench-update.1 doc/man/sagitta-bench-dense.1 doc/man/sagitta-bench-train.1 \
  doc/man/sagitta-bench-harvest.1 doc/man/sagitta-bench-mixer.1 doc/man/sagitta-bench-serve.1 \
  doc/man/sagitta-bench-write.1 doc/man/sagitta-bench-verify.1
EXTRA_DIST += %D%/man_page
if MAN_PAGES
dist_man_MANS += $(man_pages)
CLEANFILES += $(man_pages)
$(man_pages): sagitta$(EXEEXT) sagitta-bench$(EXEEXT)
	$(AM_V_GEN)HELP2MAN='$(HELP2MAN)' $(SHELL) $(srcdir)/%D%/man_page $(srcdir) $@
endif

# sagitta-bench as a library, for a process that has a main of its own: scripts/bench_torch.py.
# CFLAGS must have -fPIC.
sagitta-bench.so: $(sagitta_bench_OBJECTS) $(sagitta_bench_DEPENDENCIES)
	$(AM_V_CCLD)$(CC) $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic \
	  -o $@ $(sagitta_bench_OBJECTS) $(LDADD) $(LIBS)
CLEANFILES += sagitta-bench.so

# Floors, form, tree and names are tests like the others.
TESTS += %D%/check_floors.sh %D%/check_format.sh %D%/check_tree.sh %D%/check_house.sh \
  %D%/check_names.py
EXTRA_DIST += %D%/check_floors.sh %D%/check_format.sh %D%/check_tree.sh %D%/check_house.sh \
  %D%/check_names.py \
  %D%/headless.txt %D%/tap.sh %D%/pre-commit.sample

format:
	cd $(srcdir) && find $$(ls -d src kernels tests 2> /dev/null) \( -name '*.[ch]' -o -name '*.cu' \) \
	  ! -path src/config.h ! -path src/cli/revision.h -exec clang-format -i {} +
.PHONY: FORCE format
