# What find_package(kkttune) needs: library, headers, targets, and the check of kernel sources.
# Included by lib/; the program and the kernel sources (share/kkttune/kernels) are install.cmake's.
include(CMakePackageConfigHelpers)
set(KKT_CMAKE_FOLDER lib/cmake/kkttune)
set(KKT_KERNEL_FOLDER share/kkttune/kernels)
install(TARGETS kkttune_lib EXPORT kkttuneTargets LIBRARY DESTINATION lib COMPONENT kkttune_library
  NAMELINK_COMPONENT kkttune_library)
install(FILES ${PROJECT_SOURCE_DIR}/include/kkttune.h DESTINATION include COMPONENT kkttune_library)
install(FILES ${PROJECT_SOURCE_DIR}/include/kkttune/status.h DESTINATION include/kkttune
  COMPONENT kkttune_library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/db/reference/ DESTINATION share/kkttune/reference
  COMPONENT kkttune_library OPTIONAL)
install(EXPORT kkttuneTargets NAMESPACE kkttune:: DESTINATION ${KKT_CMAKE_FOLDER}
  COMPONENT kkttune_library)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kkttuneConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/kkttuneConfig.cmake INSTALL_DESTINATION ${KKT_CMAKE_FOLDER}
  PATH_VARS KKT_KERNEL_FOLDER)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/kkttuneConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/kkttuneConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/kkttuneConfigVersion.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/kkttuneSources.cmake
  ${PROJECT_SOURCE_DIR}/cmake/kkttuneHeader.cmake
  ${PROJECT_SOURCE_DIR}/cmake/kkttuneCheckSources.cmake
  DESTINATION ${KKT_CMAKE_FOLDER} COMPONENT kkttune_library)
