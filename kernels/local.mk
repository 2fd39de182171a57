# Arithmetic that CPUs and GPUs share.
libsagitta_a_SOURCES += %D%/arrow_body.h
# What NVRTC compiles at run time: the files become texts in the program.
kernel_files = \
  %D%/types.h %D%/plan.h %D%/warp.h %D%/barriers.h %D%/lists.h \
  %D%/pick.cu %D%/pack.cu \
  %D%/route.cu %D%/select.h %D%/stages.h %D%/stages_bulk.h %D%/stages_copy.h \
  %D%/merge.cu \
  %D%/filter_types.h %D%/filter_bound.h %D%/halve.h %D%/halve_atoms.cu %D%/halve_rows.cu \
  %D%/filter.cu %D%/filter.h %D%/filter_wgmma.h %D%/filter_mma.h \
  %D%/guess.cu %D%/cut.cu %D%/chains.cu %D%/choose.cu \
  %D%/gram.cu %D%/codes.cu %D%/codes_row.h %D%/codes_gram.h %D%/codes_factor.h %D%/codes_quality.h
EXTRA_DIST += $(kernel_files) %D%/README scripts/kernel_texts
CLEANFILES += src/device/kernel_texts.c
src/device/kernel_texts.c: $(kernel_files) scripts/kernel_texts
	$(AM_V_GEN)$(MKDIR_P) src/device && \
	  $(SHELL) $(srcdir)/scripts/kernel_texts $(srcdir)/%D% > $@.tmp && mv $@.tmp $@
