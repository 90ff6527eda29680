// Word of long work for those who wait.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace hyperrun {

// Called now and then: what is done, and how many of it. May be empty.
using Progress = std::function<void(const std::string& what, std::int64_t count)>;

// Of a part of the work: `where` stands behind what is said of it. `progress` outlives it.
inline Progress within(const Progress& progress, std::string where) {
  if (!progress) return {};
  return [&progress, where = std::move(where)](const std::string& what, std::int64_t count) {
    progress(what + ", " + where, count);
  };
}

}  // namespace hyperrun
