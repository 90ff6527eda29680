# HYPERRUN_LIGHT: for rooms that compute nothing which takes long. Their files compile in up to a quarter less.
set(HYPERRUN_LIGHT -O1)

# hyperrun_flags(target): warnings and sanitizers, the same for everything we write.
function(hyperrun_flags target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
  if(HYPERRUN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(HYPERRUN_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${HYPERRUN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${HYPERRUN_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      # A finding ends a fuzz target, so that it is kept.
      target_compile_options(${target} PUBLIC -fno-sanitize-recover=all)
    elseif(HYPERRUN_SANITIZE MATCHES thread)
      target_compile_options(${target} PRIVATE -Wno-tsan)
    else()  # GCC 12 warns of std::regex once it is instrumented
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
endfunction()

# hyperrun_library(name SOURCES a.cc ... DEPS lib ... [PRECOMPILED target]): a room's static library. PRECOMPILED: the
# target whose precompiled headers it takes, where these are not those of runtime/ir.
function(hyperrun_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  hyperrun_flags(${name})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED precompiled_ir)
  endif()
  if(TARGET ${ARG_PRECOMPILED})
    target_precompile_headers(${name} REUSE_FROM ${ARG_PRECOMPILED})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# The factor on every bound of a test's time, for sanitizers.
if(HYPERRUN_SANITIZE)
  set(HYPERRUN_TEST_SLOWDOWN 6)
else()
  set(HYPERRUN_TEST_SLOWDOWN 1)
endif()

# hyperrun_test(name SOURCES a.cc ... DEPS lib ... [TIMEOUT s]): a Google Test binary and its ctest entry.
function(hyperrun_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * ${HYPERRUN_TEST_SLOWDOWN}")
  if(NOT TARGET ${name})
    add_executable(${name} ${ARG_SOURCES})
    hyperrun_flags(${name})
    target_precompile_headers(${name} REUSE_FROM precompiled_test)
    target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# hyperrun_runs_mpi(test ...): LeakSanitizer knows Open MPI's libraries (tools/sanitizers/lsan.supp) by whole stacks. They
# make every allocation several times slower, so tests without MPI go without.
function(hyperrun_runs_mpi)
  if(HYPERRUN_SANITIZE MATCHES address)
    set_tests_properties(${ARGN} PROPERTIES
      ENVIRONMENT_MODIFICATION "LSAN_OPTIONS=string_append::fast_unwind_on_malloc=0")
  endif()
endfunction()
