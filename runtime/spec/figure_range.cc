#include "runtime/spec/figure_range.h"

#include <string>

#include "runtime/base/joined.h"

namespace hyperrun {

void check_range(const FigurePath& at, const Figure& f, const JobSource& source, std::vector<Error>& errors) {
  std::vector<std::string> missing;
  int parts = 0;
  for (const std::string part : {"low", "high", "range_source"}) {
    if (source.has(at.path + "." + part))
      ++parts;
    else
      missing.push_back(part);
  }
  const auto refuse = [&](Code code, const std::string& cause, const std::string& fix) {
    errors.push_back(
        Error(code, "\"" + at.name + "\" " + cause)
            .at(source.place(at.path))
            .legal("low, high and range_source together, of a placeholder, with the value between")
            .fix(fix));
  };
  if (parts == 0) return;
  if (parts < 3)
    return refuse(Code::kMissingField, "has a part of a range, but no " + joined(missing),
                  "add " + joined(missing));
  if (f.evidence != Evidence::kPlaceholder)
    return refuse(Code::kBadValue, "is no guess (" + std::string(name(f.evidence)) + ") and has a range",
                  "leave low, high and range_source out");
  if (!(f.low <= f.value && f.value <= f.high))
    refuse(Code::kBadValue,
           "is " + at.describe(f.value) + ", which does not lie from " + at.describe(f.low) + " to " +
               at.describe(f.high),
           "widen the range, or correct the value");
}

}  // namespace hyperrun
