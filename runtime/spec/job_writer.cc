#include "runtime/spec/job_writer.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <memory>
#include <span>

#include "proto/job.pb.h"
#include "runtime/base/error.h"
#include "runtime/spec/job_fields.h"
#include "runtime/spec/job_message.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/layout_notation.h"

namespace hyperrun {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The visitor of job_fields.h that sets every field of the message, except those that a job which does not
// run may leave out.
class JobEmitter {
 public:
  explicit JobEmitter(Message& message) : message_(message), reflection_(*message.GetReflection()) {}

  void integer(std::string_view name, std::int32_t v, Need need, IntRange) {
    if (v != 0 || need != Need::kToRun) reflection_.SetInt32(&message_, field(name), v);
  }
  void integer(std::string_view name, std::uint64_t v) { reflection_.SetUInt64(&message_, field(name), v); }
  void real(std::string_view name, double v, Need need, RealRange) {
    if (v != 0 || need != Need::kToRun) reflection_.SetDouble(&message_, field(name), v);
  }
  void reals(std::string_view name, const std::vector<double>& v, RealRange) {
    for (const double one : v) reflection_.AddDouble(&message_, field(name), one);
  }
  void flag(std::string_view name, bool v) { reflection_.SetBool(&message_, field(name), v); }
  // An empty text is left out: "" stands for "none" in the job.
  void file(std::string_view name, const std::string& v, Need need) { text(name, v, need); }
  void text(std::string_view name, const std::string& v, Need = Need::kOptional) {
    if (!v.empty()) reflection_.SetString(&message_, field(name), v);
  }
  void strings(std::string_view name, const std::vector<std::string>& v) {
    for (const std::string& one : v) reflection_.AddString(&message_, field(name), one);
  }
  void layout(std::string_view name, const std::optional<PositionalLayout>& v) {
    if (v) text(name, format_layout(*v));
  }
  void choice(std::string_view name, const std::string& v, std::span<const Choice>) { text(name, v); }
  void choices(std::string_view name, const std::vector<std::string>& v, std::span<const Choice>) {
    strings(name, v);
  }
  void bytes(std::string_view name, Bytes v, Need, std::int64_t) {
    quantity(name, QuantityKind::kBytes, static_cast<double>(v.value));
  }
  void time(std::string_view name, Nanos v) {
    quantity(name, QuantityKind::kTime, static_cast<double>(v.value));
  }
  void seconds(std::string_view name, double v, double, double) {
    quantity(name, QuantityKind::kTime, std::nearbyint(v * 1e9));
  }
  void rate(std::string_view name, double v, QuantityKind kind) { quantity(name, kind, v); }
  void streams(std::string_view name, StreamThreads v) {
    reflection_.SetEnumValue(&message_, field(name), static_cast<int>(v));
  }

  template <class Block>
  void block(std::string_view name, Block& v, Need need) {
    if (need == Need::kToRun && v == Block{}) return;
    JobEmitter inner(*reflection_.MutableMessage(&message_, field(name)));
    fields(inner, v);
  }
  template <class Block>
  void optional(std::string_view name, Block& v) {
    if (v != Block{}) block(name, v, Need::kOptional);
  }
  template <class Block>
  void list(std::string_view name, std::vector<Block>& v) {
    for (Block& one : v) {
      JobEmitter inner(*reflection_.AddMessage(&message_, field(name)));
      fields(inner, one);
    }
  }

 private:
  const FieldDescriptor* field(std::string_view name) const {
    const auto* found = message_.GetDescriptor()->FindFieldByName(std::string(name));
    HR_CHECK(found != nullptr, std::string(name));
    return found;
  }
  void quantity(std::string_view name, QuantityKind kind, double v) { text(name, format_quantity(kind, v)); }

  Message& message_;
  const google::protobuf::Reflection& reflection_;
};

proto::Job to_message(Job job) {  // by value, because the visitor takes mutable members
  proto::Job message;
  JobEmitter emitter(message);
  fields(emitter, job);
  // The default of min_lr is a part of lr, which the job does not have yet.
  if (job.training.lr == 0 && job.training.min_lr == 0) message.mutable_training()->clear_min_lr();
  return message;
}

// True if two jobs are equal, except for the places of rules.
bool same(Job a, Job b) {
  for (Job* job : {&a, &b})
    for (ShardRule& rule : job->parallel.rules) rule.origin.clear();
  return a == b;
}

bool reads_as(const proto::Job& message, const Job& job) {
  try {
    return same(parse_job(message.SerializeAsString(), "job.pb", JobUse::kToBeForeseen).job, job);
  } catch (const Error&) {
    return false;
  }
}

// Clears each field of `block`, a block of `message`, that a reader of the message fills in.
void drop_what_is_filled_in(proto::Job& message, Message& block, const Job& job) {
  const google::protobuf::Reflection& reflection = *block.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(block, &set);
  for (const FieldDescriptor* field : set) {
    const std::unique_ptr<Message> before(block.New());
    before->CopyFrom(block);
    reflection.ClearField(&block, field);
    if (reads_as(message, job)) continue;
    block.CopyFrom(*before);
    if (field->message_type() == nullptr) continue;
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(block, field); ++i)
      drop_what_is_filled_in(message, *reflection.MutableRepeatedMessage(&block, field, i), job);
    if (!field->is_repeated())
      drop_what_is_filled_in(message, *reflection.MutableMessage(&block, field), job);
  }
}

}  // namespace

proto::Model model_message(ModelSpec model) {
  proto::Model message;
  JobEmitter emitter(message);
  fields(emitter, model);
  return message;
}

std::string to_textproto(const Job& job) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  HR_CHECK(printer.PrintToString(to_message(job), &text));
  return "# proto-file: proto/job.proto\n# proto-message: hyperrun.proto.Job\n" + text;
}

std::string to_line(const Job& job) {
  proto::Job message = to_message(job);
  drop_what_is_filled_in(message, message, job);
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  printer.SetSingleLineMode(true);
  std::string text;
  HR_CHECK(printer.PrintToString(message, &text));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string to_binary(const Job& job) { return to_message(job).SerializeAsString(); }

}  // namespace hyperrun
