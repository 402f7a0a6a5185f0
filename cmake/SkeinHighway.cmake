# Kernels are compiled for the same instruction sets whatever Highway is there. Later ones than Highway 1.0.3
# (Debian 12) also make AVX3_ZEN4 and AVX3_SPR, of which nothing here would use more than of AVX3: bf16
# products and tiles are chosen by the CPU's own flags (skein/ops/simd/cpu_kind.h), and the kernels for them
# are compiled for AVX3. Where Highway has none of these, nothing is defined.
find_file(SKEIN_HIGHWAY_TARGETS hwy/detect_targets.h)
if(SKEIN_HIGHWAY_TARGETS AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  file(STRINGS ${SKEIN_HIGHWAY_TARGETS} targets REGEX "^#define HWY_AVX3_(ZEN4|SPR) ")
  list(TRANSFORM targets REPLACE "^#define (HWY_AVX3_[A-Z0-9]+) .*" "\\1")
  if(targets)
    list(REVERSE targets)  # from the oldest on
    list(JOIN targets "|" targets)
    add_compile_definitions("SKEIN_NEWER_TARGETS=(HWY_AVX3_DL|${targets})" HWY_DISABLED_TARGETS=SKEIN_NEWER_TARGETS)
  endif()
endif()
