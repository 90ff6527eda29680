# Headers that nearly every file above runtime/ir includes are parsed once: a quarter to a third of a file's compile
# time. The names are in <>, so that the header has no path of this machine and the compiler's cache serves other
# folders.
set(HYPERRUN_STANDARD_HEADERS
    <algorithm> <array> <cstdint> <filesystem> <functional> <map> <memory> <optional> <ranges> <span> <set> <sstream>
    <string> <string_view> <unordered_map> <utility> <variant> <vector>)
set(HYPERRUN_IR_HEADERS
    <runtime/base/error.h> <runtime/base/units.h> <runtime/ir/job.h> <runtime/ir/program.h>)

# hyperrun_precompiled(name header ... [DEPS lib ...]): a target whose precompiled headers others use.
function(hyperrun_precompiled name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${name}.cc)
  hyperrun_flags(${name})
  target_precompile_headers(${name} PRIVATE ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  # The compiler's cache must not look at preprocessed text here: that has no comments, but `#pragma once` compares
  # whole files, so headers parsed before a comment changed would be parsed twice.
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set_property(TARGET ${name} PROPERTY CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=true ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endfunction()
