// The first round of a search: every strategy of some shapes gets a bound of its step and of its memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/dimensions.h"
#include "runtime/plan/kept_structures.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// A strategy that may fit.
struct Bounded {
  double bound = 0;  // ns
  Strategy strategy;
  double of_more = 0;  // ns, no more than `bound`: nor of it with more layers that recompute more
};
// By bound; of equal ones in an order of their own, so that a search finds the same on any number of cores.
bool lower(const Bounded& a, const Bounded& b);

// How much HBM a strategy needs.
struct Needs {
  Bytes least{}, nearly{};  // by its bound, by its forecast
  Strategy strategy;
  double bound = 0, of_more = 0;  // ns, as Bounded has them
};

// Of many strategies those of the least bounds.
class Lowest {
 public:
  void add(const Bounded& b);
  void add(Lowest&& other);
  // One that is not kept.
  void leave(double bound_of_more) { least_left_ = std::min(least_left_, bound_of_more); }
  // Leaves those that are too many: behind the last is added, as it is done now and then meanwhile.
  void cut();

  // ns: of a greater bound none is kept, since the last time that some were left.
  double enough() const { return enough_; }
  const std::vector<Bounded>& list() const { return list_; }
  double least_left() const { return least_left_; }  // ns: the least bound of those that are not kept

  static constexpr std::size_t kMost = 200'000;

 private:
  std::vector<Bounded> list_;
  double enough_ = std::numeric_limits<double>::infinity();
  double least_left_ = std::numeric_limits<double>::infinity();
};

struct Bounds {
  // Strategies that may fit into HBM, and those that may not as they are, but with transfers: these promise
  // more than they keep, and there are so many that they would leave no room for the others.
  Lowest kept, kept_moved;
  double least = std::numeric_limits<double>::infinity();  // ns: of all that were bounded, kept or not
  std::int64_t strategies = 0, do_not_divide = 0, do_not_fit = 0, bounded = 0;
  Alternatives alternatives;
  // Those that are forecast to need least, the least first; of what differs in stages alone, one.
  std::vector<Needs> modest;
  std::int64_t least_memory = std::numeric_limits<std::int64_t>::max();  // bytes of HBM: none needs less

  static constexpr std::size_t kMostModest = 64;
  void add_modest(const Needs& needs);
  void add(Bounds&& other);

  // All that are kept, by bound, and the least bound of the others, ns.
  std::vector<Bounded> lowest() const;
  double least_left() const { return std::min(kept.least_left(), kept_moved.least_left()); }
};

// Of all shapes, on all cores: what is sharded together is looked at by one thread, and is the same on any
// number of them. `news` is called with how many were looked at, now and then, by one thread at a time.
// `structures`: gets what was made for groups of which a strategy may be kept, by its bound.
Bounds bound_all(const Job& job, const Space& space, std::span<const Strategy> shapes,
                 const std::function<void(std::int64_t)>& news, KeptStructures* structures = nullptr);

// Bytes beyond HBM that devices may use, on average: of a pipeline one may take more, another less.
Bytes pool_share(const Job& job, const Space& space);

}  // namespace hyperrun
