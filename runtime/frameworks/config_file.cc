#include "runtime/frameworks/config_file.h"

#include <fmt/core.h>
#include <toml++/toml.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "runtime/base/error.h"

namespace hyperrun::frameworks {
namespace {

constexpr std::size_t kMostSettings = 200'000;
constexpr int kDeepest = 64;

Error syntax(const std::string& place, const std::string& cause) {
  return Error(Code::kSyntax, cause).at(place).fix("correct the file, or name its kind by --from");
}

std::string child(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

class YamlReader {
 public:
  explicit YamlReader(const std::string& file) : file_(file) {}

  std::vector<Setting> all(const YAML::Node& root) {
    if (!root.IsMap()) throw syntax(file_, "the file is no block of keys");
    visit(root, "", 0);
    return std::move(settings_);
  }

 private:
  std::string place(const YAML::Mark& mark) const {
    return mark.line < 0 ? file_ : fmt::format("{}:{}:{}", file_, mark.line + 1, mark.column + 1);
  }

  void visit(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kDeepest) throw syntax(place(node.Mark()), fmt::format("nested deeper than {}", kDeepest));
    if (node.IsMap()) {
      for (const auto& entry : node) {
        const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
        // Keys of "<<" are those of another block, which this one takes over.
        visit_entry(entry.second, key == "<<" ? path : child(path, key), entry.first.Mark(), depth);
      }
      return;
    }
    if (node.IsSequence())
      for (std::size_t i = 0; i < node.size(); ++i)
        visit_entry(node[i], child(path, std::to_string(i)), node[i].Mark(), depth);
  }

  void visit_entry(const YAML::Node& value, const std::string& path, const YAML::Mark& mark, int depth) {
    if (value.IsMap() && value.size() > 0) return visit(value, path, depth + 1);
    if (value.IsSequence() && !is_plain(value)) return visit(value, path, depth + 1);
    if (settings_.size() >= kMostSettings)
      throw syntax(place(mark), fmt::format("more than {} settings", kMostSettings));
    settings_.push_back({path, text(value), true, place(mark), {}});
  }

  static bool is_plain(const YAML::Node& list) {
    for (const auto& element : list)
      if (element.IsMap() || element.IsSequence()) return false;
    return true;
  }

  static std::string text(const YAML::Node& value) {
    if (value.IsNull()) return "null";
    if (value.IsScalar()) return value.Scalar();
    std::string list;
    for (const auto& element : value)
      list += (list.empty() ? "" : " ") + (element.IsScalar() ? element.Scalar() : "null");
    return list;
  }

  const std::string& file_;
  std::vector<Setting> settings_;
};

class TomlReader {
 public:
  explicit TomlReader(const std::string& file) : file_(file) {}

  std::vector<Setting> all(const toml::table& root) {
    visit(root, "", 0);
    return std::move(settings_);
  }

 private:
  std::string place(const toml::source_region& source) const {
    return fmt::format("{}:{}:{}", file_, source.begin.line, source.begin.column);
  }

  void visit(const toml::table& table, const std::string& path, int depth) {
    if (depth > kDeepest) throw syntax(file_, fmt::format("nested deeper than {}", kDeepest));
    for (const auto& [key, node] : table) {
      const std::string name = child(path, std::string(key.str()));
      if (const toml::table* inner = node.as_table())
        visit(*inner, name, depth + 1);
      else
        settings_.push_back({name, text(node, 0), true, place(key.source()), {}});
    }
  }

  static std::string text(const toml::node& node, int depth) {
    if (const toml::array* list = node.as_array(); list != nullptr && depth < kDeepest) {
      std::string all;
      for (const toml::node& element : *list) all += (all.empty() ? "" : " ") + text(element, depth + 1);
      return all;
    }
    if (const auto* s = node.as_string()) return s->get();
    if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
    if (const auto* i = node.as_integer()) return std::to_string(i->get());
    if (const auto* f = node.as_floating_point()) return fmt::format("{}", f->get());
    return "";
  }

  const std::string& file_;
  std::vector<Setting> settings_;
};

}  // namespace

std::vector<Setting> read_yaml(const std::string& path, std::string_view content) try {
  return YamlReader(path).all(YAML::Load(std::string(content)));
} catch (const YAML::Exception& e) {
  throw syntax(e.mark.line < 0 ? path : fmt::format("{}:{}:{}", path, e.mark.line + 1, e.mark.column + 1),
               e.msg);
}

// JSON is YAML, which knows the places of keys, but for tabs between tokens and comments.
std::vector<Setting> read_json_config(const std::string& path, std::string_view content) {
  std::string plain(content);
  bool quoted = false;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '\\' && quoted) {
      ++i;
      continue;
    }
    if (plain[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (plain[i] == '\t' || plain[i] == '\r') plain[i] = ' ';
    if (plain.compare(i, 2, "//") == 0)
      while (i < plain.size() && plain[i] != '\n') plain[i++] = ' ';
  }
  return read_yaml(path, plain);
}

std::vector<Setting> read_toml(const std::string& path, std::string_view content) try {
  return TomlReader(path).all(toml::parse(content, path));
} catch (const toml::parse_error& e) {
  throw syntax(fmt::format("{}:{}:{}", path, e.source().begin.line, e.source().begin.column),
               std::string(e.description()));
}

}  // namespace hyperrun::frameworks
