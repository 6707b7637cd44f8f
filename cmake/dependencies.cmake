# Libraries from the system, CUDA headers from a toolkit of 13.0 or later or from the private
# folder of wheels (KKT_CUDA_HOME, set by the kkttune script). nvcc is never needed.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(LIBMD REQUIRED IMPORTED_TARGET libmd)

set(KKT_CUDA_HOME "" CACHE PATH "Folder with include/ of CUDA 13.0 or later; empty: searched")
find_path(KKT_CUDA_INCLUDE nvrtc.h
  HINTS ${KKT_CUDA_HOME}/include ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda/include PATH_SUFFIXES include REQUIRED)
set(cuda_version 0)
if(EXISTS ${KKT_CUDA_INCLUDE}/cuda.h)
  file(STRINGS ${KKT_CUDA_INCLUDE}/cuda.h cuda_version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX REPLACE "[^0-9]" "" cuda_version "${cuda_version}")
endif()
if(NOT cuda_version GREATER_EQUAL 13000)
  message(FATAL_ERROR "${KKT_CUDA_INCLUDE} does not hold the headers of CUDA 13.0 or later "
    "(cuda.h says CUDA_VERSION '${cuda_version}'): set KKT_CUDA_HOME to a folder whose include/ does, "
    "or run ./kkttune, which fetches them")
endif()
add_library(kkt_cuda_headers INTERFACE)
# cupti_profiler_host.h includes C++'s <string>; an empty file of that name serves C.
target_include_directories(kkt_cuda_headers SYSTEM INTERFACE
  ${KKT_CUDA_INCLUDE} ${PROJECT_SOURCE_DIR}/cmake/c_shims)
