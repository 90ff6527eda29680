#include "tests/architecture/source_tree.h"

#include <fstream>
#include <sstream>

namespace hyperrun {
namespace fs = std::filesystem;
namespace {

bool is_skipped(const fs::directory_entry& entry, bool at_root) {
  const std::string name = entry.path().filename().string();
  if (name.starts_with('.')) return true;
  return at_root && entry.is_directory() && (name.starts_with("build") || name == "data" || name == "runs");
}

std::string contents(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> found;
  std::istringstream in(text);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (!line.starts_with("#include")) continue;
    const std::size_t open = line.find_first_of("<\"");
    const std::size_t close = line.find_first_of(">\"", open + 1);
    if (open != std::string::npos && close != std::string::npos)
      found.push_back({line.substr(open + 1, close - open - 1), number, line[open] == '"'});
  }
  return found;
}

}  // namespace

bool is_code(const SourceFile& file) { return file.path.ends_with(".h") || file.path.ends_with(".cc"); }

SourceTree::SourceTree(const fs::path& root) {
  auto it = fs::recursive_directory_iterator(root);
  for (; it != fs::recursive_directory_iterator(); ++it) {
    if (is_skipped(*it, it.depth() == 0)) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file()) {
      SourceFile file{it->path().lexically_relative(root).generic_string(), contents(it->path()), {}};
      if (is_code(file)) file.includes = includes_of(file.text);
      files_.emplace(file.path, std::move(file));
    }
  }
}

std::set<std::string> SourceTree::reached_from(const std::string& path) const {
  std::set<std::string> reached;
  std::vector<std::string> open{path};
  while (!open.empty()) {
    const auto file = files_.find(open.back());
    open.pop_back();
    if (file == files_.end()) continue;
    for (const Include& include : file->second.includes)
      if (reached.insert(include.name).second) open.push_back(include.name);
  }
  return reached;
}

}  // namespace hyperrun
