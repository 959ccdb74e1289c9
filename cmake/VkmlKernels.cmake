# Compiles every .slang of a folder that has `//! kernel` directives and adds the modules to a target.

set(VKML_TOOLS_DIR "" CACHE PATH "Where shader tool wheels are unpacked (default: <source>/build/tools)")
set(VKML_SLANGC "" CACHE FILEPATH "Use this slangc, whatever its version")
set(VKML_SPIRV_TOOLS "" CACHE PATH "Folder of the spirv-opt and spirv-val to use")

set(VKML_KERNEL_DRIVER ${CMAKE_CURRENT_LIST_DIR}/compile_kernel.py)
set(VKML_SPIRV_MODULE ${CMAKE_CURRENT_LIST_DIR}/spirv_module.py)
set(VKML_FETCH_TOOLS ${CMAKE_CURRENT_LIST_DIR}/fetch_kernel_tools.py)

function(vkml_find_kernel_tools)
  set(folder "${VKML_TOOLS_DIR}")
  if(NOT folder)
    set(folder ${PROJECT_SOURCE_DIR}/build/tools)
  endif()
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${VKML_FETCH_TOOLS} --dir ${folder} --slangc "${VKML_SLANGC}" --spirv-tools
            "${VKML_SPIRV_TOOLS}"
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "The shader tools are missing, see above.")
  endif()
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([A-Z_]+)=(.*)$" _ "${line}")
    set(VKML_TOOL_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" PARENT_SCOPE)
    if(CMAKE_MATCH_1 STREQUAL "VERSIONS")
      message(STATUS "Shader tools: ${CMAKE_MATCH_2}")
    endif()
  endforeach()
endfunction()

# One module: vkml_kernel_module(<source> <output, relative to generated> <slangc arguments>)
function(vkml_kernel_module source output arguments)
  set(out ${VKML_GENERATED}/${output})
  add_custom_command(
    OUTPUT ${out}
    COMMAND
      ${Python_EXECUTABLE} ${VKML_KERNEL_DRIVER} compile --root ${PROJECT_SOURCE_DIR} --source ${source} --out ${out}
      --slangc ${VKML_TOOL_SLANGC} --spirv-opt ${VKML_TOOL_SPIRV_OPT} --spirv-val ${VKML_TOOL_SPIRV_VAL} --tools
      "${VKML_TOOL_VERSIONS}" --depfile ${out}.d --command=${arguments}
    DEPENDS ${PROJECT_SOURCE_DIR}/${source} ${VKML_KERNEL_DRIVER} ${VKML_SPIRV_MODULE}
    DEPFILE ${out}.d
    COMMENT "Kernel ${output}"
    VERBATIM)
endfunction()

# The C++ arrays of one .slang: vkml_kernel_source(<path without .slang> <symbol:ELEMENT:output>...)
function(vkml_kernel_source stem)
  set(modules "")
  foreach(module IN LISTS ARGN)
    string(REGEX REPLACE "^[^:]*:[^:]*:" "" path "${module}")
    list(APPEND modules ${VKML_GENERATED}/${path})
  endforeach()
  add_custom_command(
    OUTPUT ${VKML_GENERATED}/${stem}.spv.cpp
    COMMAND ${Python_EXECUTABLE} ${VKML_KERNEL_DRIVER} embed --generated ${VKML_GENERATED} --stem ${stem} --out
            ${VKML_GENERATED}/${stem}.spv.cpp ${ARGN}
    DEPENDS ${modules}
    COMMENT "Kernel ${stem}.spv.cpp"
    VERBATIM)
  set_property(GLOBAL APPEND PROPERTY VKML_KERNEL_SOURCES ${VKML_GENERATED}/${stem}.spv.cpp)
endfunction()

# vkml_add_kernels(<target> <folder of the source tree>)
function(vkml_add_kernels target folder)
  set(VKML_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(plan ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels.cmake)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.slang)
  file(MAKE_DIRECTORY ${VKML_GENERATED})
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${VKML_KERNEL_DRIVER} plan --root ${PROJECT_SOURCE_DIR} --generated
            ${VKML_GENERATED} --out ${plan} ${sources}
    RESULT_VARIABLE failed)
  # Directives live in the sources, so an edited kernel plans again: about a second.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} ${VKML_KERNEL_DRIVER})
  if(failed)
    message(FATAL_ERROR "A kernel directive is wrong, see above.")
  endif()
  set_property(GLOBAL PROPERTY VKML_KERNEL_SOURCES "")
  file(STRINGS ${plan} has_kernels REGEX "^vkml_kernel_source" LIMIT_COUNT 1)
  if(has_kernels)
    vkml_find_kernel_tools()
    include(${plan})
  endif()
  get_property(generated GLOBAL PROPERTY VKML_KERNEL_SOURCES)
  target_sources(${target} PRIVATE ${generated})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${VKML_GENERATED}>)
endfunction()
