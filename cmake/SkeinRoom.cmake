# A room is a folder of skein/: its *.cc make one static library skein_<room>, its *_test.cc one test
# program skein_<room>_test. A room that has no source yet is an interface library.
#
# With SKEIN_FUZZ the house is only its *_fuzz.cc, one libFuzzer program each, and what reads input from
# outside: sanitized kernels take minutes to compile, and no fuzzer runs one.
include(GoogleTest)

function(skein_room room)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS skein/${room}/*.cc)
  set(tests ${all})
  set(fuzzers ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  if(SKEIN_FUZZ)
    set(tests "")
    list(FILTER sources INCLUDE REGEX "/skein/(base|tensor|data|checkpoint|model)/|/skein/train/config|/skein/schedule/hardware")
  endif()

  if(sources)
    add_library(skein_${room} STATIC ${sources})
    target_link_libraries(skein_${room} PUBLIC ${ARG_LIBS})
  else()
    add_library(skein_${room} INTERFACE)
    target_link_libraries(skein_${room} INTERFACE ${ARG_LIBS})
  endif()
  if(tests)
    add_executable(skein_${room}_test ${tests})
    target_link_libraries(skein_${room}_test skein_${room} GTest::gtest_main)
    target_compile_definitions(skein_${room}_test PRIVATE SKEIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(skein_${room}_test TEST_PREFIX "${room}/" DISCOVERY_TIMEOUT 120
                         PROPERTIES TIMEOUT 300 ENVIRONMENT OMP_WAIT_POLICY=passive)
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

# The one program, build/skein.
function(skein_binary)
  file(GLOB sources CONFIGURE_DEPENDS skein/cli/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_executable(skein ${sources})
    target_link_libraries(skein skein_train skein_launch)
    set_target_properties(skein PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  endif()
endfunction()

# Tests that cross rooms: one program a file of tests/.
function(skein_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} skein_train skein_launch GTest::gtest_main)
    target_compile_definitions(${name} PRIVATE SKEIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                               SKEIN_BINARY="${CMAKE_BINARY_DIR}/skein")
    gtest_discover_tests(${name} TEST_PREFIX "tests/" DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 900)
  endforeach()
endfunction()

# Benchmarks: one program a file of bench/.
function(skein_benchmarks folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_bench.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} skein_train skein_launch benchmark::benchmark)
  endforeach()
endfunction()
