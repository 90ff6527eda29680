# Writes OUTPUT, a C++ file that holds the published runs of the files RUNS (a list with commas) as text.
string(REPLACE "," ";" RUNS "${RUNS}")
set(entries "")
foreach(path IN LISTS RUNS)
  get_filename_component(name ${path} NAME)
  file(READ ${path} text)
  string(APPEND entries "  add(R\"runs(${text})runs\", \"${name}\");\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"runtime/validate/published_run.h\"

namespace hyperrun {

std::vector<PublishedRun> shipped_runs() {
  std::vector<PublishedRun> runs;
  const auto add = [&](std::string_view csv, const char* name) {
    for (PublishedRun& run : read_runs(csv, name)) runs.push_back(std::move(run));
  };
${entries}  return runs;
}

}  // namespace hyperrun
")
