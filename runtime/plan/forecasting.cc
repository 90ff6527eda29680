#include "runtime/plan/forecasting.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/base/parallel.h"

namespace hyperrun {
namespace {

constexpr std::size_t kAhead = 8192;  // strategies that are forecast before it is known if they are wanted

}  // namespace

Forecasting::Forecasting(const Job& base, const Space& space)
    : base_(base), space_(space), hbm_(base.supernode.hbm.value) {
  for (unsigned w = 0; w < std::max(1U, std::thread::hardware_concurrency()); ++w)
    tables_.push_back(std::make_unique<PieceTable>(base));
}

std::string Forecasting::structure_of(Strategy strategy) const {
  strategy.recompute = PlanRecompute::kNone;  // of these layers of one may go with layers of another
  return tables_.front()->structure_key(strategy);
}

Forecasting::~Forecasting() {  // millions of small parts
  parallel_for(tables_.size(), [&](std::size_t w) { tables_[w].reset(); });
}

PieceTable& Forecasting::table_of(const Strategy& strategy) {
  return *tables_[owners_.try_emplace(structure_of(strategy), 0).first->second];
}

std::optional<Forecast> Forecasting::forecast_of(const Strategy& strategy) {
  return forecast_of(strategy, table_of(strategy));
}

std::pair<const Pieces*, double> Forecasting::lies(const Strategy& strategy) {
  PieceTable& table = table_of(strategy);
  const Pieces* pieces = table.find(strategy);
  return {pieces, pieces == nullptr ? 0 : table.message_time(strategy, *pieces)};
}

std::optional<Forecast> Forecasting::forecast_of(const Strategy& s, PieceTable& table) const {
  LayersPieces of{table.find(s), nullptr};
  if (of.pieces == nullptr) return std::nullopt;
  if (s.deeper > 0) {
    Strategy more = s;
    more.recompute = *next_after(s.recompute);
    of.deeper = table.find(more);
    if (of.deeper == nullptr) return std::nullopt;
  }
  return closed_form(s, base_.model, micro_batches(s, base_.training.batch), of,
                     table.message_time(s, *of.pieces));
}

Forecasts Forecasting::forecasts_of(const Strategy& s, PieceTable& table) const {
  Forecasts all;
  if (s.deeper > 0) return look_deeper(s, table, all), all;
  const std::optional<Forecast> f = forecast_of(s, table);
  if (!f) return all;
  if (may_be(s)) all.as_it_is = {*f, s};
  if ((f->memory > hbm_ || !may_be(s)) && next_after(s.recompute)) look_deeper(s, table, all);
  return all;
}

bool Forecasting::may_be(const Strategy& s) const { return meets(space_.only, s, Settled::kBounded); }

// The fewest layers of a device with which it fits, as a strategy keeps less the more there are.
void Forecasting::look_deeper(Strategy s, PieceTable& table, Forecasts& all) const {
  s.deeper = std::max(1, s.deeper);
  if (!may_be(s)) return;
  const auto first_that = [&](std::int32_t from, auto fits) {
    std::int32_t until = most_layers(s, base_.model.layers);
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
  const std::int32_t does = first_that(may, [&](auto& f) { return f.memory <= hbm_; });
  if (does >= most_layers(s, base_.model.layers)) return;
  all.deeper = {*forecast_of(s, table), s};
  if (s.deeper = may; may < does) all.least_left = forecast_of(s, table)->bound;
}

// What is sharded together is looked at by one thread, in its own table: the first that has nothing else to
// do when such a strategy comes up.
class Forecasting::Working {
 public:
  using Take = std::function<bool(const Bounded&, const Forecasts&)>;

  Working(Forecasting& forecasting, std::span<const Bounded> list, const Take& take)
      : forecasting_(forecasting), list_(list), take_(take), own_(forecasting.tables_.size()) {}

  void run() {
    parallel_for(own_.size(), [&](std::size_t w) { work(w); });
  }

 private:
  void work(std::size_t worker) try {
    std::unique_lock lock(mutex_);
    while (!ended_ && taken_ < list_.size()) {
      const std::optional<std::size_t> next = next_of(worker);
      if (!next) {
        tell();
        changed_.wait(lock);
        continue;
      }
      lock.unlock();
      Forecasts found = forecasting_.forecasts_of(list_[*next].strategy, *forecasting_.tables_[worker]);
      lock.lock();
      ready_.emplace(*next, std::move(found));
      take_ready();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    end();
    throw;
  }

  void end() {
    ended_ = true;
    tell();
  }

  // Those that wait, that there is more to deal out.
  void tell() {
    told_ = taken_;
    changed_.notify_all();
  }

  void take_ready() {
    for (auto i = ready_.begin(); !ended_ && i != ready_.end() && i->first == taken_;
         i = ready_.erase(i), ++taken_)
      ended_ = !take_(list_[taken_], i->second);
    if (ended_ || taken_ == list_.size() || taken_ - told_ >= kAhead / 8) tell();
  }

  // Its own strategies, in the order of the list; then those that are nobody's.
  std::optional<std::size_t> next_of(std::size_t worker) {
    deal_out();
    std::deque<std::size_t>& own = own_[worker];
    if (own.empty() && !unowned_.empty()) {
      auto first = unowned_.begin();
      for (auto i = unowned_.begin(); i != unowned_.end(); ++i)
        if (i->second.front() < first->second.front()) first = i;
      forecasting_.owners_[first->first] = worker;
      own = std::move(first->second);
      unowned_.erase(first);
    }
    if (own.empty()) return std::nullopt;
    const std::size_t next = own.front();
    own.pop_front();
    return next;
  }

  void deal_out() {
    for (; dealt_ < std::min(list_.size(), taken_ + kAhead); ++dealt_) {
      std::string structure = forecasting_.structure_of(list_[dealt_].strategy);
      const auto owner = forecasting_.owners_.find(structure);
      (owner != forecasting_.owners_.end() ? own_[owner->second] : unowned_[std::move(structure)])
          .push_back(dealt_);
    }
  }

  Forecasting& forecasting_;
  std::span<const Bounded> list_;
  const Take& take_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<std::size_t>> own_;                          // of list_, by worker: to be looked at
  std::unordered_map<std::string, std::deque<std::size_t>> unowned_;  // by structure
  std::map<std::size_t, Forecasts> ready_;                            // whose turn has not come
  std::size_t dealt_ = 0, taken_ = 0,
              told_ = 0;  // of list_; `told_`: taken_ when those that wait last heard of it
  bool ended_ = false;
};

void Forecasting::each(std::span<const Bounded> list,
                       const std::function<bool(const Bounded&, const Forecasts&)>& take) {
  Working(*this, list, take).run();
}

}  // namespace hyperrun
