#include "runtime/spec/job_fill.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/utf8.h"
#include "runtime/spec/job_legal.h"
#include "runtime/spec/job_names.h"
#include "runtime/spec/layout_notation.h"
#include "runtime/spec/profile_fields.h"

namespace hyperrun {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr const char* kChoose = "choose a legal value";
constexpr const char* kChooseOrOmit = "choose a legal value, or leave the field out for its default";
constexpr const char* kUnit = "write the number with its unit";

bool contains(RealRange r, double v) {
  bool above = r.min_itself ? v >= r.min : v > r.min;
  bool below = r.max_itself ? v <= r.max : v < r.max;
  return std::isfinite(v) && above && below && (!r.whole || v == std::nearbyint(v));
}

}  // namespace

const FieldDescriptor* JobFiller::field(std::string_view name) const {
  const auto* found = message_.GetDescriptor()->FindFieldByName(std::string(name));
  HR_CHECK(found != nullptr, std::string(name));
  return found;
}

const Message& JobFiller::nested(std::string_view name, int index) const {
  const auto* reflection = message_.GetReflection();
  return index < 0 ? reflection->GetMessage(message_, field(name))
                   : reflection->GetRepeatedMessage(message_, field(name), index);
}

int JobFiller::size(std::string_view name) const {
  return message_.GetReflection()->FieldSize(message_, field(name));
}

std::string JobFiller::path(std::string_view name, int index) const {
  std::string path = prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  return index < 0 ? path : fmt::format("{}[{}]", path, index);
}

bool JobFiller::present(std::string_view name, Need need, const std::string& legal) {
  if (message_.GetReflection()->HasField(message_, field(name))) return true;
  if (need == Need::kOptional || (need == Need::kToRun && !runs_)) return false;
  const std::string home = title();
  bool is_block = field(name)->message_type() != nullptr;
  std::string line = is_block ? std::string(name) + " { ... }" : std::string(name) + ": ...";
  errors_.push_back(Error(Code::kMissingField, home + " has no " + in_quotes(name))
                        .at(source_.place(path(name)))
                        .legal(legal)
                        .fix("add " + line));
  return false;
}

// The name comes from the field that holds the block, because several fields may have such a message.
std::string JobFiller::title() const {
  if (prefix_.empty()) return block_title(message_.GetDescriptor());
  const std::string_view last = std::string_view(prefix_).substr(prefix_.rfind('.') + 1);
  return in_quotes(last.substr(0, last.find('[')));
}

void JobFiller::bad_value(const std::string& path, const std::string& cause, const std::string& legal,
                          const std::string& fix) {
  errors_.push_back(Error(Code::kBadValue, cause).at(source_.place(path)).legal(legal).fix(fix));
}

void JobFiller::integer(std::string_view name, std::int32_t& out, Need need, IntRange range) {
  if (!present(name, need, describe(range))) return;
  std::int32_t v = message_.GetReflection()->GetInt32(message_, field(name));
  if (v < range.min || v > range.max)
    bad_value(path(name), fmt::format("{} cannot be {}", in_quotes(name), v), describe(range),
              fmt::format("the nearest legal value is {}", v < range.min ? range.min : range.max));
  else
    out = v;
}

void JobFiller::integer(std::string_view name, std::uint64_t& out) {
  if (present(name, Need::kOptional, "")) out = message_.GetReflection()->GetUInt64(message_, field(name));
}

void JobFiller::real(std::string_view name, double& out, Need need, RealRange range) {
  if (!present(name, need, describe(range))) return;
  double v = message_.GetReflection()->GetDouble(message_, field(name));
  if (!contains(range, v))
    bad_value(path(name), in_quotes(name) + " cannot be " + shortest(v), describe(range),
              need == Need::kOptional ? kChooseOrOmit : kChoose);
  else
    out = v;
}

void JobFiller::reals(std::string_view name, std::vector<double>& out, RealRange range) {
  for (int i = 0; i < size(name); ++i) {
    out.push_back(message_.GetReflection()->GetRepeatedDouble(message_, field(name), i));
    if (!contains(range, out.back()))
      bad_value(path(name), in_quotes(name) + " cannot hold " + shortest(out.back()), describe(range),
                kChoose);
  }
}

void JobFiller::flag(std::string_view name, bool& out) {
  if (present(name, Need::kOptional, "")) out = message_.GetReflection()->GetBool(message_, field(name));
}

std::string JobFiller::string_value(std::string_view name) const {
  return message_.GetReflection()->GetString(message_, field(name));
}

void JobFiller::text(std::string_view name, std::string& out, Need need) {
  file(name, out, need);
  if (!is_utf8(out))
    bad_value(path(name), in_quotes(name) + " is not UTF-8", "text in UTF-8", "save the job as UTF-8");
}

void JobFiller::file(std::string_view name, std::string& out, Need need) {
  const std::string legal(kLegalText);
  if (!present(name, need, legal)) return;
  out = string_value(name);
  if (out.find('\0') != std::string::npos)
    bad_value(path(name), in_quotes(name) + " holds a zero byte", "text without zero bytes", "remove it");
  if (need != Need::kOptional && out.empty())
    bad_value(path(name), in_quotes(name) + " is empty", legal, "give it");
}

void JobFiller::strings(std::string_view name, std::vector<std::string>& out) {
  const auto* reflection = message_.GetReflection();
  for (int i = 0; i < size(name); ++i) {
    out.push_back(reflection->GetRepeatedString(message_, field(name), i));
    if (out.back().empty() || !is_utf8(out.back()))
      bad_value(path(name, i), in_quotes(name) + " holds an empty name, or one that is not UTF-8", "names",
                "remove it");
  }
}

void JobFiller::check_choice(const std::string& path, const std::string& value,
                             std::span<const Choice> choices) {
  std::vector<std::string_view> values;
  for (const Choice& c : choices) values.push_back(c.value);
  if (std::find(values.begin(), values.end(), value) != values.end()) return;
  std::string shown = is_utf8(value) ? in_quotes(value) : "a text that is not UTF-8";
  bad_value(path, shown + " is unknown here", describe(choices),
            suggest_value(value, values, message_.GetDescriptor()));
}

void JobFiller::choice(std::string_view name, std::string& out, std::span<const Choice> choices) {
  if (!present(name, Need::kOptional, "")) return;
  out = string_value(name);
  check_choice(path(name), out, choices);
}

void JobFiller::choices(std::string_view name, std::vector<std::string>& out,
                        std::span<const Choice> choices) {
  const auto* reflection = message_.GetReflection();
  for (int i = 0; i < size(name); ++i) {
    std::string value = reflection->GetRepeatedString(message_, field(name), i);
    check_choice(path(name, i), value, choices);
    if (std::find(out.begin(), out.end(), value) != out.end())
      bad_value(path(name, i), in_quotes(value) + " is given twice", "each once", "keep one of them");
    out.push_back(std::move(value));
  }
}

bool JobFiller::quantity(std::string_view name, QuantityKind kind, Need need, double& out,
                         const std::string& numbers) {
  const std::string legal = kind == QuantityKind::kNumber ? numbers + ", in quotes" : units_of(kind);
  if (!present(name, need, legal)) return false;
  std::string written = string_value(name);
  auto value = parse_quantity(kind, written);
  std::string shown = is_utf8(written) ? in_quotes(written) : "a text that is not UTF-8";
  if (!value)
    bad_value(path(name), in_quotes(name) + " cannot be " + shown, legal,
              kind == QuantityKind::kNumber ? kChoose : kUnit);
  else
    out = *value;
  return value.has_value();
}

void JobFiller::bytes(std::string_view name, Bytes& out, Need need, std::int64_t min) {
  constexpr double kMost = 0x1p52;  // 4 PiB; whole numbers beyond are not exact in a double
  double v = 0;
  if (!quantity(name, QuantityKind::kBytes, need, v)) return;
  double whole = std::nearbyint(v);
  bool exact = std::abs(v - whole) <= 1e-12 * whole;  // 2.2 GB is a whole number except for rounding
  if (!exact || whole < static_cast<double>(min) || whole > kMost)
    bad_value(path(name), in_quotes(name) + " cannot be " + in_quotes(string_value(name)),
              describe_bytes(min), need == Need::kRequired ? kChoose : kChooseOrOmit);
  else
    out = Bytes(static_cast<std::int64_t>(whole));
}

void JobFiller::time(std::string_view name, Nanos& out) {
  constexpr double kMost = 3.6e12;
  double v = 0;
  if (!quantity(name, QuantityKind::kTime, Need::kOptional, v)) return;
  if (v < 0 || v > kMost)
    bad_value(path(name), in_quotes(name) + " cannot be " + in_quotes(string_value(name)), "0 ns to 3600 s",
              kChooseOrOmit);
  else
    out = Nanos(std::llround(v));
}

void JobFiller::seconds(std::string_view name, double& out, double min, double max) {
  double v = 0;
  if (!quantity(name, QuantityKind::kTime, Need::kOptional, v)) return;
  double in_seconds = std::nearbyint(v) / 1e9;
  if (in_seconds < min || in_seconds > max)
    bad_value(path(name), in_quotes(name) + " cannot be " + in_quotes(string_value(name)),
              describe_seconds(min, max), kChooseOrOmit);
  else
    out = in_seconds;
}

void JobFiller::span(std::string_view name, double& out, Need need, RealRange range) {
  double v = 0;
  if (!quantity(name, QuantityKind::kSpan, need, v)) return;
  if (!contains(range, v))
    bad_value(path(name), in_quotes(name) + " cannot be " + in_quotes(string_value(name)),
              describe(range) + " s: " + units_of(QuantityKind::kSpan),
              need == Need::kOptional ? kChooseOrOmit : kChoose);
  else
    out = v;
}

void JobFiller::integers(std::string_view name, std::vector<std::int32_t>& out, IntRange range) {
  for (int i = 0; i < size(name); ++i) {
    out.push_back(message_.GetReflection()->GetRepeatedInt32(message_, field(name), i));
    if (out.back() < range.min || out.back() > range.max)
      bad_value(path(name, i), fmt::format("{} cannot hold {}", in_quotes(name), out.back()), describe(range),
                kChoose);
  }
}

void JobFiller::rate(std::string_view name, double& out, QuantityKind kind, Need need) {
  double v = 0;
  if (!quantity(name, kind, need, v)) return;
  if (v <= 0)
    bad_value(path(name), in_quotes(name) + " cannot be " + in_quotes(string_value(name)),
              "above 0: " + units_of(kind), kChooseOrOmit);
  else
    out = v;
}

void JobFiller::integer(std::string_view name, std::int64_t& out, Need need, IntRange range) {
  auto v = static_cast<std::int32_t>(out);
  integer(name, v, need, range);
  out = v;
}

void JobFiller::figure(std::string_view name, Figure& out, QuantityKind kind, Need need, RealRange range) {
  if (!present(name, need, "{ value: ... evidence: ... source: ... }")) return;
  JobFiller inner(nested(name, -1), path(name), source_, errors_);
  const std::string unit(base_unit(kind));
  const auto fill = [&](const char* field, Need needed, double& into) {
    if (inner.quantity(field, kind, needed, into, describe(range)) && !contains(range, into))
      inner.bad_value(inner.path(field),
                      in_quotes(name) + " cannot be " + in_quotes(inner.string_value(field)),
                      describe(range) + (unit.empty() ? "" : " ") + unit, kChoose);
  };
  fill("value", Need::kRequired, out.value);
  std::string evidence;
  if (inner.present("evidence", Need::kRequired, describe(kEvidences)))
    inner.choice("evidence", evidence, kEvidences);
  for (const Evidence e : {Evidence::kMeasured, Evidence::kDataSheet, Evidence::kPlaceholder})
    if (evidence == hyperrun::name(e)) out.evidence = e;
  inner.text("source", out.source, Need::kRequired);
  fill("low", Need::kOptional, out.low), fill("high", Need::kOptional, out.high);
  inner.text("range_source", out.range_source, Need::kOptional);
}

void JobFiller::layout(std::string_view name, std::optional<PositionalLayout>& out) {
  if (!present(name, Need::kOptional, "")) return;
  const std::size_t before = errors_.size();
  std::string written;
  text(name, written, Need::kOptional);
  if (errors_.size() > before) return;
  try {
    out = parse_layout(written);
  } catch (Error& e) {
    errors_.push_back(e.at(source_.place(path(name))));
  }
}

void JobFiller::streams(std::string_view name, StreamThreads& out) {
  if (!present(name, Need::kOptional, "")) return;
  int v = message_.GetReflection()->GetEnumValue(message_, field(name));
  if (field(name)->enum_type()->FindValueByNumber(v) == nullptr)
    bad_value(path(name), fmt::format("{} cannot be {}", in_quotes(name), v), describe_streams(),
              kChooseOrOmit);
  else
    out = static_cast<StreamThreads>(v);  // a test compares the order of both enums
}

}  // namespace hyperrun
