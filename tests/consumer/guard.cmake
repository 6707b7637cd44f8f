# MANIFEST (kkttuneSources.cmake), SOURCE (of kkttune), WORK: the guard of a build, for every kernel in
# every style: sources as they were tuned pass, an edited one and a style that is gone do not.
include(${MANIFEST})
file(REMOVE_RECURSE ${WORK})
file(COPY ${MANIFEST} ${SOURCE}/cmake/kkttuneCheckSources.cmake DESTINATION ${WORK})
file(COPY ${SOURCE}/kernels/ DESTINATION ${WORK}/kernels)

# A header's part that the guard reads: STYLE and hash are the kernel's.
function(write_header path kernel style hash)
  string(TOUPPER "${kernel}" upper)
  string(SUBSTRING "${hash}" 0 16 hash)
  file(WRITE ${path} "#define KKTTUNE_SM90_${upper}_STYLE \"${style}\"\n"
    "#define KKTTUNE_SM90_${upper}_PROVENANCE \"measured\"\n"
    "#define KKTTUNE_SM90_${upper}_SOURCE_HASH 0x${hash}ULL\n")
endfunction()

# expect TEXT KERNELS: "" where the guard is to be content, else what it says.
function(expect text kernels)
  execute_process(COMMAND ${CMAKE_COMMAND} -DHEADER=${WORK}/header.h -DARCH=sm90
    -DKERNELS=${kernels} -DROOT=${WORK}/kernels -DSTAMP=${WORK}/stamp
    -P ${WORK}/kkttuneCheckSources.cmake
    RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")
  if(text STREQUAL "" AND failed)
    message(FATAL_ERROR "the guard stops an unedited build: ${out}")
  elseif(NOT text STREQUAL "" AND (NOT failed OR NOT out MATCHES "${text}"))
    message(FATAL_ERROR "the guard was expected to say '${text}': ${out}")
  endif()
endfunction()

set(most 0)
foreach(kernel IN LISTS kkttune_kernels)
  list(LENGTH kkttune_styles_${kernel} styles)
  if(styles GREATER most)
    set(most ${styles})
  endif()
  foreach(style IN LISTS kkttune_styles_${kernel})
    write_header(${WORK}/header.h ${kernel} ${style} ${kkttune_hash_${kernel}_${style}})
    expect("" ${kernel})
    expect("" "") # all that the header names
    list(GET kkttune_sources_${kernel}_${style} 0 first)
    file(READ ${WORK}/kernels/${first} kept)
    file(APPEND ${WORK}/kernels/${first} "// edited\n")
    expect("kernel ${kernel} was edited" ${kernel})
    file(WRITE ${WORK}/kernels/${first} "${kept}")
  endforeach()
endforeach()
if(most LESS 3)
  message(FATAL_ERROR "no kernel has three styles: this shows little")
endif()
list(GET kkttune_kernels 0 kernel)
write_header(${WORK}/header.h ${kernel} bygone 0123456789abcdef)
expect("the style bygone of kernel ${kernel}, which the installed kkttune does not have" ${kernel})
write_header(${WORK}/header.h other bygone 0123456789abcdef)
expect("holds no kernel ${kernel} for sm90" ${kernel})
expect("holds no kernel for sm90 that the installed kkttune has" "")
