# The CUDA backend: skein_cuda, which every program links. It is one of
#   real       where nvcc is found (SKEIN_CUDA=OFF, as a variable or in the environment, turns it off, ON
#              makes it an error that nvcc is missing; OFF_ONCE, of scripts/test.sh, is OFF until CMake runs
#              again); cuBLASLt, cuDNN and NCCL are loaded when a GPU is used, not when a program starts
#   absent     elsewhere: the line of skein/backends/backends.def only plans (backend_no_cuda.cc), and
#              to train with device.kind = "cuda" is an error that says so
# and beside it, for the tests, always skein_cuda_emulated: the same sources compiled as C++ against
# tests/cuda_emulation, where kernels run on the CPU.
set(SKEIN_CUDA "$ENV{SKEIN_CUDA}" CACHE STRING "OFF: no CUDA backend; otherwise where nvcc is found")
if(SKEIN_CUDA_ONCE STREQUAL "OFF")
  unset(SKEIN_CUDA_ONCE CACHE)
  set(SKEIN_CUDA OFF)
endif()
set(SKEIN_CUDA_ARCHITECTURES 90 CACHE STRING "compute capability of the CUDA kernels")
# What belongs to no room's library: kernels, what knows CUDA, and the list of backends.
set(SKEIN_CUDA_SOURCES "/ops/cuda/|/runtime/cuda/|/comm/nccl/|_cuda\\.cc$|/backends/backends\\.cc$")

include(CheckLanguage)
if(NOT SKEIN_CUDA STREQUAL "OFF" AND NOT SKEIN_FUZZ AND NOT SKEIN_SANITIZE)
  check_language(CUDA)
endif()
set(SKEIN_HAS_CUDA OFF)
if(CMAKE_CUDA_COMPILER AND NOT SKEIN_CUDA STREQUAL "OFF")  # it stays in the cache when turned off
  set(SKEIN_HAS_CUDA ON)
  set(CMAKE_CUDA_ARCHITECTURES ${SKEIN_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc has it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)  # as -isystem it hides math.h
  find_package(CUDAToolkit REQUIRED)
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${SKEIN_CCACHE})
  endif()
  message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for sm_${SKEIN_CUDA_ARCHITECTURES}")
elseif(SKEIN_CUDA STREQUAL "ON")
  message(FATAL_ERROR "SKEIN_CUDA=ON asks for the CUDA backend, and nvcc was not found: install the CUDA toolkit, "
                      "or add its bin folder to PATH, or leave SKEIN_CUDA out")
else()
  message(STATUS "no CUDA backend")
endif()

function(skein_cuda)
  if(SKEIN_HAS_CUDA)
    skein_cuda_sources(sources)
    set(hopper)
    if(SKEIN_CUDA_ARCHITECTURES STREQUAL "90")
      set(hopper ${sources})
      list(FILTER hopper INCLUDE REGEX "_warpgroup_cuda\\.cu$")
      list(REMOVE_ITEM sources ${hopper})
    endif()
    add_library(skein_cuda OBJECT ${sources})
    target_link_libraries(skein_cuda PUBLIC skein_backends CUDA::cudart_static ${CMAKE_DL_LIBS})
    file(GLOB cudnn_frontend ${CMAKE_SOURCE_DIR}/.deps/cudnn-frontend-*/include)
    find_path(SKEIN_CUDNN_HEADERS cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(cudnn_frontend AND SKEIN_CUDNN_HEADERS)
      target_include_directories(skein_cuda SYSTEM PRIVATE ${cudnn_frontend} ${SKEIN_CUDNN_HEADERS})
      set_source_files_properties(${CMAKE_SOURCE_DIR}/skein/ops/attention/cuda/attention_cudnn_cuda.cc
                                  PROPERTIES COMPILE_DEFINITIONS SKEIN_CUDNN)
    else()
      message(STATUS "no cuDNN: its headers, or those of its frontend (scripts/setup.sh), are not there")
    endif()
    target_compile_definitions(skein_cuda PRIVATE SKEIN_CUDA_ARCHITECTURES=${SKEIN_CUDA_ARCHITECTURES})
    target_compile_definitions(skein_cuda PRIVATE FMT_USE_CONSTEXPR=1)  # fmt 9 guesses wrong for nvcc
    set(host_options -Wall,-Wextra,-Wno-missing-field-initializers,-Wno-unknown-pragmas,-ffp-contract=off)
    target_compile_options(skein_cuda PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-lineinfo;-Xcompiler=${host_options}>")
    if(hopper)  # wgmma is in sm_90a only, which no other architecture runs: a library of its own
      add_library(skein_cuda_hopper OBJECT ${hopper})
      set_target_properties(skein_cuda_hopper PROPERTIES CUDA_ARCHITECTURES 90a-real)
      target_link_libraries(skein_cuda_hopper PUBLIC skein_backends CUDA::cudart_static)
      get_target_property(definitions skein_cuda COMPILE_DEFINITIONS)
      get_target_property(options skein_cuda COMPILE_OPTIONS)
      target_compile_definitions(skein_cuda_hopper PRIVATE ${definitions} SKEIN_WGMMA)
      target_compile_options(skein_cuda_hopper PRIVATE ${options})
      target_sources(skein_cuda INTERFACE $<TARGET_OBJECTS:skein_cuda_hopper>)
    endif()
  else()
    add_library(skein_cuda OBJECT skein/backends/backends.cc skein/backends/backend_no_cuda.cc)
    target_link_libraries(skein_cuda PUBLIC skein_backends)
  endif()
endfunction()

function(skein_cuda_sources result)
  set(root ${CMAKE_SOURCE_DIR}/skein)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/ops/*_cuda.cu ${root}/ops/*_cuda.cc ${root}/ops/cuda/*.cc
       ${root}/runtime/cuda/*.cc ${root}/runtime/cuda/*.cu ${root}/comm/nccl/*.cc ${root}/comm/nccl/*.cu)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(APPEND sources ${root}/backends/backend_cuda.cc ${root}/backends/backends.cc)
  set(${result} ${sources} PARENT_SCOPE)
endfunction()
