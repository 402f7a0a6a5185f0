# The PJRT backend: runtime/pjrt, where the header of PJRT's C interface is found (scripts/setup.sh unpacks it; SKEIN_PJRT=OFF
# turns the backend off). Plugins are loaded when one is used. Without the header the line of
# skein/backends/backends.def is backend_no_pjrt.cc.
set(SKEIN_PJRT "$ENV{SKEIN_PJRT}" CACHE STRING "OFF: no PJRT backend; otherwise where pjrt_c_api.h is found")
file(GLOB SKEIN_PJRT_HEADERS ${CMAKE_SOURCE_DIR}/.deps/xla-cpu-pjrt-0.0.1/xla_plugins/xla_cpu_pjrt/include)
set(SKEIN_HAS_PJRT OFF)
if(SKEIN_PJRT_HEADERS AND NOT SKEIN_PJRT STREQUAL "OFF" AND NOT SKEIN_FUZZ)
  set(SKEIN_HAS_PJRT ON)
  set(SKEIN_PJRT_LEFT_OUT "/backend_no_pjrt\\.cc$")
else()
  set(SKEIN_PJRT_LEFT_OUT "/runtime/pjrt/|/backend_pjrt\\.cc$")
  message(STATUS "no PJRT backend: scripts/setup.sh unpacks the header that it needs")
endif()

# The tests of ops on StableHLO rules, and those of the backend.
function(skein_pjrt_tests)
  if(NOT SKEIN_HAS_PJRT)
    return()
  endif()
  # A plugin that lets calls of another one fail; pjrt_compile_test starts the program on it, too.
  add_library(skein_faulty_pjrt_plugin MODULE tests/pjrt/faulty_plugin/faulty_plugin.cc)
  target_include_directories(skein_faulty_pjrt_plugin SYSTEM PRIVATE ${SKEIN_PJRT_HEADERS})
  set_target_properties(skein_faulty_pjrt_plugin PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  add_dependencies(pjrt_compile_test skein_faulty_pjrt_plugin)
  file(GLOB sources CONFIGURE_DEPENDS tests/pjrt/*.cc)
  add_executable(skein_pjrt_test ${sources})
  target_link_libraries(skein_pjrt_test skein_op_tests skein_backends skein_cuda GTest::gtest)
  target_compile_definitions(skein_pjrt_test PRIVATE SKEIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(skein_pjrt_test skein_faulty_pjrt_plugin)
  skein_precompiled(skein_pjrt_test skein_test_headers)
  skein_discover_tests(skein_pjrt_test pjrt/ 900)
  target_include_directories(skein_pjrt_test SYSTEM PRIVATE ${SKEIN_PJRT_HEADERS})

  # What stands for Neuron's plugin.
  add_library(fake_libneuronpjrt MODULE tests/neuron/fake_libneuronpjrt.cc)
  target_include_directories(fake_libneuronpjrt SYSTEM PRIVATE ${SKEIN_PJRT_HEADERS})
  set_target_properties(fake_libneuronpjrt PROPERTIES OUTPUT_NAME neuronpjrt
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/neuron)
  add_dependencies(neuron_test fake_libneuronpjrt)

  add_test(NAME pjrt/same_quality COMMAND tests/scripts/same_quality_test.py WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(pjrt/same_quality PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77)

  # What transformers recorded: one golden of each family, and all of them.
  set(training "*/DecoderGoldens.HundredSteps/")
  skein_pjrt_goldens(goldens 20 ${training}llama_multi_head:${training}mistral_window:${training}qwen2_*:${training}qwen3_tied_biases)
  skein_pjrt_goldens(goldens_all 100 *)
endfunction()

function(skein_pjrt_goldens name steps filter)
  add_test(NAME pjrt/${name} COMMAND decoder_goldens_test --gtest_filter=${filter})
  set_tests_properties(pjrt/${name} PROPERTIES TIMEOUT 1800 SKIP_REGULAR_EXPRESSION "SKIPPED"
    ENVIRONMENT "SKEIN_TEST_DEVICE=pjrt;SKEIN_TEST_STEPS=${steps};OMP_WAIT_POLICY=passive;TEST_TMPDIR=${CMAKE_BINARY_DIR}/tmp")
endfunction()
