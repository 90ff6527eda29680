#include "runtime/spec/kernel_table_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/base/split.h"
#include "runtime/base/utf8.h"

namespace hyperrun {
namespace {

constexpr std::string_view kColumns = "kernel,pass,shape,share";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text.remove_suffix(text.size() - std::min(text.find_last_not_of(' ') + 1, text.size()));
  return text;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<KernelPass> passes_of(KernelKind k) {
  if (k == KernelKind::kProduct || k == KernelKind::kGrouped)
    return {KernelPass::kForward, KernelPass::kInputGradient, KernelPass::kWeightGradient};
  return {KernelPass::kForward, KernelPass::kBackward};
}

// One line of the table.
class Row {
 public:
  Row(std::string_view line, std::string place) : place_(std::move(place)) {
    for (const std::string_view field : split(line, ',')) fields_.push_back(trimmed(field));
    if (fields_.size() != 4) refuse(fmt::format("{} fields", fields_.size()), "kernel, pass, shape, share");
  }

  // One entry for each pass that the line is about.
  std::vector<KernelShare> shares() const {
    KernelShare one;
    one.shape.kernel = kernel();
    one.any_shape = fields_[2].empty();
    if (!one.any_shape) one.shape.sizes = sizes(one.shape.kernel);
    one.share = share();
    std::vector<KernelShare> list;
    for (const KernelPass pass : passes(one.shape.kernel)) list.push_back(one), list.back().shape.pass = pass;
    return list;
  }

  [[noreturn]] void refuse(const std::string& cause, const std::string& legal) const {
    throw Error(Code::kBadValue, cause).at(place_).legal(legal).fix("correct the line");
  }

 private:
  KernelKind kernel() const {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < kKernels; ++k) {
      names.emplace_back(name(static_cast<KernelKind>(k)));
      if (fields_[0] == names.back()) return static_cast<KernelKind>(k);
    }
    refuse(fmt::format("kernel \"{}\" is not known", fields_[0]), joined(names));
  }

  std::vector<KernelPass> passes(KernelKind k) const {
    std::vector<std::string> names;
    const std::vector<KernelPass> all = passes_of(k);
    if (fields_[1].empty()) return all;
    for (const KernelPass pass : all) {
      names.emplace_back(name(pass));
      if (fields_[1] == names.back()) return {pass};
    }
    refuse(fmt::format("pass \"{}\" is not one of the kernel \"{}\"", fields_[1], fields_[0]),
           joined(names) + ", or nothing for all of them");
  }

  std::array<double, 6> sizes(KernelKind k) const {
    const std::vector<std::string_view>& names = size_names(k);
    std::array<double, 6> sizes{};
    for (const std::string_view part : split(fields_[2], ' ')) {
      if (part.empty()) continue;
      const std::size_t equals = std::min(part.find('='), part.size());
      const auto at = std::ranges::find(names, part.substr(0, equals));
      const auto value = number_in(part.substr(std::min(equals + 1, part.size())));
      const auto i = static_cast<std::size_t>(at - names.begin());
      if (at == names.end() || sizes[i] != 0 || !value || !(*value >= 1 && *value <= 1e12))
        refuse(fmt::format("\"{}\" is no size of the kernel \"{}\"", part, fields_[0]), legal_shape(names));
      sizes[i] = *value;
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      if (sizes[i] == 0) refuse(fmt::format("the shape has no \"{}\"", names[i]), legal_shape(names));
    return sizes;
  }

  static std::string legal_shape(const std::vector<std::string_view>& names) {
    if (names.empty()) return "no shape: this kernel has one share";
    std::string text;
    for (const std::string_view n : names) text += fmt::format("{}{}=...", text.empty() ? "" : " ", n);
    return text + ", each from 1 to 1e12, or nothing for any other shape";
  }

  double share() const {
    const auto value = number_in(fields_[3]);
    if (!value || !(*value >= 1e-6 && *value <= 1))
      refuse(fmt::format("share is \"{}\"", fields_[3]), "a number from 1e-6 to 1");
    return *value;
  }

  std::string place_;
  std::vector<std::string_view> fields_;
};

void add(std::vector<KernelShare>& rows, const Row& line) {
  for (const KernelShare& one : line.shares()) {
    if (std::ranges::any_of(rows, [&](const KernelShare& other) {
          return other.shape == one.shape && other.any_shape == one.any_shape;
        }))
      line.refuse("this kernel, pass and shape are there already", "each once");
    rows.push_back(one);
  }
}

}  // namespace

std::vector<KernelShare> read_kernels(std::string_view csv, const std::string& path) {
  if (!is_utf8(csv) || csv.find('\0') != csv.npos)
    throw Error(Code::kBadValue, "this is no text in UTF-8")
        .at(path)
        .legal("lines of fields with commas between them")
        .fix("save the table as CSV");
  std::vector<KernelShare> rows;
  bool has_columns = false;
  int number = 0;
  for (std::string_view line : split(csv, '\n')) {
    const std::string place = fmt::format("{}:{}", path, ++number);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (has_columns) {
      add(rows, Row(line, place));
    } else if (line == kColumns) {
      has_columns = true;
    } else {
      throw Error(Code::kBadValue, "the first line does not name the columns")
          .at(place)
          .legal(std::string(kColumns))
          .fix("put this line in front");
    }
  }
  if (rows.empty())
    throw Error(Code::kBadValue, "the table has no rows")
        .at(path)
        .legal("a line that names the columns, then rows")
        .fix("add a line for each kernel, or leave \"kernels\" out of the profile");
  return rows;
}

}  // namespace hyperrun
