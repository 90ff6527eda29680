// Runs a fuzz target once on each file of the folders that are its arguments, without libFuzzer: what was
// mended stays mended. With files as arguments it runs on these.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& given) {
  if (!fs::is_directory(given)) return {given};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(given))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void run(const fs::path& path) {
  std::fprintf(stderr, "%s\n", path.c_str());  // the last line before a crash names its input
  std::ifstream in(path, std::ios::binary);
  if (!in) hyperrun::fuzz::finding("the file cannot be read");
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i)
    for (const fs::path& path : files_of(argv[i])) run(path), ++inputs;
  std::fprintf(stderr, "%zu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
