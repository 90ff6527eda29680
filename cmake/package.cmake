# The Debian package: cpack --config build/CPackConfig.cmake makes hyperrun_VERSION_ARCH.deb of what is installed.
# The package needs no other target than hyperrun and omni_prepare; without this, cpack would build the tests, too.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hyperrun)
set(CPACK_PACKAGE_VENDOR "the hyperrun developers")
set(CPACK_PACKAGE_CONTACT "the hyperrun developers <hyperrun@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "supernode of NPUs, emulated by MPI ranks and simulated")
set(CPACK_PACKAGE_DESCRIPTION
    "MPI ranks host NPUs with hard budgets of memory. One controller compiles a job into programs for all of
them; they train with real numbers, or run in virtual time on a modelled machine.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CHECKSUM SHA256)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# Libraries are found by dpkg-shlibdeps. It cannot know that mpirun is started as a program, and that of OpenBLAS's
# builds it has to be the one with threads of its own (cmake/dependencies.cmake).
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, libopenblas0-pthread")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openssh-client")

include(CPack)
