# `cmake --install` makes a folder that can be moved: the program in bin/ finds its libraries in
# lib/ beside it ($ORIGIN/../lib), its recordings and kernel sources in share/kkttune. What
# find_package(kkttune) needs is package.cmake's.
set_target_properties(kkttune PROPERTIES INSTALL_RPATH $ORIGIN/../lib)
install(TARGETS kkttune RUNTIME DESTINATION bin)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/ DESTINATION share/kkttune/kernels
  FILES_MATCHING PATTERN *.cu PATTERN *.cuh)
install(DIRECTORY DESTINATION share/kkttune/reference)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/db/reference/ DESTINATION share/kkttune/reference OPTIONAL)
if(EXISTS ${PROJECT_SOURCE_DIR}/LICENSE)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/kkttune)
endif()

# The libraries that a system without development packages may lack; the C library, the loader and
# the compiler's own stay the system's. What is linked statically does not show up here.
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:kkttune>\"
    RESOLVED_DEPENDENCIES_VAR carried
    PRE_INCLUDE_REGEXES [[^lib(sqlite3|cjson|md)\\.so]] PRE_EXCLUDE_REGEXES .*)
  foreach(library IN LISTS carried)
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib\" TYPE SHARED_LIBRARY
      FOLLOW_SYMLINK_CHAIN FILES \"\${library}\")
  endforeach()")
