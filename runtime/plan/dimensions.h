// The dimensions of the space, each with the values that strategies have in it, and what became of those.
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

// When a search settles it: with the shape, with the rest that is bounded, by its forecast, or at last.
enum class Settled : std::uint8_t { kShape, kBounded, kForecast, kOrder };

struct Dimension {
  std::string_view key;                      // "tp"
  std::string_view name;                     // "tensor"
  std::int32_t (*value)(const Strategy&);    // by which strategies are told apart
  std::string (*words)(std::int32_t value);  // "8", "full"
  Settled settled = Settled::kBounded;
  std::vector<std::int32_t> named;  // all values, where they are no numbers
  // Whether one of a shape may have it at last; null: any may.
  bool (*may_have)(const Strategy& shape, std::int32_t value) = nullptr;
};
const std::vector<Dimension>& dimensions();

// The strategies that have one value in one dimension.
struct Alternative {
  std::int64_t strategies = 0, divide = 0, fit = 0;
  double least_bound = 0;         // ns, of those that fit
  Strategy of_least;              // whose it is
  std::int64_t least_memory = 0;  // bytes, of those that divide
  // Of those that are forecast some, the fastest first.
  std::vector<std::pair<Forecast, Strategy>> promising;

  static constexpr std::size_t kMostPromising = 4;
  void promise(const Strategy& s, const Forecast& forecast);
};

// By dimension and value.
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
  // Of the strategy that was counted last.
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
      latest_;  // strategies that follow one another differ in little
};

}  // namespace hyperrun
