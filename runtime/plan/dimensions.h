// The dimensions of the space, each with the values that strategies have in it, and what became of those: why
// the best strategy has this value and not another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

struct Dimension {
  std::string_view name;                     // "tensor parallel"
  std::int32_t (*value)(const Strategy&);    // by which strategies are told apart
  std::string (*words)(std::int32_t value);  // "8", "full"
};
const std::vector<Dimension>& dimensions();

// The strategies that have one value in one dimension.
struct Alternative {
  std::int64_t strategies = 0, divide = 0, fit = 0;
  double least_bound = 0;         // ns, of those that fit
  std::int64_t least_memory = 0;  // bytes, of those that divide
  std::optional<Strategy> best;   // by its forecast
  Forecast forecast;
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
  void count_divided(const Strategy& s, std::int64_t least_memory);
  void count_fitting(const Strategy& s, double bound);
  void count_forecast(const Strategy& s, const Forecast& forecast);

  const std::map<std::int32_t, Alternative>& of(std::size_t dimension) const { return tables_[dimension]; }

 private:
  template <class Visit>
  void each(const Strategy& s, Visit visit) {
    for (std::size_t d = 0; d < tables_.size(); ++d) {
      const std::int32_t value = dimensions()[d].value(s);
      auto& [of_value, latest] = latest_[d];
      if (latest == nullptr || of_value != value) of_value = value, latest = &tables_[d][value];
      visit(*latest);
    }
  }

  std::vector<std::map<std::int32_t, Alternative>> tables_;
  std::vector<std::pair<std::int32_t, Alternative*>>
      latest_;  // strategies that follow one another differ in little
};

// Where the second loses against the first: "bubble +12.3 ms". Empty where it does not.
std::string where_it_loses(const Forecast& best, const Forecast& other);

// A line for each value of each dimension, the best strategy's first: what the best with that value would
// take.
struct Verdict {
  std::string dimension, value, sentence;
  bool chosen = false;
};
std::vector<Verdict> verdicts(const Alternatives& alternatives, const Strategy& best,
                              const Forecast& forecast, Bytes hbm);

}  // namespace hyperrun
