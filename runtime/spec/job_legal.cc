#include "runtime/spec/job_legal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "proto/job.pb.h"
#include "runtime/base/joined.h"
#include "runtime/spec/job_names.h"

namespace hyperrun {
namespace {

// The visitor of job_fields.h that records the legal values of each field.
class JobDescriber {
 public:
  explicit JobDescriber(std::map<std::string, std::string, std::less<>>& legal) : legal_(legal) {}

  void integer(std::string_view name, std::int32_t&, Need, IntRange range) { note(name, describe(range)); }
  void integer(std::string_view name, std::uint64_t&) { note(name, "0 to 18446744073709551615"); }
  void real(std::string_view name, double&, Need, RealRange range) { note(name, describe(range)); }
  void reals(std::string_view name, std::vector<double>&, RealRange range) { note(name, describe(range)); }
  void flag(std::string_view name, bool&) { note(name, "true, false"); }
  void text(std::string_view name, std::string&, Need) { note(name, std::string(kLegalText)); }
  void file(std::string_view name, std::string&, Need) { note(name, std::string(kLegalText)); }
  void strings(std::string_view name, std::vector<std::string>&) { note(name, std::string(kLegalText)); }
  void layout(std::string_view name, std::optional<PositionalLayout>&) {
    note(name, std::string(kLegalText));
  }
  // Several blocks have a field of the same name ("name"), so by the name alone any text is legal.
  void choice(std::string_view name, std::string&, std::span<const Choice>) {
    note(name, std::string(kLegalText));
  }
  void choices(std::string_view name, std::vector<std::string>&, std::span<const Choice> choices) {
    note(name, describe(choices));
  }
  void bytes(std::string_view name, Bytes&, Need, std::int64_t) {
    note(name, units_of(QuantityKind::kBytes));
  }
  void time(std::string_view name, Nanos&) { note(name, units_of(QuantityKind::kTime)); }
  void seconds(std::string_view name, double&, double, double) { note(name, units_of(QuantityKind::kTime)); }
  void rate(std::string_view name, double&, QuantityKind kind) { note(name, units_of(kind)); }
  void streams(std::string_view name, StreamThreads&) { note(name, describe_streams()); }

  template <class Block>
  void block(std::string_view name, Block& block, Need) {
    note(name, describe_block(name));
    fields(*this, block);
  }
  template <class Block>
  void optional(std::string_view name, Block& block) {
    this->block(name, block, Need::kOptional);
  }
  template <class Block>
  void list(std::string_view name, std::vector<Block>&) {
    note(name, describe_block(name));
    Block one;
    fields(*this, one);
  }

 private:
  void note(std::string_view name, std::string legal) { legal_.emplace(name, std::move(legal)); }

  std::map<std::string, std::string, std::less<>>& legal_;
};

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 60;
  return "\"" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "...\"" : "\"");
}

std::string describe(IntRange r) {
  if (r.max == IntRange{}.max) return fmt::format("at least {}", r.min);
  return fmt::format("{} to {}", r.min, r.max);
}

std::string describe(RealRange r) {
  if (std::isinf(r.max)) return (r.min_itself ? "at least " : "above ") + shortest(r.min);
  return std::string(r.whole ? "a whole number, " : "") + (r.min_itself ? "" : "above ") + shortest(r.min) +
         (r.min_itself ? "" : ",") + (r.max_itself ? " to " : " to below ") + shortest(r.max);
}

std::string describe(std::span<const Choice> choices) {
  std::size_t width = 0;
  for (const Choice& c : choices) width = std::max(width, c.value.size());
  std::string text;
  for (const Choice& c : choices) {
    if (!text.empty()) text += "\n         ";
    text += in_quotes(c.value) + std::string(width - c.value.size() + 2, ' ') + std::string(c.meaning);
  }
  return text;
}

std::string describe_block(std::string_view name) { return "a block: " + std::string(name) + " { ... }"; }

std::string describe_bytes(std::int64_t min) {
  return fmt::format("a whole number of bytes, {} B to 4096 TiB", min);
}

std::string describe_seconds(double min, double max) {
  return shortest(min) + " s to " + shortest(max) + " s";
}

std::string describe_streams() {
  const auto* type = proto::Run::Streams_descriptor();
  std::vector<std::string_view> names;
  names.reserve(static_cast<std::size_t>(type->value_count()));
  for (int i = 0; i < type->value_count(); ++i) names.emplace_back(type->value(i)->name());
  return joined(names);
}

std::string legal_values(std::string_view field_name) {
  std::map<std::string, std::string, std::less<>> legal;
  Job job;
  JobDescriber describer(legal);
  fields(describer, job);
  auto found = legal.find(field_name);
  return found == legal.end() ? std::string() : found->second;
}

}  // namespace hyperrun
