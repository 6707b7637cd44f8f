# Writes a C file that holds files as byte arrays, so that the program is one file to carry. Run as
# a script: cmake -DROOT=... -DLIST=... -DOUT=... [-DHEADER=... -DARRAY=...] -P embed_sources.cmake
# LIST names a file with one path a line, relative to ROOT. HEADER declares ARRAY; by default the
# device sources' (kernels/embedded.h). Arrays of numbers, not string literals:
# C limits a literal to 4095 characters.
if(NOT HEADER)
  set(HEADER kernels/embedded.h)
  set(ARRAY kkt_embedded_files)
endif()
file(STRINGS ${LIST} paths)
set(arrays "")
set(rows "")
set(index 0)
foreach(path ${paths})
  file(READ ${ROOT}/${path} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR length "${digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND arrays "static const unsigned char file_${index}[] = {\n${hex}0};\n")
  string(APPEND rows "    {\"${path}\", file_${index}, ${length}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT}
  "#include \"${HEADER}\"\n\n${arrays}\n"
  "const kkt_embedded_file ${ARRAY}[] = {\n${rows}    {NULL, NULL, 0},\n};\n")
