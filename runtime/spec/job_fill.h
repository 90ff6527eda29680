// The visitor of job_fields.h that fills plain values from a protobuf message, checking each on the way.
#pragma once

#include <google/protobuf/message.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/spec/job_fields.h"
#include "runtime/spec/job_legal.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

class JobFiller {
 public:
  // `prefix` is the path of the block `message`. Errors are appended. `runs`: fields of Need::kToRun are
  // required.
  JobFiller(const google::protobuf::Message& message, std::string prefix, const JobSource& source,
            std::vector<Error>& errors, bool runs = true)
      : message_(message), prefix_(std::move(prefix)), source_(source), errors_(errors), runs_(runs) {}

  void integer(std::string_view name, std::int32_t& out, Need need, IntRange range);
  void integer(std::string_view name, std::uint64_t& out);
  void real(std::string_view name, double& out, Need need, RealRange range);
  void reals(std::string_view name, std::vector<double>& out, RealRange range);
  void flag(std::string_view name, bool& out);
  void text(std::string_view name, std::string& out, Need need);
  // A path, which may hold any bytes but zero: a run's own job file may lie in any folder.
  void file(std::string_view name, std::string& out, Need need);
  void strings(std::string_view name, std::vector<std::string>& out);
  void choice(std::string_view name, std::string& out, std::span<const Choice> choices);
  void choices(std::string_view name, std::vector<std::string>& out, std::span<const Choice> choices);
  void bytes(std::string_view name, Bytes& out, Need need, std::int64_t min);
  void time(std::string_view name, Nanos& out);
  void seconds(std::string_view name, double& out, double min, double max);
  // A time that people wait, in seconds.
  void span(std::string_view name, double& out, Need need, RealRange range);
  void rate(std::string_view name, double& out, QuantityKind kind, Need need = Need::kOptional);
  void integers(std::string_view name, std::vector<std::int32_t>& out, IntRange range);
  void integer(std::string_view name, std::int64_t& out, Need need, IntRange range);
  void figure(std::string_view name, Figure& out, QuantityKind kind, Need need, RealRange range);
  void layout(std::string_view name, std::optional<PositionalLayout>& out);
  void streams(std::string_view name, StreamThreads& out);

  template <class Block>
  void block(std::string_view name, Block& out, Need need) {
    if (!present(name, need, describe_block(name))) return;
    JobFiller inner(nested(name, -1), path(name), source_, errors_, runs_);
    fields(inner, out);
  }

  template <class Block>
  void optional(std::string_view name, Block& out) {
    block(name, out, Need::kOptional);
  }

  template <class Block>
  void list(std::string_view name, std::vector<Block>& out) {
    out.resize(static_cast<std::size_t>(size(name)));
    for (int i = 0; i < size(name); ++i) {
      JobFiller inner(nested(name, i), path(name, i), source_, errors_, runs_);
      fields(inner, out[static_cast<std::size_t>(i)]);
    }
  }

 private:
  const google::protobuf::FieldDescriptor* field(std::string_view name) const;
  const google::protobuf::Message& nested(std::string_view name, int index) const;
  int size(std::string_view name) const;
  std::string path(std::string_view name, int index = -1) const;
  std::string title() const;  // the block's name for users

  // True if the field is set. Reports a required field that is not.
  bool present(std::string_view name, Need need, const std::string& legal);
  std::string string_value(std::string_view name) const;
  // The value of a string field with a unit, if it is set and legal.
  // `numbers` describes the legal values of a kNumber.
  bool quantity(std::string_view name, QuantityKind kind, Need need, double& out,
                const std::string& numbers = "a number");
  void check_choice(const std::string& path, const std::string& value, std::span<const Choice> choices);
  void bad_value(const std::string& path, const std::string& cause, const std::string& legal,
                 const std::string& fix);

  const google::protobuf::Message& message_;
  std::string prefix_;
  const JobSource& source_;
  std::vector<Error>& errors_;
  bool runs_;
};

}  // namespace hyperrun
