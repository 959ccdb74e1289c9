# The extension module vkml._core and its type stub, placed into python/vkml for development and into the wheel.

execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no nanobind; run `make setup`, or pip install nanobind")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB_RECURSE module_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cpp)
if(NOT module_sources)
  message(STATUS "No Python module: python/src has no sources yet")
  return()
endif()

nanobind_add_module(_core NB_STATIC NB_DOMAIN vkml NOMINSIZE ${module_sources} ${python_sources})
target_include_directories(_core PRIVATE ${PROJECT_SOURCE_DIR}/python/src)
target_link_libraries(_core PRIVATE vkml::vkml vkml_warnings)
target_compile_definitions(_core PRIVATE VKML_VERSION="${PROJECT_VERSION}")
# GCC 12 takes nanobind's std::optional arguments for uninitialised once it has inlined them.
target_compile_options(_core PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

if(SKBUILD)
  set(package ${PROJECT_BINARY_DIR}/python)
elseif(VKML_SANITIZE) # beside links to the Python sources, so that the usual build stays usable
  set(package ${PROJECT_BINARY_DIR}/python/vkml)
  file(GLOB python_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/vkml ${PROJECT_SOURCE_DIR}/python/vkml/*)
  list(FILTER python_files EXCLUDE REGEX "^_core\\.|^__pycache__$")
  file(MAKE_DIRECTORY ${package})
  foreach(file IN LISTS python_files)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/vkml/${file} ${package}/${file} SYMBOLIC)
  endforeach()
else()
  set(package ${PROJECT_SOURCE_DIR}/python/vkml)
endif()
set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package})
if(VKML_SANITIZE) # a plain interpreter cannot import it to write the stub
  return()
endif()
set(finish_stub ${PROJECT_SOURCE_DIR}/cmake/finish_stub.py)
nanobind_add_stub(_core_raw_stub MODULE _core OUTPUT ${PROJECT_BINARY_DIR}/_core.raw.pyi PYTHON_PATH ${package} DEPENDS _core
                  INCLUDE_PRIVATE)
add_custom_command(OUTPUT ${package}/_core.pyi
                   COMMAND ${Python_EXECUTABLE} ${finish_stub} ${PROJECT_BINARY_DIR}/_core.raw.pyi ${package}/_core.pyi
                   DEPENDS _core_raw_stub ${PROJECT_BINARY_DIR}/_core.raw.pyi ${finish_stub})
add_custom_target(_core_stub ALL DEPENDS ${package}/_core.pyi)

if(SKBUILD)
  install(TARGETS _core LIBRARY DESTINATION vkml)
  install(FILES ${package}/_core.pyi DESTINATION vkml)
endif()
