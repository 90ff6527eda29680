#include "runtime/spec/other_words.h"

#include <algorithm>

#include "proto/job.pb.h"
#include "runtime/base/error.h"
#include "runtime/spec/job_names.h"

namespace hyperrun {
namespace {

using google::protobuf::Descriptor;

constexpr std::string_view kCounts = "It is their number: the batch divided by the sequences of one.";
constexpr std::string_view kOfAll = "It counts the sequences of a step on all devices together.";

constexpr std::string_view kTensor = "mesh { name: \"tp\" size: 2 } presets: [\"tp\", \"sp\"]";
constexpr std::string_view kData = "mesh { name: \"dp\" size: 2 } presets: [\"dp\"]";
constexpr std::string_view kExpert = "mesh { name: \"ep\" size: 2 } presets: [\"ep\"]";
constexpr std::string_view kContext = "mesh { name: \"cp\" size: 2 } presets: [\"cp\"]";
constexpr std::string_view kPipeline = "mesh { name: \"pp\" size: 2 } pipeline { axis: \"pp\" }";
constexpr std::string_view kSharded = "presets: [\"dp\", \"zero3\"]";

constexpr OtherWord kWords[] = {
    {"type", "model", "name"},
    {"model_type", "model", "name"},
    {"arch", "model", "name"},
    {"architecture", "model", "name"},
    {"num_layers", "model", "layers"},
    {"n_layers", "model", "layers"},
    {"n_layer", "model", "layers"},
    {"num_hidden_layers", "model", "layers"},
    {"hidden_size", "model", "hidden"},
    {"hidden_dim", "model", "hidden"},
    {"d_model", "model", "hidden"},
    {"n_embd", "model", "hidden"},
    {"embed_dim", "model", "hidden"},
    {"num_heads", "model", "heads"},
    {"n_heads", "model", "heads"},
    {"n_head", "model", "heads"},
    {"num_attention_heads", "model", "heads"},
    {"num_kv_heads", "model", "kv_heads"},
    {"n_kv_heads", "model", "kv_heads"},
    {"num_key_value_heads", "model", "kv_heads"},
    {"num_query_groups", "model", "kv_heads"},
    {"head_size", "model", "head_dim"},
    {"d_head", "model", "head_dim"},
    {"intermediate_size", "model", "ffn"},
    {"ffn_dim", "model", "ffn"},
    {"ffn_hidden_size", "model", "ffn"},
    {"d_ff", "model", "ffn"},
    {"n_inner", "model", "ffn"},
    {"vocab_size", "model", "vocab"},
    {"padded_vocab_size", "model", "vocab"},
    {"seq", "model", "sequence"},
    {"seq_len", "model", "sequence"},
    {"seq_length", "model", "sequence"},
    {"sequence_length", "model", "sequence"},
    {"max_seq_len", "model", "sequence"},
    {"max_seq_length", "model", "sequence"},
    {"max_sequence_length", "model", "sequence"},
    {"max_position_embeddings", "model", "sequence"},
    {"context_length", "model", "sequence"},
    {"block_size", "model", "sequence"},
    {"n_ctx", "model", "sequence"},
    {"rms_norm_eps", "model", "norm_eps"},
    {"layer_norm_eps", "model", "norm_eps"},
    {"norm_epsilon", "model", "norm_eps"},
    {"rotary_base", "model", "rope_theta"},
    {"rope_base", "model", "rope_theta"},
    {"tie_word_embeddings", "model", "tied_head"},
    {"tie_embeddings", "model", "tied_head"},
    {"num_experts", "model.experts", "count"},
    {"n_experts", "model.experts", "count"},
    {"num_local_experts", "model.experts", "count"},
    {"n_routed_experts", "model.experts", "count"},
    {"num_experts_per_tok", "model.experts", "choices"},
    {"moe_router_topk", "model.experts", "choices"},
    {"moe_intermediate_size", "model.experts", "ffn"},
    {"moe_ffn_hidden_size", "model.experts", "ffn"},
    {"n_shared_experts", "model.experts", "shared"},
    {"first_k_dense_replace", "model.experts", "dense_layers"},
    {"norm_topk_prob", "model.experts", "normalize"},
    {"routed_scaling_factor", "model.experts", "scale"},
    {"n_group", "model.experts", "groups"},
    {"topk_group", "model.experts", "group_choices"},
    {"mlp_only_layers", "model.experts", "dense"},
    {"capacity_factor", "model.experts.capacity", "factor"},
    {"sliding_window", "model", "window"},
    {"window_size", "model", "window"},
    {"config", "model", "from"},
    {"original_max_position_embeddings", "model.rope_scaling", "original_sequence"},
    {"q_lora_rank", "model.latent", "q_rank"},
    {"kv_lora_rank", "model.latent", "kv_rank"},
    {"qk_nope_head_dim", "model.latent", "nope_dim"},
    {"qk_rope_head_dim", "model.latent", "rope_dim"},
    {"v_head_dim", "model.latent", "value_dim"},

    {"batch_size", "training", "batch"},
    {"global_batch_size", "training", "batch"},
    {"global_batch", "training", "batch"},
    {"train_batch_size", "training", "batch"},
    {"per_device_train_batch_size", "training", "batch", kOfAll},
    {"micro_batch_size", "training", "micro_batches", kCounts},
    {"micro_batch", "training", "micro_batches", kCounts},
    {"microbatch_size", "training", "micro_batches", kCounts},
    {"train_micro_batch_size_per_gpu", "training", "micro_batches", kCounts},
    {"num_microbatches", "training", "micro_batches"},
    {"num_micro_batches", "training", "micro_batches"},
    {"gradient_accumulation_steps", "training", "micro_batches"},
    {"grad_accum_steps", "training", "micro_batches"},
    {"grad_accum", "training", "micro_batches"},
    {"learning_rate", "training", "lr"},
    {"max_lr", "training", "lr"},
    {"peak_lr", "training", "lr"},
    {"min_learning_rate", "training", "min_lr"},
    {"warmup", "training", "warmup_steps"},
    {"num_warmup_steps", "training", "warmup_steps"},
    {"lr_warmup_steps", "training", "warmup_steps"},
    {"max_steps", "training", "steps"},
    {"num_steps", "training", "steps"},
    {"train_steps", "training", "steps"},
    {"train_iters", "training", "steps"},
    {"iterations", "training", "steps"},
    {"adam_beta1", "training", "beta1"},
    {"adam_beta2", "training", "beta2"},
    {"adam_eps", "training", "eps"},
    {"adam_epsilon", "training", "eps"},
    {"wd", "training", "weight_decay"},
    {"grad_clip", "training", "clip_norm"},
    {"clip_grad", "training", "clip_norm"},
    {"max_grad_norm", "training", "clip_norm"},
    {"gradient_clipping", "training", "clip_norm"},
    {"initializer_range", "training", "init_std"},
    {"init_method_std", "training", "init_std"},
    {"dtype", "training", "precision"},
    {"torch_dtype", "training", "precision"},
    {"mixed_precision", "training", "precision"},
    {"bf16", "training", "precision: \"bfloat16\""},
    {"fp16", "training", "precision: \"bfloat16\""},
    {"half", "training", "precision: \"bfloat16\""},
    {"fp32", "training", "precision: \"float32\""},
    {"f32", "training", "precision: \"float32\""},
    {"gradient_checkpointing", "training", "recompute { policy: \"full\" }"},
    {"activation_checkpointing", "training", "recompute { policy: \"full\" }"},

    {"tp", "parallel", kTensor},
    {"tp_size", "parallel", kTensor},
    {"tensor_parallel", "parallel", kTensor},
    {"tensor_parallel_size", "parallel", kTensor},
    {"tensor_model_parallel_size", "parallel", kTensor},
    {"dp", "parallel", kData},
    {"dp_size", "parallel", kData},
    {"data_parallel", "parallel", kData},
    {"data_parallel_size", "parallel", kData},
    {"ep", "parallel", kExpert},
    {"ep_size", "parallel", kExpert},
    {"expert_parallel", "parallel", kExpert},
    {"expert_parallel_size", "parallel", kExpert},
    {"expert_model_parallel_size", "parallel", kExpert},
    {"cp", "parallel", kContext},
    {"cp_size", "parallel", kContext},
    {"context_parallel", "parallel", kContext},
    {"context_parallel_size", "parallel", kContext},
    {"pp", "parallel", "pipeline { axis: \"pp\" }"},
    {"pp_size", "parallel", kPipeline},
    {"pipeline_parallel", "parallel", kPipeline},
    {"pipeline_parallel_size", "parallel", kPipeline},
    {"pipeline_model_parallel_size", "parallel", kPipeline},
    {"fsdp", "parallel", kSharded},
    {"zero", "parallel", kSharded},
    {"zero_stage", "parallel", kSharded},
    {"zero_optimization", "parallel", kSharded},
    {"sequence_parallel", "parallel", "presets: [\"tp\", \"sp\"]"},
    {"shard", "parallel", "rules"},
    {"virtual_pipeline_model_parallel_size", "parallel.pipeline", "chunks"},

    {"gpus", "supernode", "devices"},
    {"num_gpus", "supernode", "devices"},
    {"npus", "supernode", "devices"},
    {"num_devices", "supernode", "devices"},
    {"world_size", "supernode", "devices"},
    {"hbm_size", "supernode", "hbm"},
    {"hbm_capacity", "supernode", "hbm"},
    {"device_memory", "supernode", "hbm"},
    {"machine", "supernode", "profile"},
    {"hardware", "supernode", "profile"},

    {"dataset", "data", "corpus"},
    {"data_path", "data", "corpus"},
    {"save_every", "run", "checkpoint_every"},
    {"save_steps", "run", "checkpoint_every"},
    {"save_interval", "run", "checkpoint_every"},
    {"checkpoint_interval", "run", "checkpoint_every"},
    {"output_dir", "run", "directory"},
    {"run_dir", "run", "directory"},
    {"resume_from", "run", "resume"},
    {"resume_from_checkpoint", "run", "resume"},
    {"random_seed", "run", "seed"},
    {"max_new_tokens", "run.generate", "tokens"},
    {"max_tokens", "run.generate", "tokens"},
};

const OtherWord* find(std::string_view word) {
  const auto* row = std::ranges::find(kWords, word, &OtherWord::word);
  return row == std::end(kWords) ? nullptr : row;
}

bool is_field(std::string_view text) { return text.find(' ') == std::string_view::npos; }

}  // namespace

std::span<const OtherWord> other_words() { return kWords; }

const Descriptor* block_at(std::string_view path) {
  const Descriptor* block = proto::Job::descriptor();
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    const auto* field = block->FindFieldByName(std::string(name));
    HR_CHECK(field != nullptr && field->message_type() != nullptr, std::string(path));
    block = field->message_type();
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return block;
}

std::string suggest_for_other_word(std::string_view written, const Descriptor* block) {
  const OtherWord* row = find(written);
  if (row == nullptr || block->file() != proto::Job::descriptor()->file()) return "";
  const bool field = is_field(row->text);
  const Descriptor* home = block_at(row->block);
  const bool here = block == home || (field && block->FindFieldByName(std::string(row->text)) != nullptr);
  const std::string text = field ? "\"" + std::string(row->text) + "\"" : std::string(row->text);
  return "did you mean " + text + (here ? "" : " in " + block_title(home)) + "?" +
         (row->note.empty() ? "" : " " + std::string(row->note));
}

std::string_view value_of_other_word(std::string_view written) {
  const OtherWord* row = find(written);
  if (row == nullptr) return "";
  const std::size_t begin = row->text.find(": \"");
  const bool sets_one_value = begin != std::string_view::npos && row->text.ends_with('"');
  return sets_one_value ? row->text.substr(begin + 3, row->text.size() - begin - 4) : "";
}

}  // namespace hyperrun
