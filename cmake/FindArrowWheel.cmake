# Arrow and Parquet out of the pyarrow wheel that scripts/setup.sh unpacked (the wheel carries no CMake
# configuration). The libraries are copied beside the binary, so that it runs from any folder.
file(GLOB _arrow_dir ${CMAKE_SOURCE_DIR}/.deps/pyarrow-*/pyarrow)
file(GLOB _arrow_lib ${_arrow_dir}/libarrow.so.*)
file(GLOB _parquet_lib ${_arrow_dir}/libparquet.so.*)
file(GLOB _arrow_s3_lib ${_arrow_dir}/libarrow_s3.so.*)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ArrowWheel REQUIRED_VARS _arrow_lib _parquet_lib _arrow_s3_lib
  REASON_FAILURE_MESSAGE "run scripts/setup.sh first")

foreach(library arrow parquet arrow_s3)
  file(COPY ${_${library}_lib} DESTINATION ${CMAKE_BINARY_DIR}/lib)
  get_filename_component(_name ${_${library}_lib} NAME)
  if(NOT TARGET ArrowWheel::${library})
    add_library(ArrowWheel::${library} SHARED IMPORTED)
    set_target_properties(ArrowWheel::${library} PROPERTIES
      IMPORTED_LOCATION ${CMAKE_BINARY_DIR}/lib/${_name}
      INTERFACE_INCLUDE_DIRECTORIES ${_arrow_dir}/include)
  endif()
endforeach()
set(CMAKE_BUILD_RPATH "$ORIGIN/lib")
