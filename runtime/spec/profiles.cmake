# Writes OUTPUT, a C++ file that holds the profiles PROFILES (a list with commas) as text.
string(REPLACE "," ";" PROFILES "${PROFILES}")
set(entries "")
foreach(path IN LISTS PROFILES)
  get_filename_component(name ${path} NAME_WE)
  file(READ ${path} text)
  string(APPEND entries "      {\"${name}\", R\"profile(${text})profile\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"runtime/spec/profile_reader.h\"

namespace hyperrun {

std::vector<BuiltInProfile> built_in_profiles() {
  return {
${entries}  };
}

}  // namespace hyperrun
")
