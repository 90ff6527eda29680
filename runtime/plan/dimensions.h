// Dimensions of the search space, such as "tp" or "schedule": the values that strategies have, and statistics
// of the strategies with each value. Constraints and explanations are told by dimension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// The point of a search at which a dimension is fixed: with the shape, before the lower bound, before the
// forecast, or with the axis order.
enum class DecidedAt : std::uint8_t { kShape, kBounded, kForecast, kOrder };

struct Dimension {
  std::string_view key;                     // "tp"
  std::string_view name;                    // "tensor"
  std::int32_t (*value)(const Strategy&);   // value of a strategy in this dimension
  std::string (*text)(std::int32_t value);  // "8", "full"
  DecidedAt decided_at = DecidedAt::kBounded;
  std::vector<std::int32_t> named;  // all values, unless they are plain numbers
  // True if a strategy of this shape can have the value in the end. null: any can.
  bool (*may_have)(const Strategy& shape, std::int32_t value) = nullptr;
};
const std::vector<Dimension>& dimensions();

// Statistics of all strategies with one value in one dimension.
struct Alternative {
  std::int64_t strategies = 0, divide = 0, fit = 0;
  double least_bound = 0;         // ns, among strategies that fit
  Strategy least_bound_strategy;  // the strategy with least_bound
  std::int64_t least_memory = 0;  // bytes, among strategies that divide
  // The fastest by their forecasts, in that order.
  std::vector<std::pair<Forecast, Strategy>> promising;

  static constexpr std::size_t kMostPromising = 4;
  void add_promising(const Strategy& s, const Forecast& forecast);
};

// One Alternative for each dimension and value.
class Alternatives {
 public:
  Alternatives() : tables_(dimensions().size()), latest_(dimensions().size()) {}
  Alternatives(const Alternatives&) = delete;  // it points into itself
  Alternatives(Alternatives&&) = default;
  Alternatives& operator=(Alternatives&&) = default;

  void add(const Alternatives& other);
  void count(const Strategy& s) {
    each(s, [](Alternative& a) { ++a.strategies; });
  }
  // Counts the memory of the strategy that was counted last.
  void count_divided(std::int64_t least_memory);
  void count_fitting(const Strategy& s, double bound);
  void count_forecast(const Strategy& s, const Forecast& forecast);

  const std::map<std::int32_t, Alternative>& of(std::size_t dimension) const { return tables_[dimension]; }

 private:
  template <class Visit>
  void each(const Strategy& s, Visit visit) {
    const std::vector<Dimension>& all = dimensions();
    for (std::size_t d = 0; d < tables_.size(); ++d) {
      const std::int32_t value = all[d].value(s);
      auto& [of_value, latest] = latest_[d];
      if (latest == nullptr || of_value != value) of_value = value, latest = &tables_[d][value];
      visit(*latest);
    }
  }

  std::vector<std::map<std::int32_t, Alternative>> tables_;
  std::vector<std::pair<std::int32_t, Alternative*>>
      latest_;  // cache: successive strategies share most values
};

}  // namespace hyperrun
