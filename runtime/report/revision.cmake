# Writes OUTPUT with the version and git revision of SOURCE_DIR; left alone if nothing changed, so that
# nothing is rebuilt.
cmake_minimum_required(VERSION 3.25)
set(revision "")
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"constexpr std::string_view kVersion = \"@VERSION@\";
constexpr std::string_view kRevision = \"@revision@\";
" @ONLY)
