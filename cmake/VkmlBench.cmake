# The C++ benchmarks: bench/cpp/<name>.cpp becomes bench_<name>.

file(GLOB benchmarks CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/cpp/*.cpp)
foreach(benchmark IN LISTS benchmarks)
  cmake_path(GET benchmark STEM name)
  add_executable(bench_${name} ${benchmark})
  target_link_libraries(bench_${name} PRIVATE vkml::vkml vkml_warnings)
endforeach()
