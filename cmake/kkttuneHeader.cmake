# kkttune_config_header(TARGET target ARCH sm90
#                       [CONFIG kkttune_sm90.h] [KERNELS kkt_solve ...] [KERNEL_FOLDER folder])
#
# Lets `target` include the exported header CONFIG (default: kkttune_ARCH.h in the current source
# folder) and stops the build with one sentence when a kernel source differs from the one the
# header was tuned for. KERNELS: those to check (default: all the header names). KERNEL_FOLDER: the
# folder with the kernel sources that the build compiles (default: those installed with kkttune).
set(KKTTUNE_CMAKE_FOLDER "${CMAKE_CURRENT_LIST_DIR}")

function(kkttune_config_header)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;ARCH;CONFIG;KERNEL_FOLDER" "KERNELS")
  foreach(name TARGET ARCH)
    if(NOT arg_${name})
      message(FATAL_ERROR "kkttune_config_header needs ${name}")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kkttune_config_header: unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_CONFIG)
    set(arg_CONFIG kkttune_${arg_ARCH}.h)
  endif()
  if(NOT arg_KERNEL_FOLDER)
    set(arg_KERNEL_FOLDER "${KKTTUNE_KERNEL_FOLDER}")
  endif()
  get_filename_component(header "${arg_CONFIG}" ABSOLUTE)
  get_filename_component(root "${arg_KERNEL_FOLDER}" ABSOLUTE)
  if(NOT EXISTS "${header}")
    message(FATAL_ERROR "kkttune_config_header: ${header} does not exist: export it with "
      "'kkttune export --arch ${arg_ARCH}' or name it with CONFIG")
  endif()
  get_filename_component(folder "${header}" DIRECTORY)
  target_include_directories(${arg_TARGET} PRIVATE "${folder}")

  # Every source of every kernel: an edit of any of them runs the check again.
  include("${KKTTUNE_CMAKE_FOLDER}/kkttuneSources.cmake")
  get_cmake_property(names VARIABLES)
  list(FILTER names INCLUDE REGEX "^kkttune_sources_")
  set(watched "${header}")
  foreach(name IN LISTS names)
    foreach(source IN LISTS ${name})
      if(EXISTS "${root}/${source}")
        list(APPEND watched "${root}/${source}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES watched)
  string(REPLACE ";" "," kernels "${arg_KERNELS}")
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/kkttune_${arg_TARGET}_${arg_ARCH}.stamp")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND "${CMAKE_COMMAND}" "-DHEADER=${header}" "-DARCH=${arg_ARCH}" "-DKERNELS=${kernels}"
            "-DROOT=${root}" "-DSTAMP=${stamp}"
            -P "${KKTTUNE_CMAKE_FOLDER}/kkttuneCheckSources.cmake"
    DEPENDS ${watched} COMMENT "Comparing kernel sources with ${arg_CONFIG}" VERBATIM)
  add_custom_target(kkttune_check_${arg_TARGET}_${arg_ARCH} DEPENDS "${stamp}")
  add_dependencies(${arg_TARGET} kkttune_check_${arg_TARGET}_${arg_ARCH})
endfunction()
