// The files of the repository, and what each includes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hyperrun {

struct Include {
  std::string name;  // as written
  std::size_t line;
  bool quoted;
};

struct SourceFile {
  std::string path;  // from the root
  std::string text;
  std::vector<Include> includes;  // of .h and .cc files
};

class SourceTree {
 public:
  // Everything below `root` but hidden files, build trees and what runs write (build*, data, runs).
  explicit SourceTree(const std::filesystem::path& root);

  // By path, which also sorts them.
  const std::map<std::string, SourceFile>& files() const { return files_; }

  // The files of ours that `path` includes, itself and through others, and the foreign names on the way.
  std::set<std::string> reached_from(const std::string& path) const;

 private:
  std::map<std::string, SourceFile> files_;
};

bool is_code(const SourceFile& file);

}  // namespace hyperrun
