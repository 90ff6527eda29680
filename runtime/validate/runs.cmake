# Writes OUTPUT, a C++ file that holds the published runs of the file RUNS as text.
file(READ ${RUNS} text)
file(WRITE ${OUTPUT} "#include \"runtime/validate/published_run.h\"

namespace hyperrun {

std::vector<PublishedRun> shipped_runs() {
  return read_runs(R\"runs(${text})runs\", \"runs.csv\");
}

}  // namespace hyperrun
")
