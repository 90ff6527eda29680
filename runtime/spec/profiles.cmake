# Writes OUTPUT, a C++ file that holds the profiles PROFILES, the tables of kernels KERNELS, the software profiles
# SOFTWARE and the files of faults FAULTS (lists with commas) as text.
function(entries_of files by variable)
  string(REPLACE "," ";" files "${files}")
  set(entries "")
  foreach(path IN LISTS files)
    get_filename_component(name ${path} ${by})
    file(READ ${path} text)
    # A compiler takes 64 KiB in one literal for sure.
    set(literals "")
    string(LENGTH "${text}" length)
    set(at 0)
    while(at LESS length)
      string(SUBSTRING "${text}" ${at} 16000 part)
      string(APPEND literals "R\"profile(${part})profile\" ")
      math(EXPR at "${at} + 16000")
    endwhile()
    string(APPEND entries "      {\"${name}\", ${literals}},\n")
  endforeach()
  set(${variable} "${entries}" PARENT_SCOPE)
endfunction()

entries_of("${PROFILES}" NAME_WE profiles)
entries_of("${KERNELS}" NAME kernels)
entries_of("${SOFTWARE}" NAME_WE software)
entries_of("${FAULTS}" NAME_WE faults)
file(WRITE ${OUTPUT} "#include \"runtime/spec/faults_reader.h\"
#include \"runtime/spec/kernel_table_reader.h\"
#include \"runtime/spec/profile_reader.h\"
#include \"runtime/spec/software_reader.h\"

namespace hyperrun {

std::vector<BuiltInProfile> built_in_profiles() {
  return {
${profiles}  };
}

std::vector<BuiltInText> built_in_kernels() {
  return {
${kernels}  };
}

std::vector<BuiltInText> built_in_software() {
  return {
${software}  };
}

std::vector<BuiltInText> built_in_faults() {
  return {
${faults}  };
}

}  // namespace hyperrun
")
