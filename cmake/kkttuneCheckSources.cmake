# Run at build time by kkttune_config_header: compares the hash of the kernel sources in ROOT with
# the one in HEADER (its first 16 hex digits). KERNELS, comma-separated: those to compare; empty:
# all that the header names.
cmake_policy(VERSION 3.20)
include("${CMAKE_CURRENT_LIST_DIR}/kkttuneSources.cmake") # kernels, their styles, their files
file(READ "${HEADER}" text)
string(REPLACE "," ";" KERNELS "${KERNELS}")
string(TOUPPER "${ARCH}" upper_arch)

# The first 16 hex digits of the hash of a kernel's sources in one style.
function(hash_sources kernel style out)
  set(files "")
  foreach(source IN LISTS kkttune_sources_${kernel}_${style})
    if(NOT EXISTS "${ROOT}/${source}")
      message(FATAL_ERROR "kernel source ${source} of ${kernel} is not in ${ROOT}.")
    endif()
    list(APPEND files "${ROOT}/${source}")
  endforeach()
  execute_process(COMMAND "${CMAKE_COMMAND}" -E cat ${files} OUTPUT_FILE "${STAMP}.cat"
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "cannot read the kernel sources of ${kernel} in ${ROOT}.")
  endif()
  file(SHA256 "${STAMP}.cat" hash)
  file(REMOVE "${STAMP}.cat")
  string(SUBSTRING "${hash}" 0 16 hash)
  set(${out} "${hash}" PARENT_SCOPE)
endfunction()

# Compares a kernel that the header names; which style its hash is of, the header says.
function(check_kernel kernel style)
  string(TOUPPER "${kernel}" upper_kernel)
  set(define "KKTTUNE_${upper_arch}_${upper_kernel}_SOURCE_HASH")
  if(NOT text MATCHES "#define ${define} 0x([0-9a-f]+)ULL")
    message(FATAL_ERROR "${HEADER} holds no ${define}: export it again.")
  endif()
  set(expected "${CMAKE_MATCH_1}")
  if(NOT style IN_LIST kkttune_styles_${kernel})
    message(FATAL_ERROR "${HEADER} is tuned for the style ${style} of kernel ${kernel}, which the "
      "installed kkttune does not have: export the header again with that kkttune.")
  endif()
  hash_sources(${kernel} ${style} hash)
  if(NOT hash STREQUAL expected)
    message(FATAL_ERROR
      "kernel ${kernel} was edited since ${HEADER} was tuned (source hash ${hash}, tuned "
      "${expected}): tune it again and export a new header.")
  endif()
endfunction()

set(seen "")
foreach(kernel IN LISTS kkttune_kernels)
  string(TOUPPER "${kernel}" upper_kernel)
  if(KERNELS AND NOT kernel IN_LIST KERNELS)
    continue()
  endif()
  # What MATCHES finds can be read in the next command only, not in the condition it stands in.
  if(text MATCHES "#define KKTTUNE_${upper_arch}_${upper_kernel}_STYLE \"([a-z_]+)\"")
    check_kernel(${kernel} ${CMAKE_MATCH_1})
    list(APPEND seen "${kernel}")
  endif()
endforeach()
foreach(kernel IN LISTS KERNELS)
  if(NOT kernel IN_LIST seen)
    message(FATAL_ERROR "${HEADER} holds no kernel ${kernel} for ${ARCH}.")
  endif()
endforeach()
if(NOT KERNELS AND NOT seen)
  message(FATAL_ERROR "${HEADER} holds no kernel for ${ARCH} that the installed kkttune has.")
endif()
file(TOUCH "${STAMP}")
