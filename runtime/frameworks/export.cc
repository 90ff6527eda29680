#include "runtime/frameworks/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/frameworks/table.h"

namespace hyperrun::frameworks {
namespace {

// Whether the value is a number or a truth value, which has no quotes.
bool is_plain(const std::string& value) {
  if (value == "true" || value == "false") return true;
  char* end = nullptr;
  std::strtod(value.c_str(), &end);
  return !value.empty() && end == value.c_str() + value.size();
}

std::string scalar(const std::string& value) { return is_plain(value) ? value : '"' + value + '"'; }

// Numbers with blanks between them are a list.
std::string value_text(const std::string& value) {
  std::string list;
  std::size_t begin = 0, count = 0;
  while (begin <= value.size()) {
    const std::size_t end = std::min(value.find(' ', begin), value.size());
    const std::string part = value.substr(begin, end - begin);
    if (!is_plain(part)) return scalar(value);
    list += (list.empty() ? "" : ", ") + part;
    ++count;
    begin = end + 1;
  }
  return count > 1 ? "[" + list + "]" : scalar(value);
}

std::string arguments(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& s : settings) {
    if (!s.has_value && s.value == "false") continue;
    if (!text.empty()) text += " \\\n";
    text += "--" + s.name;
    if (!s.has_value) continue;
    const bool quotes = s.value.find_first_of("()*|+") != std::string::npos;
    text += quotes ? " \"" + s.value + "\"" : " " + s.value;
  }
  return text + "\n";
}

std::string toml(const std::vector<Setting>& settings) {
  std::vector<std::string> tables;
  for (const Setting& s : settings) {
    const std::string table = s.name.substr(0, s.name.find('.'));
    if (std::ranges::find(tables, table) == tables.end()) tables.push_back(table);
  }
  std::string text;
  for (const std::string& table : tables) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table);
    for (const Setting& s : settings)
      if (s.name.starts_with(table + "."))
        text +=
            fmt::format("{} = {}\n", s.name.substr(table.size() + 1),
                        s.name.ends_with("selective_ac_option") ? '"' + s.value + '"' : value_text(s.value));
  }
  return text;
}

// The settings as a tree of their keys, in their order.
struct Tree {
  std::string key, value;
  std::vector<Tree> children;
};

Tree tree_of(const std::vector<Setting>& settings) {
  Tree root;
  for (const Setting& s : settings) {
    Tree* at = &root;
    std::size_t begin = 0;
    while (begin <= s.name.size()) {
      const std::size_t end = std::min(s.name.find('.', begin), s.name.size());
      const std::string key = s.name.substr(begin, end - begin);
      auto child = std::ranges::find(at->children, key, &Tree::key);
      if (child == at->children.end()) child = at->children.insert(child, Tree{key, "", {}});
      at = &*child;
      begin = end + 1;
    }
    at->value = value_text(s.value);
  }
  return root;
}

void add_yaml(const Tree& tree, int depth, std::string& text) {
  for (const Tree& child : tree.children) {
    const bool element = child.key.find_first_not_of("0123456789") == std::string::npos;
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    if (element) {
      std::string inner;
      add_yaml(child, depth + 1, inner);
      inner[static_cast<std::size_t>(2 * depth)] = '-';
      text += inner;
    } else if (child.children.empty()) {
      text += fmt::format("{}{}: {}\n", indent, child.key, child.value);
    } else {
      text += fmt::format("{}{}:\n", indent, child.key);
      add_yaml(child, depth + 1, text);
    }
  }
}

void add_json(const Tree& tree, int depth, std::string& text) {
  text += "{\n";
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    const Tree& child = tree.children[i];
    text += fmt::format("{}\"{}\": ", std::string(static_cast<std::size_t>(2 * depth + 2), ' '), child.key);
    if (child.children.empty())
      text += child.value;
    else
      add_json(child, depth + 1, text);
    text += i + 1 < tree.children.size() ? ",\n" : "\n";
  }
  text += std::string(static_cast<std::size_t>(2 * depth), ' ') + "}";
}

std::string written(const std::vector<Setting>& settings, Notation notation) {
  std::string text;
  switch (notation) {
    case Notation::kArguments: return arguments(settings);
    case Notation::kToml: return toml(settings);
    case Notation::kJson: add_json(tree_of(settings), 0, text); return text + "\n";
    case Notation::kYaml: add_yaml(tree_of(settings), 0, text); return text;
  }
  return text;
}

}  // namespace

ExportedRun export_run(const Job& job, const Framework& framework) {
  ExportedRun run;
  Launch launch;
  framework.from_job(job, launch, run.cannot);
  run.remark = launch.remark.value_or("");
  if (run.cannot.empty()) run.text = written(framework.table().write(launch), framework.notation);
  return run;
}

}  // namespace hyperrun::frameworks
