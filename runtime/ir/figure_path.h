// A figure of a machine, named: where a profile has it, what people call it, and how to reach it.
#pragma once

#include <functional>
#include <string>

#include "runtime/ir/machine.h"

namespace hyperrun {

struct FigurePath {
  std::string path;  // as the profile's file has it: "levels[1].latency"
  std::string name;  // for people: "scale-out.latency"
  // The same figure of any machine with the same blocks and levels.
  std::function<Figure&(Machine&)> in;
  std::function<std::string(double)> words;  // a value with its unit: "10 us"
};

}  // namespace hyperrun
