# BUILD, SOURCE (of kkttune), WORK, EXPORTS, COMPILER, GENERATOR, C_FLAGS: installs kkttune, builds the user's
# project against it, runs its programs, edits a kernel source and expects one sentence.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(failed)
    message(FATAL_ERROR "${what} failed:\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
foreach(component IN ITEMS kkttune_library)
  run("installing" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix
      --component ${component})
endforeach()
file(COPY ${SOURCE}/kernels/ DESTINATION ${WORK}/kernels)
run("configuring the project" ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer/project -B ${WORK}/build
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DEXPORTS=${EXPORTS} -DKERNELS=${WORK}/kernels
    "-DCMAKE_C_FLAGS=${C_FLAGS}" -DCMAKE_C_COMPILER=${COMPILER} -G ${GENERATOR})
run("building the project" ${CMAKE_COMMAND} --build ${WORK}/build)
run("the library's program" ${WORK}/build/use_library ${EXPORTS}/kkttune_sm90.json)
run("the header's program" ${WORK}/build/use_header)

# A single byte, and a comment at that, is an edit.
file(APPEND ${WORK}/kernels/kkt_solve/kkt_solve.cu "// edited\n")
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build
                RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out)
string(REGEX REPLACE "[ \n]+" " " out "${out}")
if(NOT failed)
  message(FATAL_ERROR "the build went on though the kernel source was edited")
endif()
if(NOT out MATCHES "kernel kkt_solve was edited since [^ ]*kkttune_sm90.h was tuned")
  message(FATAL_ERROR "the build stopped without its sentence: ${out}")
endif()

# Undone, it builds again.
file(COPY ${SOURCE}/kernels/ DESTINATION ${WORK}/kernels)
file(TOUCH ${WORK}/kernels/kkt_solve/kkt_solve.cu)
run("building after the edit was undone" ${CMAKE_COMMAND} --build ${WORK}/build)
