# Gives every test its labels by cmake/test_parts.cmake: those of add_test while CMake runs, those that
# GoogleTest programs list when ctest reads what they listed.
include(${CMAKE_SOURCE_DIR}/cmake/test_parts.cmake)

# A folder's CMakeLists.txt ends with it.
function(skein_label_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    skein_labels_of(${test} labels)
    set_tests_properties(${test} PROPERTIES LABELS "${labels}")
  endforeach()
  # What gtest_discover_tests wrote sets PROGRAM_TESTS for each program.
  get_property(programs DIRECTORY PROPERTY SKEIN_TEST_PROGRAMS)
  set(lists ${programs})
  list(TRANSFORM lists REPLACE "(.+)" "\${\\1_TESTS}")
  string(REPLACE ";" " " lists "${lists}")
  set(file ${CMAKE_CURRENT_BINARY_DIR}/label_tests.cmake)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
include("@CMAKE_SOURCE_DIR@/cmake/test_parts.cmake")
foreach(test @lists@)
  skein_labels_of("${test}" labels)
  set_tests_properties("${test}" PROPERTIES LABELS "${labels}")
  if(test MATCHES "${SKEIN_ALONE}")
    set_tests_properties("${test}" PROPERTIES RUN_SERIAL ON)
  endif()
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# skein_suite: all that scripts/test.sh needs; skein_unit: the programs of unit tests; check_PART: all that a part
# of scripts/check.sh needs.
function(skein_suite)
  get_property(programs GLOBAL PROPERTY SKEIN_TEST_PROGRAMS)
  add_custom_target(skein_suite DEPENDS ${programs} skein skein_file_faults skein_system_faults skein_on_emulated_cuda)
  set(unit ${programs})
  list(FILTER unit INCLUDE REGEX "^(skein_.*|fuzz_seeds)_test$")
  list(FILTER unit EXCLUDE REGEX "cuda")
  add_custom_target(skein_unit DEPENDS ${unit})
  foreach(row ${SKEIN_LEFT_OUT})
    string(REGEX REPLACE " .*" "" part "${row}")
    if(NOT TARGET check_${part})
      add_custom_target(check_${part})
    endif()
  endforeach()
  add_dependencies(check_layouts layouts_test skein)
  add_dependencies(check_objects skein)
  add_dependencies(check_environment skein full_disk_test resume_test run_record_test supervised_worker_test
                   parallel_failure_test moved_run_test best_checkpoint_test generate_test bad_input_test
                   command_line_test data_commands_test validation_test)
  add_dependencies(check_cuda_emulated skein_cuda_emulated_test skein_on_emulated_cuda bit_identity_test
                   decoder_goldens_on_emulated_cuda_test thread_ranks_on_emulated_cuda_test
                   train_bench_on_emulated_cuda kernel_bench_on_emulated_cuda)
  if(TARGET skein_cuda_test)
    add_dependencies(skein_suite skein_cuda_test)
  endif()
  if(TARGET skein_pjrt_test)
    add_dependencies(check_pjrt skein_pjrt_test decoder_goldens_test)
  endif()
  get_property(benchmarks GLOBAL PROPERTY SKEIN_BENCHMARKS)
  add_dependencies(check_bench ${benchmarks})
endfunction()
