#include "runtime/plan/bounding.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/base/parallel.h"
#include "runtime/plan/balance.h"
#include "runtime/plan/least_pieces.h"
#include "runtime/plan/piece_table.h"
#include "runtime/plan/pipeline_devices.h"
#include "runtime/plan/transfers.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kNews = 20'000;  // strategies between two words of progress

// ns, for other threads: what has a greater bound need not be kept.
struct Enough {
  std::atomic<double> kept = std::numeric_limits<double>::infinity();
  std::atomic<double> moved = std::numeric_limits<double>::infinity();
};

class Bounding {
 public:
  Bounding(const Job& job, const Space& space, PieceTable& table,
           const std::function<void(std::int64_t)>& news, const Enough& enough)
      : job_(job),
        space_(space),
        table_(table),
        news_(news),
        enough_(enough),
        hbm_(job.supernode.hbm.value),
        share_(pool_share(job, space).value) {}

  Bounds run(std::span<const Strategy> shapes) {
    for (const Strategy& shape : shapes)
      each_of_shape(job_, space_, shape, [&](const Strategy& s) { look_at(s); });
    news_(result_.strategies % kNews);
    result_.kept.cut(), result_.kept_moved.cut();
    return std::move(result_);
  }

 private:
  void look_at(const Strategy& s) {
    find_pieces(s);
    bound(s);
    if (const Strategy* uneven = balanced_like(s)) bound(*uneven);
  }

  // What least_form() looks at in the pieces changes less often than the rest.
  void find_pieces(const Strategy& s) {
    const bool same = known_ && s.sizes == latest_.sizes && s.samples == latest_.samples &&
                      s.recompute == latest_.recompute && s.experts == latest_.experts;
    if (same) return;
    pieces_.pieces = table_.find_least(s);
    pieces_.deeper = pieces_.pieces == nullptr ? nullptr : deeper_like(s);
    latest_ = s, known_ = true;
    of_chunks_.clear();
  }

  const Pieces* deeper_like(Strategy s) {
    const std::optional<PlanRecompute> next = next_after(s.recompute);
    if (!next) return nullptr;
    s.recompute = *next;
    return table_.find_least(s);
  }

  // Of layers on their devices, as evenly as it goes or balanced.
  struct Spread {
    std::optional<PipelineDevices> layers;
    std::array<std::optional<PipelineDevices>, kSchedules> devices;  // their ZeRO is the latest
    std::optional<double> left;  // of a bound, at least, where some layers recompute more
  };

  struct OfChunks {
    std::optional<Strategy> balanced;  // the even one where no other is better
    Spread even, uneven;
  };

  OfChunks& of_chunks(const Strategy& s) {
    const auto chunks = static_cast<std::size_t>(s.chunks);
    if (of_chunks_.size() <= chunks) of_chunks_.resize(chunks + 1);
    return of_chunks_[chunks];
  }

  const Strategy* balanced_like(const Strategy& s) {
    if (pieces_.pieces == nullptr || !space_.uneven || s[PlanAxis::kPipeline] == 1) return nullptr;
    std::optional<Strategy>& known = of_chunks(s).balanced;
    if (!known) known = balanced(s, job_.model, *pieces_.pieces).value_or(s);
    if (known->lead == 0 && known->tail == 0) return nullptr;
    uneven_ = s;
    uneven_.lead = known->lead, uneven_.tail = known->tail;
    return &uneven_;
  }

  bool meets_all(const Strategy& s) const { return meets(space_.only, s, Settled::kBounded); }

  // What becomes of it where its forecast does not fit, or where nothing else is wanted.
  bool more_layers_meet(Strategy s) const {
    if (s.deeper > 0 || !may_recompute_more(s, job_.model.layers)) return false;
    s.deeper = 1;
    return meets_all(s);
  }

  void count(Strategy s) {
    if (!meets_all(s)) {
      if (!more_layers_meet(s)) return;
      s.deeper = 1;
    }
    result_.alternatives.count(s);
    if (++result_.strategies % kNews == 0) news_(kNews);
  }

  Spread& spread_of(const Strategy& s) {
    OfChunks& known = of_chunks(s);
    return s.lead == 0 && s.tail == 0 ? known.even : known.uneven;
  }

  double share(const Strategy& s) {
    std::optional<double>& left = spread_of(s).left;
    if (!left) left = least_share(pieces_, s, job_.model.layers);
    return *left;
  }

  Forecast least_form_of(const Strategy& s) {
    const std::int32_t m = micro_batches(s, job_.training.batch);
    if (s.deeper > 0) return least_form(s, job_.model, m, pieces_);
    Spread& spread = spread_of(s);
    if (!spread.layers) spread.layers = layers_on_devices(s, job_.model, pieces_);
    std::optional<PipelineDevices>& devices = spread.devices[static_cast<std::size_t>(s.schedule)];
    if (!devices) devices = with_ends(*spread.layers, s, job_.model, pieces_);
    split_state(*devices, s, job_.model, pieces_);
    return least_form(s, m, pieces_, *devices);
  }

  Forecast least_of(const Strategy& s) {
    Forecast f = least_form_of(s);
    if (may_recompute_more(s, job_.model.layers)) {  // and fit without transfers
      f.bound_of_more = share(s) * f.bound;
      return f;
    }
    f.bound = std::max(f.bound, least_transfers(f, table_.machine().pool, job_.supernode.hbm));
    f.bound_of_more = f.bound;
    return f;
  }

  // Also what is not as it should be, as what recomputes more in some layers may be.
  void bound(const Strategy& s) {
    count(s);
    if (pieces_.pieces == nullptr) {
      result_.do_not_divide += meets_all(s) ? 1 : 0;
      return;
    }
    const Forecast f = least_of(s);
    keep(s, f, share_ > 0);
    count_modest_deeper(s, f);
    if (cannot_be(f, share_ > 0)) bound_deeper(s, f);
  }

  // Where only what recomputes more in some layers is wanted: the one that needs least of these. It may be
  // tried with fewer of them.
  void count_modest_deeper(Strategy s, const Forecast& without) {
    if (meets_all(s) || pieces_.deeper == nullptr || !more_layers_meet(s)) return;
    s.deeper = most_layers(s, job_.model.layers) - 1;
    Forecast f = least_of(s);
    f.bound = f.bound_of_more = without.bound_of_more;
    add_modest(s, f);
  }

  void add_modest(const Strategy& s, const Forecast& f) {
    const std::int64_t least = share_ > 0 ? std::max(f.least_here, f.least_mean - share_) : f.least_memory;
    result_.least_memory = std::min(result_.least_memory, least);
    result_.add_modest({Bytes(f.least_memory), Bytes(f.memory), s, f.bound, f.bound_of_more});
  }

  // Of a strategy that cannot fit: with as few layers that recompute more as may fit into HBM. All of them
  // are the strategy that recomputes so everywhere.
  void bound_deeper(Strategy s, const Forecast& without) {
    if (pieces_.deeper == nullptr) return;
    const std::int32_t all = most_layers(s, job_.model.layers);
    s.deeper = all;
    const Forecast most = least_of(s);
    if (most.least_memory > hbm_) return;
    // Nearly straight between the two.
    const double part = static_cast<double>(without.least_memory - hbm_) /
                        static_cast<double>(without.least_memory - most.least_memory);
    s.deeper = std::clamp(static_cast<std::int32_t>(std::ceil(all * part)), 1, all);
    Forecast f = least_of(s);
    while (s.deeper > 1) {
      --s.deeper;
      const Forecast fewer = least_of(s);
      if (fewer.least_memory > hbm_) {
        ++s.deeper;
        break;
      }
      f = fewer;
    }
    for (; f.least_memory > hbm_; f = least_of(s)) ++s.deeper;
    if (s.deeper < all) {
      count(s);
      keep(s, f, false);
    }
  }

  // It takes more than there is. With transfers: than HBM and pool of all devices, as these share the pool,
  // or what no policy of memory moves more than HBM.
  bool cannot_be(const Forecast& f, bool moves) const {
    return moves ? f.least_mean > hbm_ + share_ || f.least_here > hbm_ : f.least_memory > hbm_;
  }

  void keep(const Strategy& s, const Forecast& f, bool moves) {
    const bool meets = meets_all(s);
    if (!meets && !more_layers_meet(s)) return;
    if (meets) result_.alternatives.count_divided(f.least_memory);
    // With as many layers that recompute more as HBM asks for, it needs what there is: others say what would
    // do.
    if (meets && s.deeper == 0) add_modest(s, f);
    if (cannot_be(f, moves)) {
      result_.do_not_fit += meets ? 1 : 0;
      return;
    }
    if (meets) result_.alternatives.count_fitting(s, f.bound_of_more);
    ++result_.bounded;
    result_.least = std::min(result_.least, f.bound);
    const bool fits = f.least_memory <= hbm_;
    Lowest& list = fits ? result_.kept : result_.kept_moved;
    if (f.bound > (fits ? enough_.kept : enough_.moved).load(std::memory_order_relaxed))
      list.leave(f.bound_of_more);
    else
      list.add({f.bound, s, f.bound_of_more});
  }

  const Job& job_;
  const Space& space_;
  PieceTable& table_;
  const std::function<void(std::int64_t)>& news_;
  const Enough& enough_;
  std::int64_t hbm_, share_;
  // Of the strategy that was looked at last.
  Strategy latest_, uneven_;
  bool known_ = false;
  LayersPieces pieces_;
  std::vector<OfChunks> of_chunks_;  // by stages of a device
  Bounds result_;
};

// In threads, the shapes of a structure by one of them. The largest groups first, so that none is left when
// others have ended; put together in their order, so that it does not matter who was first.
class BoundingAll {
 public:
  BoundingAll(const Job& job, const Space& space, const std::function<void(std::int64_t)>& news,
              KeptStructures* structures)
      : job_(job), space_(space), news_(news), structures_(structures) {}

  Bounds run(std::span<const Strategy> shapes) {
    group(shapes);
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t g) { return groups_[g].size(); });
    std::atomic<std::size_t> next{0};
    parallel_for(std::max(1U, std::thread::hardware_concurrency()), [&](std::size_t) {
      PieceTable table(job_);
      for (std::size_t i = next++; i < order.size(); i = next++) {
        const std::vector<Strategy>& group = groups_[order[i]];
        Bounds bounds = Bounding(job_, space_, table, told_, enough_).run(group);
        auto structures = table.exchange();
        if (structures_ != nullptr)
          structures_->keep(table.key_of_group(group.front()), bounds.least, std::move(structures));
        take(order[i], std::move(bounds));
      }
    });
    all_.kept.cut(), all_.kept_moved.cut();
    if (structures_ != nullptr) structures_->drop_beyond(greatest_kept());
    return std::move(all_);
  }

 private:
  void group(std::span<const Strategy> shapes) {
    const PieceTable table(job_);
    std::unordered_map<std::string, std::size_t> known;
    for (const Strategy& shape : shapes) {
      const std::size_t g = known.try_emplace(table.key_of_group(shape), groups_.size()).first->second;
      if (g == groups_.size()) groups_.emplace_back();
      groups_[g].push_back(shape);
    }
  }

  double greatest_kept() const {
    double greatest = 0;
    for (const Lowest* list : {&all_.kept, &all_.kept_moved})
      for (const Bounded& b : list->list()) greatest = std::max(greatest, b.bound);
    return greatest;
  }

  // Of those that are kept it does not matter who comes first.
  void take(std::size_t group, Bounds bounds) {
    const std::lock_guard lock(mutex_);
    all_.kept.add(std::exchange(bounds.kept, {}));
    all_.kept_moved.add(std::exchange(bounds.kept_moved, {}));
    enough_.kept = all_.kept.enough(), enough_.moved = all_.kept_moved.enough();
    waiting_.emplace(group, std::move(bounds));
    for (auto i = waiting_.begin(); i != waiting_.end() && i->first == taken_;
         i = waiting_.erase(i), ++taken_)
      all_.add(std::move(i->second));
  }

  const Job& job_;
  const Space& space_;
  const std::function<void(std::int64_t)>& news_;
  KeptStructures* structures_;
  std::mutex mutex_;
  const std::function<void(std::int64_t)> told_ = [this](std::int64_t more) {
    const std::lock_guard lock(mutex_);
    news_(looked_at_ += more);
  };
  std::int64_t looked_at_ = 0;
  std::vector<std::vector<Strategy>> groups_;
  std::map<std::size_t, Bounds> waiting_;  // for those of groups before them
  std::size_t taken_ = 0;
  Bounds all_;
  Enough enough_;
};

}  // namespace

bool lower(const Bounded& a, const Bounded& b) {
  const auto rank = [](const Bounded& x) {
    const Strategy& s = x.strategy;
    return std::tuple(x.bound, s.sizes, s.zero, s.samples, s.chunks, s.schedule, s.recompute, s.deeper,
                      s.experts, s.lead, s.tail);
  };
  return a.bound != b.bound ? a.bound < b.bound : rank(a) < rank(b);
}

void Lowest::add(const Bounded& b) {
  list_.push_back(b);
  if (list_.size() == 2 * kMost) cut();
}

void Lowest::add(Lowest&& other) {
  for (const Bounded& b : other.list_)
    if (b.bound > enough_)
      leave(b.of_more);
    else
      list_.push_back(b);
  leave(other.least_left_);
  if (list_.size() > kMost + kMost / 8) cut();
}

// Numbers are moved about much faster than strategies are.
void Lowest::cut() {
  if (list_.size() <= kMost) return;
  std::vector<double> bounds;
  bounds.reserve(list_.size());
  for (const Bounded& b : list_) bounds.push_back(b.bound);
  const auto last = bounds.begin() + (kMost - 1);
  std::ranges::nth_element(bounds, last);
  enough_ = *last;
  const auto equal = std::ranges::partition(list_, [&](const Bounded& b) { return b.bound < enough_; });
  const auto more = std::ranges::partition(equal, [&](const Bounded& b) { return b.bound == enough_; });
  const auto end = list_.begin() + kMost;
  std::ranges::nth_element(equal.begin(), end, more.begin(), lower);
  for (auto i = end; i != list_.end(); ++i) leave(i->of_more);
  list_.erase(end, list_.end());
}

void Bounds::add_modest(const Needs& needs) {
  if (modest.size() == kMostModest && needs.nearly >= modest.back().nearly) return;
  const auto kin = [](const Strategy& s) {
    return std::tuple(s.sizes, s.experts, s.zero, s.samples, s.schedule, s.recompute, s.deeper > 0);
  };
  const auto same =
      std::ranges::find_if(modest, [&](const Needs& n) { return kin(n.strategy) == kin(needs.strategy); });
  if (same != modest.end()) {
    if (same->nearly <= needs.nearly) return;
    modest.erase(same);
  }
  modest.insert(std::ranges::upper_bound(modest, needs.nearly, {}, &Needs::nearly), needs);
  if (modest.size() > kMostModest) modest.pop_back();
}

void Bounds::add(Bounds&& other) {
  kept.add(std::move(other.kept)), kept_moved.add(std::move(other.kept_moved));
  least = std::min(least, other.least);
  strategies += other.strategies, do_not_divide += other.do_not_divide;
  do_not_fit += other.do_not_fit, bounded += other.bounded;
  alternatives.add(other.alternatives);
  least_memory = std::min(least_memory, other.least_memory);
  for (const Needs& needs : other.modest) add_modest(needs);
}

std::vector<Bounded> Bounds::lowest() const {
  std::vector<Bounded> list = kept.list();
  list.insert(list.end(), kept_moved.list().begin(), kept_moved.list().end());
  std::ranges::sort(list, lower);
  return list;
}

Bounds bound_all(const Job& job, const Space& space, std::span<const Strategy> shapes,
                 const std::function<void(std::int64_t)>& news, KeptStructures* structures) {
  return BoundingAll(job, space, news, structures).run(shapes);
}

Bytes pool_share(const Job& job, const Space& space) {
  return space.may_offload() ? Bytes(job.supernode.pool.value / job.supernode.devices) : Bytes{};
}

}  // namespace hyperrun
