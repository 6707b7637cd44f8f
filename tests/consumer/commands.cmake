# PROGRAM, EXPORTS (a folder with k.db and its exports), WORK: export, report and lookup from the
# command line, their exit codes and messages.
function(expect code pattern)
  execute_process(COMMAND ${PROGRAM} ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE got
                  OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT got STREQUAL code)
    message(FATAL_ERROR "kkttune ${ARGN}: exit code ${got}, expected ${code}\n${out}${err}")
  endif()
  if(NOT "${out}${err}" MATCHES "${pattern}")
    message(FATAL_ERROR "kkttune ${ARGN}: '${pattern}' is not in\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(same a b)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${a} ${b} RESULT_VARIABLE differ)
  if(differ)
    message(FATAL_ERROR "${a} and ${b} differ")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(db ${EXPORTS}/k.db)

# The same database gives the same bytes, whoever asks.
expect(0 "one/kkttune_sm90.json" export --arch sm90 --db ${db} --out one)
expect(0 "kkttune.files/1" report --arch sm_90 --db ${db} --out one --json)
expect(0 "report_sm90_h200.md" report --arch sm90 --device h200 --db ${db} --out two --format markdown)
foreach(name kkttune_sm90.json kkttune_sm90.h kkttune_dispatch.h report_sm90.html report_sm90.md)
  same(${WORK}/one/${name} ${EXPORTS}/${name})
endforeach()
same(${WORK}/two/report_sm90_h200.md ${EXPORTS}/report_sm90.md)

# Headers of two devices of one architecture have the same names: the second one says so.
expect(0 "kkttune_sm90_h100.h" export --arch sm90 --device h100 --db ${db} --out two)
file(WRITE ${WORK}/twice.c "#include \"two/kkttune_sm90_h100.h\"\n#include \"two/kkttune_sm90_h100.h\"\n")
execute_process(COMMAND ${COMPILER} -fsyntax-only twice.c WORKING_DIRECTORY ${WORK}
                RESULT_VARIABLE got OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(got)
  message(FATAL_ERROR "a header included twice is refused:\n${out}")
endif()
file(APPEND ${WORK}/twice.c "#include \"one/kkttune_sm90.h\"\n")
execute_process(COMMAND ${COMPILER} -fsyntax-only twice.c WORKING_DIRECTORY ${WORK}
                RESULT_VARIABLE got OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT got OR NOT out MATCHES "a header of another device of sm90 is included already")
  message(FATAL_ERROR "headers of two devices are both accepted:\n${out}")
endif()

# Look-up: from the database, from an export, from the model alone.
foreach(source "--db;${db}" "--config;${EXPORTS}/kkttune_sm90.json")
  expect(0 "\"tier\":[ \t]*\"exact\"" lookup kkt_solve --arch sm90 ${source} --json)
  string(JSON median GET "${out}" entry time_us median)
  if(NOT median EQUAL 100.5)
    message(FATAL_ERROR "the look-up gives ${median} us, not 100.5")
  endif()
  expect(0 "nearest, distance 1 from" lookup kkt_solve --arch sm90 ${source}
         --problem tokens=16384,heads_v=32)
endforeach()
expect(0 "\"tier\":[ \t]*\"model\"" lookup kkt_solve --arch sm90 --json)
# Another device's result says whose it is.
expect(0 "nearest, distance 8 from [^\n]*, measured on NVIDIA H200, not on NVIDIA H100" lookup
       kkt_solve --arch sm90 --device h100 --db ${db})
expect(0 "\"entry_device\":[ \t]*\"NVIDIA H200\"" lookup kkt_solve --arch sm90 --device h100
       --db ${db} --json)
expect(0 "\"tier\":[ \t]*\"model\"" lookup kkt_solve --arch sm80 --db ${db} --json)

# What is wrong is named.
expect(2 "foo" lookup kkt_solve --arch sm90 --problem foo=1)
expect(2 "kkt_solve" lookup nothing --arch sm90)
expect(2 "48" lookup kkt_solve --arch sm90 --chunk 48)
file(WRITE ${WORK}/nowhere.json "{\"schema\":\"kkttune.config/1\",\"entries\":[]}")
expect(2 "nowhere.json: member 'arch'" lookup kkt_solve --arch sm90 --config nowhere.json)
file(WRITE ${WORK}/unknown.json
     "{\"schema\":\"kkttune.config/1\",\"arch\":\"sm1\",\"device\":{\"name\":\"x\"}}")
expect(2 "unknown.json: unknown architecture 'sm1'" lookup kkt_solve --arch sm90
       --config unknown.json)
expect(2 "not both" lookup kkt_solve --arch sm90 --db ${db} --config ${EXPORTS}/kkttune_sm90.json)
expect(2 "sm90, not for sm80" lookup kkt_solve --arch sm80 --config ${EXPORTS}/kkttune_sm90.json)
expect(2 "no valid JSON|not valid JSON" lookup kkt_solve --arch sm90 --config ${EXPORTS}/kkttune_sm90.h)
expect(2 "markdown" export --arch sm90 --db ${db} --format pdf)
expect(2 "not a kkttune database" export --arch sm90 --db ${EXPORTS}/kkttune_sm90.json)
expect(2 "missing.db" export --arch sm90 --db missing.db)
file(WRITE ${WORK}/file "no folder")
expect(3 "file" export --arch sm90 --db ${db} --out file/deep)
