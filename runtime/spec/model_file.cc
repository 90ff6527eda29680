#include "runtime/spec/model_file.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/families.h"
#include "runtime/ir/limits.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/spec/job_message.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_text_lines.h"

namespace hyperrun {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The fields of a config.json that say what a field of the model is, in any family.
struct Origin {
  std::string_view field;
  std::array<std::string_view, 3> names;
};
constexpr Origin kOrigins[] = {
    {"name", {"model_type"}},
    {"layers", {"num_hidden_layers", "n_layer"}},
    {"hidden", {"hidden_size", "n_embd"}},
    {"heads", {"num_attention_heads", "n_head"}},
    {"kv_heads", {"num_key_value_heads", "num_attention_heads", "n_head"}},
    {"head_dim", {"head_dim", "qk_nope_head_dim"}},
    {"ffn", {"intermediate_size", "n_inner"}},
    {"vocab", {"vocab_size"}},
    {"positions", {"n_positions"}},
    {"rope_theta", {"rope_theta", "rope_parameters"}},
    {"rope_scaling", {"rope_scaling", "rope_parameters"}},
    {"rotary_dim", {"partial_rotary_factor"}},
    {"norm_eps", {"rms_norm_eps", "layer_norm_epsilon"}},
    {"tied_head", {"tie_word_embeddings"}},
    {"attention_bias", {"attention_bias"}},
    {"mlp_bias", {"mlp_bias"}},
    {"window", {"sliding_window"}},
    {"window_layers", {"layer_types", "max_window_layers"}},
    {"experts", {"num_local_experts", "num_experts", "n_routed_experts"}},
    {"latent", {"kv_lora_rank"}},
    {"mtp", {"num_nextn_predict_layers"}},
};

class ModelFile {
 public:
  ModelFile(const proto::Job& message, const JobSource& source)
      : path_(resolve_input(message.model().from(), source.path)) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path_, ignored)) path_ = std::filesystem::path(path_) / "config.json";
    try {
      model_ = read_config(path_).model;
      text_ = read_file(path_, Code::kBadCheckpoint);
    } catch (Error& e) {
      if (e.code() == Code::kMissingFile)
        e.at(source.place("model.from"))
            .legal("a config.json of Hugging Face, or a folder with one")
            .fix(
                "correct the path; one that is not absolute is looked up beside the job, then in the "
                "working directory");
      throw;
    }
    longest_ = model_.sequence;
    if (family_of(model_).learned_positions) model_.positions = model_.sequence;
    model_.sequence = 0;
  }

  std::int32_t longest() const { return longest_; }

  // The file's fields for a model of `layers` layers (0: the file's own).
  proto::Model fields(std::int32_t layers) {
    if (layers > 0 && layers < model_.layers)
      for (auto* ranges : {&model_.window_layers, &model_.experts.dense}) cut(*ranges, layers);
    if (model_.window_layers.empty() && had_windows_) model_.window = 0;
    proto::Model message = model_message(model_);
    message.clear_sequence();
    return message;
  }

  Position place(std::string_view field) const {
    const TextLines lines(text_);
    const auto origin =
        std::ranges::find(kOrigins, field.substr(0, field.find_first_of(".[")), &Origin::field);
    if (origin != std::end(kOrigins))
      for (const std::string_view name : origin->names)
        if (const std::size_t at = text_.find(fmt::format("\"{}\"", name));
            !name.empty() && at != std::string::npos)
          return in_file(lines.position(at));
    return in_file({1, 1});
  }

 private:
  // Leaves out what lies behind the last layer.
  void cut(std::vector<LayerRange>& ranges, std::int32_t layers) {
    had_windows_ = had_windows_ || (&ranges == &model_.window_layers && !ranges.empty());
    std::erase_if(ranges, [&](const LayerRange& r) { return r.first_layer >= layers; });
    for (LayerRange& r : ranges) r.last_layer = std::min(r.last_layer, layers - 1);
  }
  Position in_file(Position p) const {
    p.file = path_;
    return p;
  }

  std::string path_, text_;
  ModelSpec model_;
  std::int32_t longest_ = 0;
  bool had_windows_ = false;
};

// Clears the lists of `base` for which `over` has one of its own.
void clear_replaced_lists(const Message& over, Message& base) {
  const Reflection& reflection = *over.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(over, &set);
  for (const FieldDescriptor* field : set) {
    if (field->is_repeated())
      reflection.ClearField(&base, field);
    else if (field->message_type() != nullptr && reflection.HasField(base, field))
      clear_replaced_lists(reflection.GetMessage(over, field), *reflection.MutableMessage(&base, field));
  }
}

// Notes the places of fields that the job does not have.
void note_places(const Message& block, const std::string& prefix, const ModelFile& file, JobSource& source) {
  const Reflection& reflection = *block.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(block, &set);
  const auto note = [&](const std::string& path) {
    source.fields.try_emplace(path,
                              file.place(std::string_view(path).substr(std::string_view("model.").size())));
  };
  for (const FieldDescriptor* field : set) {
    const std::string path = prefix + "." + field->name();
    note(path);
    const bool nested = field->message_type() != nullptr;
    if (nested && !field->is_repeated()) note_places(reflection.GetMessage(block, field), path, file, source);
    for (int i = 0; nested && field->is_repeated() && i < reflection.FieldSize(block, field); ++i) {
      note(fmt::format("{}[{}]", path, i));
      note_places(reflection.GetRepeatedMessage(block, field, i), fmt::format("{}[{}]", path, i), file,
                  source);
    }
  }
}

}  // namespace

void take_model_file(proto::Job& message, JobSource& source) {
  ModelFile file(message, source);
  const proto::Model own = message.model();
  if (!own.has_sequence())
    throw JobError(
        {Error(Code::kMissingField, "\"model\" has no \"sequence\", which no file settles")
             .at(source.place("model.sequence"))
             .legal(fmt::format("2 to {}; the model takes up to {}", limits::kSequence, file.longest()))
             .fix("add sequence: ...")});
  proto::Model model = file.fields(own.layers());
  clear_replaced_lists(own, model);
  if (own.has_window() && own.window() == 0) model.clear_window_layers();
  model.MergeFrom(own);
  model.clear_from();
  note_places(model, "model", file, source);
  *message.mutable_model() = std::move(model);
}

}  // namespace hyperrun
