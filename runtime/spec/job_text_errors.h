// Turns messages of protobuf's text parser into errors with code, place, legal values and remedy.
#pragma once

#include <google/protobuf/io/tokenizer.h>

#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/spec/job_text_lines.h"

namespace hyperrun {

class TextErrors : public google::protobuf::io::ErrorCollector {
 public:
  TextErrors(const TextLines& lines, std::string path) : lines_(lines), path_(std::move(path)) {}

  // Only the parser's first error is kept, because later ones follow from it: behind a missing closing quote
  // the parser takes text for fields, and fields for text.
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override;
  // The parser is told to let unknown fields pass and to warn of each, so that all are reported.
  void AddWarning(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override;

  std::vector<Error> take() { return std::move(errors_); }

 private:
  void add(Error error, std::size_t offset);

  const TextLines& lines_;
  std::string path_;
  std::vector<Error> errors_;
  bool failed_ = false;
};

}  // namespace hyperrun
