# COMPILER, STANDARD, LANGUAGE, SOURCE, FOLDER (exports), OUT: compiles the header as one language
# and runs the program.
execute_process(COMMAND ${COMPILER} -x ${LANGUAGE} -std=${STANDARD} -Wall -Wextra -Wpedantic -Werror
                        -I${FOLDER} ${SOURCE} -o ${OUT} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${COMPILER} -std=${STANDARD} refuses the exported header")
endif()
execute_process(COMMAND ${OUT} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the program built as ${STANDARD} gives wrong answers")
endif()
