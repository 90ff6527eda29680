#include "runtime/plan/forecasting.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/base/parallel.h"
#include "runtime/plan/order_bounds.h"

namespace hyperrun {

double overfull(const Forecast& f, std::int64_t hbm, std::int64_t share) {
  const auto over = [](std::int64_t bytes, std::int64_t room) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(room, 1));
  };
  return std::max(over(f.here, hbm), over(f.mean, hbm + share));
}

Forecasting::Forecasting(const Job& base, const Space& space, KeptStructures* structures)
    : base_(base), space_(space), hbm_(base.supernode.hbm.value), structures_(structures), table_(base) {}

std::optional<Forecast> Forecasting::forecast_of(const Strategy& strategy) {
  return forecast_of(strategy, table_);
}

std::vector<Forecasted> Forecasting::of_orders(std::span<const Strategy> orders, PieceTable& table) const {
  std::vector<std::pair<const Pieces*, double>> known;  // with the time of a message: the same where all is
  std::vector<Forecasted> list;
  for (const Strategy& s : orders) {
    const Pieces* pieces = table.find(s);
    if (pieces == nullptr) continue;
    const double message = table.message_time(s, *pieces);
    if (std::ranges::any_of(known, [&](const auto& k) { return k.second == message && *k.first == *pieces; }))
      continue;
    known.emplace_back(pieces, message);
    list.push_back({*forecast_of(s, table), s});
  }
  return list;
}

std::optional<LayersPieces> Forecasting::pieces_of(const Strategy& s, PieceTable& table) const {
  LayersPieces of{table.find(s), nullptr};
  if (of.pieces == nullptr) return std::nullopt;
  if (s.deeper > 0) {
    Strategy more = s;
    more.recompute = *next_after(s.recompute);
    of.deeper = table.find(more);
    if (of.deeper == nullptr) return std::nullopt;
  }
  return of;
}

std::optional<Forecast> Forecasting::forecast_of(const Strategy& s, PieceTable& table) const {
  const std::optional<LayersPieces> of = pieces_of(s, table);
  if (!of) return std::nullopt;
  return closed_form(s, base_.model, micro_batches(s, base_.training.batch), *of,
                     table.message_time(s, *of->pieces));
}

void Forecasting::forecast_of(const Strategy& s, PieceTable& table, Forecasts& all) const {
  if (s.deeper > 0) return look_deeper(s, table, all);
  std::optional<Forecast> f = forecast_of(s, table);
  if (!f) return;
  f->bound = std::max(f->bound, all.bound), f->bound_of_more = all.bound_of_more;
  if (may_be(s)) all.as_it_is = {*f, s};
  if ((f->memory > hbm_ || !may_be(s)) && next_after(s.recompute)) look_deeper(s, table, all);
}

bool Forecasting::may_be(const Strategy& s) const { return meets(space_.only, s, Settled::kBounded); }

// The fewest layers of a device with which it fits, as a strategy keeps less the more there are; most of them
// where it may fit and does not by its forecast, which may be too much.
void Forecasting::look_deeper(Strategy s, PieceTable& table, Forecasts& all) const {
  s.deeper = std::max(1, s.deeper);
  if (!may_be(s)) return;
  const std::int32_t most = most_layers(s, base_.model.layers);
  const auto first_that = [&](std::int32_t from, auto fits) {
    std::int32_t until = most;
    while (from < until) {
      s.deeper = from + (until - from) / 2;
      const std::optional<Forecast> f = forecast_of(s, table);
      if (f && fits(*f))
        until = s.deeper;
      else
        from = s.deeper + 1;
    }
    return s.deeper = from;
  };
  const std::int32_t may = first_that(s.deeper, [&](auto& f) { return f.least_memory <= hbm_; });
  if (may >= most) return;
  const std::int32_t does = first_that(may, [&](auto& f) { return f.memory <= hbm_; });
  s.deeper = std::min(does, most - 1);
  all.deeper = {*forecast_of(s, table), s};
  all.fewer_may_fit = may < s.deeper;
  s.deeper = may;
  const double least =
      bound_of_more(s, base_.model, micro_batches(s, base_.training.batch), *pieces_of(s, table), nullptr);
  all.deeper->forecast.bound_of_more = std::max(all.bound_of_more, least);
}

// What is sharded together is looked at by one thread, in a table of its own, and forgotten: what has the
// least bound first, so that what is enough is known early, and most of the others are not looked at. There
// it is in the order of bounds that know of the machine, as in the first round it was in that of the space,
// so that of each structure the same strategy is the first.
class Forecasting::Working {
 public:
  Working(const Forecasting& forecasting, std::span<const Bounded> list, const Enough& enough,
          const Take& take)
      : forecasting_(forecasting), list_(list), enough_(enough), take_(take) {}

  void run() {
    group();
    std::atomic<std::size_t> next{0};
    parallel_for(std::max(1U, std::thread::hardware_concurrency()), [&](std::size_t) {
      PieceTable table(forecasting_.base_);
      for (std::size_t g = next++; g < groups_.size(); g = next++) {
        if (forecasting_.structures_ != nullptr)
          table.exchange(forecasting_.structures_->take(groups_[g].key));
        look_at(groups_[g].list, table);
        table.exchange();
      }
    });
  }

 private:
  struct Group {
    std::string key;
    std::vector<std::size_t> list;  // of list_
  };

  struct Refined {
    double as_it_is;  // ns
    std::size_t index;
  };

  // In the order of their least bounds, as the list is.
  void group() {
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const std::string key = forecasting_.table_.key_of_group(list_[i].strategy);
      const auto [it, is_new] = known.try_emplace(key, groups_.size());
      if (is_new) groups_.push_back({key, {}});
      groups_[it->second].list.push_back(i);
    }
  }

  void look_at(const std::vector<std::size_t>& group, PieceTable& table) {
    OrderBounds bounds(forecasting_.base_, table);
    std::vector<Refined> refined;
    for (const std::size_t i : group)
      if (list_[i].bound <= enough_(list_[i].strategy))
        refined.push_back({bounds.as_it_is(list_[i].strategy), i});
    std::ranges::stable_sort(refined, {}, &Refined::as_it_is);
    for (const auto& [as_it_is, i] : refined) {
      const auto& [bound, strategy, of_more] = list_[i];
      Forecasts all{bound, std::max(bound, as_it_is), of_more};
      const bool wanted = all.bound_as_it_is <= enough_(strategy);
      if (wanted || all.bound_of_more < least_left_) refine(all, strategy, bounds);
      if (wanted) forecasting_.forecast_of(strategy, table, all);
      const std::lock_guard lock(mutex_);
      if (!wanted) least_left_ = std::min<double>(least_left_, all.bound_of_more);
      take_(i, std::move(all));
    }
  }

  void refine(Forecasts& all, const Strategy& strategy, OrderBounds& bounds) const {
    const OrderBounds::Bound second = bounds.of(strategy);
    all.bound = std::max(all.bound, second.in_any);
    const bool may_be_more = may_recompute_more(strategy, forecasting_.base_.model.layers);
    all.bound_of_more = may_be_more ? std::max(all.bound_of_more, second.of_more) : all.bound;
  }

  const Forecasting& forecasting_;
  std::span<const Bounded> list_;
  const Enough& enough_;
  const Take& take_;
  std::mutex mutex_;
  // ns: of those that are not wanted, the least bound with more layers that recompute more. Where what is
  // known of another is no less, a better bound of it would change nothing of what is certified.
  std::atomic<double> least_left_ = std::numeric_limits<double>::infinity();
  std::vector<Group> groups_;
};

void Forecasting::each(std::span<const Bounded> list, const Enough& enough, const Take& take) {
  Working(*this, list, enough, take).run();
}

}  // namespace hyperrun
