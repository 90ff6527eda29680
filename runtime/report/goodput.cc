#include "runtime/report/goodput.h"

#include <fmt/core.h>

#include <array>
#include <utility>

namespace hyperrun {
namespace {

std::string line(const char* what, const GoodputParts& p) {
  std::string text = fmt::format("{} {:.1f} %", what, 100 * p.goodput());
  const std::array<std::pair<const char*, double>, 7> others{{{"slower", p.slower},
                                                              {"saving", p.saving},
                                                              {"lost", p.lost},
                                                              {"noticing", p.noticing},
                                                              {"waiting", p.waiting},
                                                              {"starting", p.starting},
                                                              {"reading", p.reading}}};
  for (const auto& [name, seconds] : others)
    if (seconds / p.seconds() >= 0.0005)
      text += fmt::format(", {} {:.1f} %", name, 100 * seconds / p.seconds());
  return text + "\n";
}

}  // namespace

std::string to_text(const Goodput& g) {
  return line("goodput", g.executed) + (g.foretold ? line("  foretold", *g.foretold) : "");
}

}  // namespace hyperrun
