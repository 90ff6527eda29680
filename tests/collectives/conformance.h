// The conformance suite of transports, as cases. Each rank runs a case with its own World and checks its
// results against a naive reference in double.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "collectives/group.h"
#include "collectives/world.h"
#include "memory/arena.h"

namespace hyperrun::conformance {

// One rank's side of a case.
class Rank {
 public:
  Rank(World& world, Arena& arena) : world(world), arena(arena) {}

  // Allocates memory from the arena, at another offset on every rank.
  std::byte* allocate(std::int64_t bytes);

  // The group of all ranks, and one in reverse order under a key of its own.
  Group& everyone();
  Group& reversed();

  World& world;
  Arena& arena;

 private:
  std::int64_t used_ = 0;
  Group* everyone_ = nullptr;
  Group* reversed_ = nullptr;
};

struct Case {
  std::string name;
  std::function<void(Rank&)> run;
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<Case>& cases();

inline constexpr Bytes kArena{8 << 20};

}  // namespace hyperrun::conformance
