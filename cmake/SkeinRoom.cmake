# A room is a folder of skein/: its *.cc make one static library skein_<room>, its *_test.cc one test
# program skein_<room>_test. A room that has no source yet is an interface library.
#
# With SKEIN_FUZZ the house is only its *_fuzz.cc, one libFuzzer program each, and what reads input from
# outside: sanitized kernels take minutes to compile, and no fuzzer runs one.
include(GoogleTest)

# The headers that most sources begin with are parsed once: skein_headers for the program and
# skein_test_headers, with GoogleTest, for the tests. What a source needs it still includes itself.
function(skein_precompiled_headers)
  set(names headers)
  if(SKEIN_HAS_TESTS)
    list(APPEND names test_headers)
  endif()
  foreach(name ${names})
    add_library(skein_${name} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
    target_precompile_headers(skein_${name} PRIVATE <cmake/precompiled.h>)  # a path that is the same in every checkout
  endforeach()
  if(NOT SKEIN_HAS_TESTS)
    return()
  endif()
  target_precompile_headers(skein_test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
  target_link_libraries(skein_test_headers PRIVATE GTest::gtest)
  target_compile_options(skein_test_headers PRIVATE -O1)
endfunction()

function(skein_precompiled target headers)
  if(SKEIN_FUZZ)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  # Nothing that a test itself computes needs more, and it takes the compiler a fifth less.
  if(headers STREQUAL skein_test_headers)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# Programs of tests and benchmarks are linked with lld where it is installed: it takes a quarter of the time of
# the default linker, and there are hundreds. The program itself is linked alike everywhere.
find_program(SKEIN_LLD ld.lld)
function(skein_quick_link target)
  if(SKEIN_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(${target} PRIVATE -fuse-ld=lld)
  endif()
endfunction()

# The tests of a program, for ctest; their labels are cmake/test_parts.cmake's.
# What they write lies in the build's own tmp/: names under /tmp may be another user's, or another build's.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/tmp)
function(skein_discover_tests target prefix timeout)
  skein_quick_link(${target})
  # The environment comes by env: gtest_discover_tests takes a list in PROPERTIES apart.
  set(emulator /usr/bin/env OMP_WAIT_POLICY=passive TMPDIR=${CMAKE_BINARY_DIR}/tmp
               TEST_TMPDIR=${CMAKE_BINARY_DIR}/tmp ${ARGN})
  set_target_properties(${target} PROPERTIES CROSSCOMPILING_EMULATOR "${emulator}")
  gtest_discover_tests(${target} TEST_PREFIX ${prefix} DISCOVERY_TIMEOUT 600 PROPERTIES TIMEOUT ${timeout})
  set_property(DIRECTORY APPEND PROPERTY SKEIN_TEST_PROGRAMS ${target})
  set_property(GLOBAL APPEND PROPERTY SKEIN_TEST_PROGRAMS ${target})
endfunction()

function(skein_room room)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS skein/${room}/*.cc)
  list(FILTER all EXCLUDE REGEX "${SKEIN_CUDA_SOURCES}|${SKEIN_PJRT_LEFT_OUT}")
  set(tests ${all})
  set(fuzzers ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  if(NOT SKEIN_HAS_TESTS)
    set(tests "")
  endif()
  if(SKEIN_FUZZ)
    # A file that a fuzzer needs and that is not among these shows when it is linked.
    list(FILTER sources INCLUDE REGEX "/skein/(base|tensor|bpe|jinja|data|chat|objects|model|ir|ops)/|/skein/prepare/(clean|read)/|/skein/evaluate/yaml/|/skein/serve/(http/(http_request|request_)|api/(api_error|generation_request|json_fields))|/skein/prepare/dedup/hashing/words|/skein/checkpoint/(format/(boxes|convert|cover_sum|manifest|safetensors|shard_index|timeline)|hugging_face/|save/(part|part_manifest)\\.cc)|/skein/comm/collective\\.cc|/skein/replica/record\\.cc|/skein/supervise/records\\.cc|/skein/config/(config|check|evaluate_fields|fields|length|lookup|notes|text|written_names|node_range)\\.cc|/skein/schedule/hardware")
    list(FILTER sources EXCLUDE REGEX "/skein/ops/.*(_cpu|_avx512|_ceiling|/ops|/cpu_kind|algorithm_cache)\\.cc$|/skein/ops/(matmul|cuda|clip_scale|offload|pipeline|sum_squares)/|/clean/(clean|page|report)\\.cc$|/data/(corpus/writer|lanes/(loader|packer)|learn/(byte_level_train|stats|tokenizer_train))\\.cc$|/ir/(program|text_|verify|shared_rows)|/bpe/train_merges|/objects/(ranges|writer)")
  endif()

  if(sources)
    add_library(skein_${room} STATIC ${sources})
    target_link_libraries(skein_${room} PUBLIC ${ARG_LIBS})
    skein_precompiled(skein_${room} skein_headers)
  else()
    add_library(skein_${room} INTERFACE)
    target_link_libraries(skein_${room} INTERFACE ${ARG_LIBS})
  endif()
  if(tests)
    # Tests of ops run on the device that a program chooses: they are compiled once for all of them.
    if(room STREQUAL ops)
      set(op_tests ${tests})
      list(FILTER op_tests EXCLUDE REGEX "_cpu_test\\.cc$|/simd_test\\.cc$|_rules_test\\.cc$")
      list(REMOVE_ITEM tests ${op_tests})
      add_library(skein_op_tests OBJECT ${op_tests})
      target_link_libraries(skein_op_tests PUBLIC skein_backends GTest::gtest)
      skein_precompiled(skein_op_tests skein_test_headers)
      set(objects skein_op_tests)
    endif()
    add_executable(skein_${room}_test ${tests})
    target_link_libraries(skein_${room}_test ${objects} skein_${room} skein_cuda skein_test_main)
    skein_precompiled(skein_${room}_test skein_test_headers)
    skein_discover_tests(skein_${room}_test ${room}/ 900)
  endif()
  if(SKEIN_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(name ${fuzzer} NAME_WE)
      add_executable(${name} ${fuzzer})
      target_link_libraries(${name} skein_${room})
      target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()

# The page of `skein report --html`: what is edited as HTML, CSS and JavaScript becomes a source of its room.
function(skein_report_page)
  set(folder ${CMAKE_SOURCE_DIR}/skein/record/report/html)
  set(out ${CMAKE_BINARY_DIR}/report_page_sources.cc)
  set(rows "")
  set(files "")
  foreach(row kReportPageHtml=report_page.html kReportPageCss=report_page.css kReportChartsJs=report_charts.js
              kReportTablesJs=report_tables.js kReportPageJs=report_page.js)
    string(REPLACE "=" "=${folder}/" placed ${row})
    string(REGEX REPLACE "^[^=]*=" "" file ${placed})
    string(APPEND rows "${placed}|")
    list(APPEND files ${file})
  endforeach()
  add_custom_command(OUTPUT ${out} VERBATIM DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
                     COMMAND ${CMAKE_COMMAND} -DHEADER=skein/record/report/html/page_sources.h -DFILES=${rows} -DOUT=${out}
                             -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake)
  target_sources(skein_record PRIVATE ${out})
endfunction()

# The one program, build/skein.
function(skein_binary)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS skein/cli/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_executable(skein ${sources})
    target_link_libraries(skein skein_train skein_serve skein_embed skein_launch skein_health skein_prepare skein_cuda)
    skein_precompiled(skein skein_headers)
    set_target_properties(skein PROPERTIES ENABLE_EXPORTS ON)  # names in the stacks of a worker that hangs
    # A source that includes CLI11 takes 11 s, nearly all of it CLI11 itself: two batches instead of sixteen.
    set_target_properties(skein PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                          UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # Asked of git at each build, and compiled where the answer is another: a commit costs one link.
    set(commit ${CMAKE_BINARY_DIR}/commit.cc)
    add_custom_target(skein_commit BYPRODUCTS ${commit}
                      COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DOUT=${commit}
                              -P ${CMAKE_SOURCE_DIR}/cmake/write_commit.cmake)
    target_sources(skein PRIVATE ${commit})
    set_source_files_properties(${commit} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# Tests that cross rooms: one program a file of tests/.
function(skein_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} skein_train skein_serve skein_embed skein_launch skein_health skein_prepare skein_cuda skein_test_main)
    skein_precompiled(${name} skein_test_headers)
    skein_discover_tests(${name} tests/ 1800)
  endforeach()
endfunction()

# The seeds of all fuzz targets, run once through what this build compiled: one program for all. What finds
# new inputs is scripts/fuzz.sh.
function(skein_fuzz_seeds)
  file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS skein/*_fuzz.cc)
  set(table "")
  foreach(fuzzer ${fuzzers})
    get_filename_component(name ${fuzzer} NAME_WE)
    set_source_files_properties(${fuzzer} PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${name})
    string(APPEND table "FUZZER(${name})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fuzz_seeds/fuzzers.inc CONTENT "${table}")
  add_executable(fuzz_seeds_test tests/fuzz/seeds_test.cc ${fuzzers})
  target_include_directories(fuzz_seeds_test PRIVATE ${CMAKE_BINARY_DIR}/fuzz_seeds)
  target_link_libraries(fuzz_seeds_test skein_plan skein_prepare skein_launch skein_serve skein_cuda skein_test_main)
  skein_precompiled(fuzz_seeds_test skein_test_headers)
  skein_discover_tests(fuzz_seeds_test fuzz/ 900)
endfunction()

# Benchmarks: one program a file of bench/.
function(skein_benchmarks folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_bench.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} skein_train skein_infer skein_launch skein_prepare skein_cuda benchmark::benchmark)
    skein_precompiled(${name} skein_headers)
    skein_quick_link(${name})
    set_property(GLOBAL APPEND PROPERTY SKEIN_BENCHMARKS ${name})
  endforeach()
endfunction()

# What tests preload into the program: faults at calls on files, and file systems that this machine has not.
function(skein_file_faults)
  add_library(skein_file_faults MODULE tests/survival/file_faults.cc)
  add_library(skein_system_faults MODULE tests/survival/system_faults.cc)
  set_target_properties(skein_file_faults skein_system_faults PROPERTIES
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
