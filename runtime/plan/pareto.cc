#include "runtime/plan/pareto.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/plan/device_counts.h"

namespace hyperrun {
namespace {

// Budgets as parts of the HBM that the fastest takes, in descending order.
constexpr std::array kBudgets{3.0 / 4, 1.0 / 2, 3.0 / 8, 1.0 / 4, 3.0 / 16, 1.0 / 8};

std::vector<std::int32_t> usual_counts(const Job& base) {
  const std::int32_t n = base.supernode.devices, most = machine_of(base.supernode).devices;
  std::vector<std::int32_t> list;
  for (const std::int32_t parts : {4, 2})
    if (n % parts == 0) list.push_back(n / parts);
  list.push_back(n);
  if (most == 0 || 2 * n <= most) list.push_back(2 * n);
  return list;
}

class FrontSearch {
 public:
  FrontSearch(const Job& base, const Search& known, const FrontOptions& options)
      : base_(base), known_(known), options_(options) {}

  Front run() {
    std::vector<std::int32_t> counts = options_.devices.empty() ? usual_counts(base_) : options_.devices;
    std::ranges::sort(counts);
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    require_devices(base_, counts);
    for (const std::int32_t n : counts) look_at(n);
    leave_out_dominated();
    return std::move(front_);
  }

 private:
  void look_at(std::int32_t devices) {
    front_.counts.push_back({.devices = devices});
    const Bytes all = base_.supernode.hbm;
    Bytes least = all, fastest{};  // HBM of the fastest so far, and of the fastest of all
    if (!search_within(devices, all, least)) return;
    fastest = least;
    for (const double share : kBudgets) {
      const Bytes budget(static_cast<std::int64_t>(share * static_cast<double>(fastest.value)));
      if (least <= budget) continue;  // the best is the same as under the larger budget
      if (!search_within(devices, budget, least)) return;
    }
  }

  // Searches within a budget. Returns false if no smaller budget can help. `least` becomes the HBM of the
  // fastest.
  bool search_within(std::int32_t devices, Bytes budget, Bytes& least) {
    FrontCount& count = front_.counts.back();
    Job job = with_devices(base_, devices);
    job.supernode.hbm = budget;
    const bool is_base = job.supernode == base_.supernode;
    const Search& s = is_base ? known_ : (latest_ = search_for(job));
    if (!s.found()) {
      if (!count.fits) say_why(count, job, s);
      return !s.leaders.empty();  // a refused candidate may fit a smaller budget in another form
    }
    count.fits = true;
    least = s.leaders.front().hbm;
    add(devices, budget, s);
    if (s.bounds_hold) certify(devices, budget, s);
    return true;
  }

  void say_why(FrontCount& count, const Job& job, const Search& s) const {
    count.needs = s.least_memory;
    if (!s.smallest.empty()) return;
    Space all = *options_.space;
    all.only.clear();
    count.divides = !options_.space->only.empty() && divides(job, all);
    count.meets_constraints = !count.divides;
  }

  // Improves the gaps of points within this budget. Dropped strategies count with the search's least bound. A
  // simulated candidate that takes more HBM than a point, or offloads, may have a variant beside the point,
  // which is no faster than its bound.
  void certify(std::int32_t devices, Bytes budget, const Search& s) {
    for (FrontPoint& p : front_.points) {
      if (p.devices != devices || p.leader.hbm > budget) continue;
      double least = s.least_bound;
      for (const SimulatedCandidate& l : s.leaders)
        if ((l.hbm > p.leader.hbm || l.strategy.memory != PlanMemory::kNone) && l.forecast.bound > 0)
          least = std::min(least, l.forecast.bound_with_extra);
      p.gap = std::min(p.gap, std::max(0.0, p.leader.simulated / least - 1));
    }
  }

  Search search_for(const Job& job) const {
    const SupernodeSpec& spec = job.supernode;
    const std::string where = fmt::format("{} {} of {}", spec.devices,
                                          spec.devices == 1 ? "device" : "devices", to_string(spec.hbm));
    return search(job, {.space = options_.space,
                        .leaders = options_.leaders,
                        .progress = within(options_.progress, where),
                        .of_each_kind = false});
  }

  void add(std::int32_t devices, Bytes budget, const Search& s) {
    const auto add_one = [&](const SimulatedCandidate& l) {
      if (l.simulated > 0)
        front_.points.push_back({devices, budget, without_plan(l), std::numeric_limits<double>::infinity()});
    };
    for (const SimulatedCandidate& l : s.leaders) add_one(l);
    for (const SimulatedAlternative& a : s.others) add_one(a.leader);
  }

  void leave_out_dominated() {
    std::vector<FrontPoint> kept;
    for (const FrontPoint& p : front_.points) {
      const bool worse =
          std::ranges::any_of(front_.points, [&](const FrontPoint& q) { return dominates(q, p); });
      const bool twice = std::ranges::any_of(kept, [&](const FrontPoint& q) { return equals(q, p); });
      if (!worse && !twice) kept.push_back(p);
    }
    std::ranges::stable_sort(kept, {},
                             [](const FrontPoint& p) { return std::pair(p.devices, p.leader.simulated); });
    front_.points = std::move(kept);
  }

  static bool equals(const FrontPoint& a, const FrontPoint& b) {
    return a.devices == b.devices && a.leader.simulated == b.leader.simulated && a.leader.hbm == b.leader.hbm;
  }

  const Job& base_;
  const Search& known_;
  const FrontOptions& options_;
  Search latest_;
  Front front_;
};

}  // namespace

void require_devices(const Job& base, const std::vector<std::int32_t>& counts) {
  const Machine machine = machine_of(base.supernode);
  for (const std::int32_t n : counts)
    if (n < 1 || (machine.devices > 0 && n > machine.devices))
      throw Error(Code::kBadValue, fmt::format("the machine \"{}\" has not {} devices", machine.name, n))
          .at("--pareto-devices")
          .legal(machine.devices > 0 ? fmt::format("1 to {}", machine.devices) : "1 or more");
}

bool dominates(const FrontPoint& a, const FrontPoint& b) {
  const bool no_more =
      a.devices <= b.devices && a.leader.hbm <= b.leader.hbm && a.leader.simulated <= b.leader.simulated;
  const bool less =
      a.devices < b.devices || a.leader.hbm < b.leader.hbm || a.leader.simulated < b.leader.simulated;
  return no_more && less;
}

Front pareto_front(const Job& base, const Search& known, const FrontOptions& options) {
  return FrontSearch(base, known, options).run();
}

}  // namespace hyperrun
