// A figure of a machine with its place in a profile, its name for people, and a way to reach it.
#pragma once

#include <functional>
#include <string>

#include "runtime/ir/machine.h"

namespace hyperrun {

struct FigurePath {
  std::string path;  // in the profile's file: "levels[1].latency"
  std::string name;  // for people: "scale-out.latency"
  // Finds this figure in any machine with the same blocks and levels.
  std::function<Figure&(Machine&)> in;
  std::function<std::string(double)> describe;  // writes a value with its unit: "10 us"
};

}  // namespace hyperrun
