// The variables of a script while it is read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/frameworks/shell/sources.h"

namespace hyperrun::shell {

struct Variable {
  std::vector<Text> elements;         // one, unless it is an array
  std::map<std::string, Text> named;  // of an associative array
  bool is_array = false;
};

struct Variables {
  std::map<std::string, Variable> by_name;
  std::vector<Text> arguments;   // $1, $2, ...
  bool arguments_known = false;  // false: nobody has said how the script is called
  std::string script;            // $0

  const Variable* find(const std::string& name) const {
    const auto at = by_name.find(name);
    return at == by_name.end() ? nullptr : &at->second;
  }
  void set(const std::string& name, Text value) { by_name[name] = {{std::move(value)}, {}, false}; }
};

}  // namespace hyperrun::shell
