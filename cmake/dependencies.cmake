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
add_library(kkt_cuda_headers INTERFACE)
# cupti_profiler_host.h includes C++'s <string>; an empty file of that name serves C.
target_include_directories(kkt_cuda_headers SYSTEM INTERFACE
  ${KKT_CUDA_INCLUDE} ${PROJECT_SOURCE_DIR}/cmake/c_shims)
