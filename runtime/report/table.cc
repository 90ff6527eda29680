#include "runtime/report/table.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::string_view kGap = "  ";

void append_cell(std::string& line, const std::string& cell, std::size_t width, bool align_right) {
  std::string pad(width - display_width(cell), ' ');
  line += align_right ? pad + cell : cell + pad;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

Column left(std::string title) { return {std::move(title), false}; }
Column right(std::string title) { return {std::move(title), true}; }

std::size_t display_width(std::string_view text) {
  // Continuation bytes of UTF-8 are 10xxxxxx.
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string with_separators(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<std::string> cells) {
  HR_CHECK(!cells.empty() && cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), {}});
}

void Table::note(std::string text) {
  HR_CHECK(!text.empty());
  rows_.push_back({{}, std::move(text)});
}

void Table::rule() { rows_.emplace_back(); }

std::string Table::str(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const Row& row : rows_) {
      if (!row.cells.empty()) width = std::max(width, display_width(row.cells[c]));
    }
    widths.push_back(width);
  }

  std::string rule(indent), out;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    rule += (c == 0 ? "" : std::string(kGap)) + std::string(widths[c], '-');
  }
  auto line = [&](auto cell_of) {
    std::string text(indent);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) text += kGap;
      append_cell(text, cell_of(c), widths[c], columns_[c].align_right);
    }
    append_line(out, text);
  };

  line([&](std::size_t c) { return columns_[c].title; });
  append_line(out, rule);
  for (const Row& row : rows_) {
    if (!row.cells.empty()) {
      line([&](std::size_t c) { return row.cells[c]; });
    } else {
      append_line(out, row.note.empty() ? rule : std::string(indent) + row.note);
    }
  }
  return out;
}

}  // namespace hyperrun
