find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(Protobuf REQUIRED)
find_package(spdlog REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS context)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(libpng REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(sndfile REQUIRED IMPORTED_TARGET sndfile)
pkg_check_modules(kissfft REQUIRED IMPORTED_TARGET kissfft-float)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET jemalloc)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(yaml_cpp REQUIRED IMPORTED_TARGET yaml-cpp)
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)

# The pthread build of OpenBLAS is the one that may be called from several threads at once (the
# serial build has no lock around its buffers, the OpenMP build brings a pool that spins). It is
# found by its own folder and kept by run path, whatever the system's alternatives select.
find_path(OPENBLAS_INCLUDE_DIR cblas.h
  HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread REQUIRED NO_DEFAULT_PATH)
find_library(OPENBLAS_LIBRARY openblas
  HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread REQUIRED NO_DEFAULT_PATH)
add_library(openblas INTERFACE)
target_include_directories(openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
target_link_libraries(openblas INTERFACE ${OPENBLAS_LIBRARY})
