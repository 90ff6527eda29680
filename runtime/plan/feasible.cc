#include "runtime/plan/feasible.h"

#include <algorithm>
#include <map>

#include "runtime/plan/pareto.h"
#include "runtime/plan/piece_table.h"

namespace hyperrun {
namespace {

constexpr int kDoublings = 6;
// A bound says what is needed at least, placing takes more: it is raised by that factor, so often.
constexpr double kRaise = 9.0 / 8;
constexpr int kRaises = 16;
constexpr std::int64_t kAsked = 2000;  // strategies that are asked why they do not divide

std::int32_t most_devices(const Job& base) {
  const std::int32_t of_machine = machine_of(base.supernode).devices;
  const std::int64_t doubled = std::int64_t{base.supernode.devices} << kDoublings;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>({of_machine > 0 ? of_machine : doubled, doubled, 1 << 20}));
}

class Looking {
 public:
  Looking(const Job& base, const Search& failed, const FeasibleOptions& options)
      : base_(base), failed_(failed), options_(options) {}

  Feasible run() {
    Feasible feasible{.most_devices = base_.supernode.devices};
    const std::int32_t most = most_devices(base_);
    for (std::int64_t n = 2 * std::int64_t{base_.supernode.devices}; n <= most && !feasible.more_devices;
         n *= 2) {
      feasible.most_devices = static_cast<std::int32_t>(n);
      feasible.more_devices = tried(with_devices(base_, feasible.most_devices).supernode);
    }
    feasible.more_hbm = raised([&](std::int64_t more) {
      SupernodeSpec spec = base_.supernode;
      spec.hbm += Bytes(more);
      return spec;
    });
    if (options_.space->offload && machine_of(base_.supernode).pool.exists())
      feasible.more_pool = raised([&](std::int64_t more) {
        SupernodeSpec spec = base_.supernode;
        spec.pool += Bytes(more * spec.devices);
        return spec;
      });
    return feasible;
  }

 private:
  // `raise`: the supernode with so much more of something for each device.
  template <class Raise>
  std::optional<Remedy> raised(Raise raise) const {
    const std::int64_t has = base_.supernode.hbm.value;
    auto needs = static_cast<double>(failed_.nearest_needs.value);
    if (failed_.nearest_needs.value <= has) needs = kRaise * static_cast<double>(has);
    std::optional<Remedy> found;
    for (int i = 0; i < kRaises && !found; ++i, needs *= kRaise)
      found = tried(raise(static_cast<std::int64_t>(needs) - has));
    return found;
  }

  std::optional<Remedy> tried(const SupernodeSpec& spec) const {
    Job job = base_;
    job.supernode = spec;
    SearchOptions options{.space = options_.space, .leaders = 1};
    const std::string where =
        "trying " + std::to_string(spec.devices) + " devices of " + to_string(spec.hbm) + ": ";
    if (options_.progress)
      options.progress = [&](const std::string& what, std::int64_t n) { options_.progress(where + what, n); };
    const Search s = search(job, options);
    if (!s.found()) return std::nullopt;
    return Remedy{spec, s.leaders.front()};
  }

  const Job& base_;
  const Search& failed_;
  const FeasibleOptions& options_;
};

bool divides(const Job& job, const Space& space) {
  bool some = false;
  PieceTable table(job);
  each_strategy(job, space, [&](const Strategy& s) { some = some || table.find_least(s) != nullptr; });
  return some;
}

}  // namespace

Feasible nearest_feasible(const Job& base, const Search& failed, const FeasibleOptions& options) {
  return Looking(base, failed, options).run();
}

std::string what_divides_nothing(const Job& base, const Space& space) {
  PieceTable table(base);
  std::map<std::string, std::int64_t> reasons;
  std::int64_t asked = 0;
  each_strategy(base, space, [&](const Strategy& s) {
    if (asked++ < kAsked) ++reasons[table.why_not(s)];
  });
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& r) { return r.second; });
  return most == reasons.end() ? "" : most->first;
}

std::vector<std::int32_t> devices_that_divide(const Job& base, const Space& space) {
  std::vector<std::int32_t> list;
  const std::int32_t n = base.supernode.devices, of_machine = machine_of(base.supernode).devices;
  const auto look = [&](std::int32_t from, std::int32_t to, std::int32_t step) {
    for (std::int32_t d = from; d != to; d += step)
      if (divides(with_devices(base, d), space)) return list.push_back(d);
  };
  look(n - 1, 0, -1);
  look(n + 1, std::min(2 * n, of_machine > 0 ? of_machine : 2 * n) + 1, 1);
  return list;
}

}  // namespace hyperrun
