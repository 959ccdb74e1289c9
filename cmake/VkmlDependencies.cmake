# The libraries behind vkml, found the same way by the build and by the installed package.
# Sets VKML_FETCHED to the ones that had to be downloaded.

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)

# An imported target from a header and a library, where the distribution ships no usable CMake config.
function(vkml_import target header library)
  if(TARGET ${target})
    return()
  endif()
  string(MAKE_C_IDENTIFIER ${target} id)
  find_path(VKML_${id}_INCLUDE ${header})
  find_library(VKML_${id}_LIBRARY ${library})
  mark_as_advanced(VKML_${id}_INCLUDE VKML_${id}_LIBRARY)
  if(VKML_${id}_INCLUDE AND VKML_${id}_LIBRARY)
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(
      ${target} PROPERTIES IMPORTED_LOCATION "${VKML_${id}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                     "${VKML_${id}_INCLUDE}")
  endif()
endfunction()

# find_package(dnnl) of Debian and Ubuntu demands the OpenCL headers, which vkml does not need: never asked for.
vkml_import(vkml::dnnl oneapi/dnnl/dnnl.hpp dnnl)

find_package(fmt CONFIG QUIET)
vkml_import(fmt::fmt fmt/format.h fmt)
find_package(hwy CONFIG QUIET)
vkml_import(hwy::hwy hwy/highway.h hwy)

set(VKML_FETCHED "")
if(PROJECT_NAME STREQUAL "vkml")
  include(FetchContent)
  find_path(VKML_VULKAN_HEADERS vulkan/vulkan.hpp HINTS $ENV{VULKAN_SDK}/include)
  if(NOT VKML_VULKAN_HEADERS)
    FetchContent_Declare(vulkan_headers GIT_REPOSITORY https://github.com/KhronosGroup/Vulkan-Headers.git
                                        GIT_TAG v1.4.328 GIT_SHALLOW ON)
    FetchContent_MakeAvailable(vulkan_headers)
    set(VKML_VULKAN_HEADERS ${vulkan_headers_SOURCE_DIR}/include)
  endif()

  if(NOT TARGET fmt::fmt)
    FetchContent_Declare(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt.git GIT_TAG 11.2.0 GIT_SHALLOW ON)
    FetchContent_MakeAvailable(fmt)
    list(APPEND VKML_FETCHED fmt)
  endif()
  if(NOT TARGET hwy::hwy)
    set(HWY_ENABLE_TESTS OFF)
    set(HWY_ENABLE_EXAMPLES OFF)
    set(HWY_ENABLE_CONTRIB OFF)
    FetchContent_Declare(hwy GIT_REPOSITORY https://github.com/google/highway.git GIT_TAG 1.2.0 GIT_SHALLOW ON)
    FetchContent_MakeAvailable(hwy)
    add_library(hwy::hwy ALIAS hwy)
    list(APPEND VKML_FETCHED hwy)
  endif()
  if(NOT TARGET vkml::dnnl)
    set(DNNL_CPU_RUNTIME OMP)
    set(DNNL_LIBRARY_TYPE STATIC)
    set(DNNL_BUILD_TESTS OFF)
    set(DNNL_BUILD_EXAMPLES OFF)
    set(DNNL_ENABLE_WORKLOAD INFERENCE_AND_TRAINING)
    FetchContent_Declare(onednn GIT_REPOSITORY https://github.com/uxlfoundation/oneDNN.git GIT_TAG v3.8.1 GIT_SHALLOW ON)
    FetchContent_MakeAvailable(onednn)
    add_library(vkml::dnnl ALIAS dnnl)
    list(APPEND VKML_FETCHED dnnl)
  endif()
endif()
