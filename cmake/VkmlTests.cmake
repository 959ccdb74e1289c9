# One GoogleTest executable from tests/cpp/*_test.cpp, and a consumer of the installed package.

file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cpp/*_test.cpp)
if(tests)
  find_package(GTest QUIET)
  if(NOT TARGET GTest::gmock_main)
    include(FetchContent)
    FetchContent_Declare(googletest GIT_REPOSITORY https://github.com/google/googletest.git GIT_TAG v1.17.0
                                    GIT_SHALLOW ON)
    set(INSTALL_GTEST OFF)
    FetchContent_MakeAvailable(googletest)
  endif()
  add_executable(vkml_tests ${tests})
  vkml_add_kernels(vkml_tests tests/cpp)
  target_link_libraries(vkml_tests PRIVATE vkml::vkml vkml_internal hwy::hwy vkml::dnnl GTest::gmock_main)
  # libgomp is not instrumented, so its barriers look like races; drivers leak and are not ours.
  set(environment "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp")
  if(VKML_SANITIZE MATCHES "thread")
    list(APPEND environment OMP_NUM_THREADS=1)
  endif()
  include(GoogleTest)
  gtest_discover_tests(vkml_tests DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 ENVIRONMENT "${environment}")
endif()

if(VKML_INSTALL AND NOT VKML_FETCHED AND NOT VKML_SANITIZE AND EXISTS ${PROJECT_SOURCE_DIR}/vkml)
  add_test(NAME cmake_consumer
           COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}
                   -DGENERATOR=${CMAKE_GENERATOR} -DMAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}
                   -DCOMPILER=${CMAKE_CXX_COMPILER} -P ${PROJECT_SOURCE_DIR}/tests/cmake_consumer/run.cmake)
endif()
