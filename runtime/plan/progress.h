// Progress messages of long searches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace hyperrun {

// Called now and then with what is counted and the count. May be empty.
using Progress = std::function<void(const std::string& what, std::int64_t count)>;

// Progress of a part of the work: `where` is appended to each message. `progress` must outlive the result.
inline Progress within(const Progress& progress, std::string where) {
  if (!progress) return {};
  return [&progress, where = std::move(where)](const std::string& what, std::int64_t count) {
    progress(what + ", " + where, count);
  };
}

}  // namespace hyperrun
