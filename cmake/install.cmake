# What `cmake --install build --prefix P` copies: the programs, and a tree below share/hyperrun that runs by itself.
# Profiles are compiled in (runtime/spec/profiles.cmake), so no program reads one from here.
include(GNUInstallDirs)

# OpenBLAS's pthread build is found by run path, as in the build folder; Debian's alternatives may select another.
get_filename_component(HYPERRUN_OPENBLAS_FOLDER ${OPENBLAS_LIBRARY} DIRECTORY)
set_target_properties(hyperrun PROPERTIES INSTALL_RPATH ${HYPERRUN_OPENBLAS_FOLDER})
install(TARGETS hyperrun omni_prepare RUNTIME)

# Examples name their corpus as ../data/king-james.txt, so both lie side by side. The corpus is made, not kept in the
# repository (tools/common.sh): a tree without it installs without.
set(HYPERRUN_SHARE ${CMAKE_INSTALL_DATADIR}/hyperrun)
install(DIRECTORY examples DESTINATION ${HYPERRUN_SHARE} FILES_MATCHING PATTERN *.textproto)
install(FILES data/king-james.txt DESTINATION ${HYPERRUN_SHARE}/data OPTIONAL)
install(FILES data/arithmetic/text.txt data/arithmetic/tasks.jsonl DESTINATION ${HYPERRUN_SHARE}/data/arithmetic
        OPTIONAL)
install(DIRECTORY proto/profiles DESTINATION ${HYPERRUN_SHARE} FILES_MATCHING PATTERN *.textproto)
install(PROGRAMS deploy/attempt.sh DESTINATION ${HYPERRUN_SHARE}/deploy)
install(DIRECTORY deploy/slurm deploy/kubernetes DESTINATION ${HYPERRUN_SHARE}/deploy USE_SOURCE_PERMISSIONS)

# Pages link to each other, to README.md and to the figures, so they keep their places.
install(FILES README.md NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md)
install(DIRECTORY bench/results DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench FILES_MATCHING PATTERN *.md)
