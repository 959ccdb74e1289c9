# Installs the build in BUILD into a scratch prefix, then configures, builds and runs this folder's program against it.

set(scratch ${BUILD}/cmake_consumer)
file(REMOVE_RECURSE ${scratch})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/cmake_consumer -B ${scratch}/build -G ${GENERATOR}
    -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${scratch}/prefix
    -DEXAMPLE=${SOURCE}/examples/cpp/fit_a_line.cpp)
run(${CMAKE_COMMAND} --build ${scratch}/build)
run(${scratch}/build/consumer)
execute_process(COMMAND ${scratch}/build/fit_a_line OUTPUT_VARIABLE line COMMAND_ERROR_IS_FATAL ANY)
if(NOT line STREQUAL "y = 3.000 x + 1.000\n")
  message(FATAL_ERROR "fit_a_line: expected y = 3.000 x + 1.000, got ${line}")
endif()
