# Installs the library, its headers and the CMake package. Left out when a dependency was downloaded: it would dangle.

include(CMakePackageConfigHelpers)

if(NOT VKML_INSTALL OR SKBUILD)
  return()
endif()
if(VKML_FETCHED)
  message(STATUS "No install rules: ${VKML_FETCHED} came from FetchContent")
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vkml)
install(TARGETS vkml EXPORT vkmlTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT vkmlTargets NAMESPACE vkml:: DESTINATION ${package_dir})
foreach(header IN LISTS VKML_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/vkml/operators.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vkml)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/vkmlConfig.cmake.in ${PROJECT_BINARY_DIR}/vkmlConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vkmlConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vkmlConfig.cmake ${PROJECT_BINARY_DIR}/vkmlConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/VkmlDependencies.cmake DESTINATION ${package_dir})
