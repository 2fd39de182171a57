# Arithmetic that CPUs and GPUs share.
libsagitta_a_SOURCES += %D%/arrow_body.h
