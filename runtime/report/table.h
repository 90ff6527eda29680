// Text tables for people: columns aligned by width, numbers to the right, two spaces between columns.
//
//   Table t({left("tensor"), right("bytes")});
//   t.row({"embedding", "1.00 MiB"});
//   out << t.str("  ");
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

struct Column {
  std::string title;
  bool align_right = false;
};
Column left(std::string title);
Column right(std::string title);

// Number of terminal columns of UTF-8 text, one for each code point.
std::size_t display_width(std::string_view text);

// The number as "1,234,567".
std::string with_separators(std::int64_t number);

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Adds a row with one cell a column; fewer leave the rest empty, more are a bug.
  void row(std::vector<std::string> cells);
  // Adds a line across all columns, however long.
  void note(std::string text);
  // Adds a rule between the rows before and after, for totals.
  void rule();
  bool empty() const { return rows_.empty(); }

  // The table. Each line starts with indent and ends with a newline, without trailing spaces. Titles come
  // first, then a rule and the rows.
  std::string str(std::string_view indent = "") const;

 private:
  std::vector<Column> columns_;
  struct Row {
    std::vector<std::string> cells;  // empty: a note or a rule
    std::string note;                // empty: a rule
  };
  std::vector<Row> rows_;
};

}  // namespace hyperrun
