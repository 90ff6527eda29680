// The presets of parallelism: rules that the shard pass applies as if a user had written them. Several
// presets may say something about one dimension; its axes then come in the presets' order.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace hyperrun {

struct PresetRule {
  std::string_view tensor;  // a glob
  std::string_view dim;     // "*": the first dimension that the axis divides
  std::string_view axis;
  bool stored = false;  // see ShardRule
};

struct Preset {
  std::string_view name;
  std::string_view meaning;  // one line
  std::span<const PresetRule> rules;
  // The mesh needs only one of the axes that the rules name; rules about others do nothing. Without this the
  // mesh needs all of them.
  bool any_axis = false;
};

namespace preset_rules {
inline constexpr std::array<PresetRule, 4> kData{{{"ids", "batch", "dp"},
                                                  {"inputs", "batch", "dp"},
                                                  {"targets", "batch", "dp"},
                                                  {"layers.*.attention.cache.*", "batch", "dp"}}};
inline constexpr std::array<PresetRule, 4> kReplicas{{{"ids", "batch", "replicas"},
                                                      {"inputs", "batch", "replicas"},
                                                      {"targets", "batch", "replicas"},
                                                      {"layers.*.attention.cache.*", "batch", "replicas"}}};
inline constexpr std::array<PresetRule, 7> kExpert{{{"ids", "batch", "ep"},
                                                    {"inputs", "batch", "ep"},
                                                    {"targets", "batch", "ep"},
                                                    {"layers.*.attention.cache.*", "batch", "ep"},
                                                    {"layers.*.experts.gate", "experts", "ep"},
                                                    {"layers.*.experts.up", "experts", "ep"},
                                                    {"layers.*.experts.down", "experts", "ep"}}};
inline constexpr std::array<PresetRule, 6> kExpertTensor{
    {{"layers.*.experts.gate", "expert_ffn", "tp"},
     {"layers.*.experts.up", "expert_ffn", "tp"},
     {"layers.*.experts.down", "expert_ffn", "tp"},
     {"layers.*.experts.shared.gate", "shared_ffn", "tp"},
     {"layers.*.experts.shared.up", "shared_ffn", "tp"},
     {"layers.*.experts.shared.down", "shared_ffn", "tp"}}};
inline constexpr std::array<PresetRule, 3> kExpertsOnTensor{{{"layers.*.experts.gate", "experts", "tp"},
                                                             {"layers.*.experts.up", "experts", "tp"},
                                                             {"layers.*.experts.down", "experts", "tp"}}};
inline constexpr std::array<PresetRule, 3> kContext{
    {{"ids", "seq", "cp"}, {"targets", "seq", "cp"}, {"layers.*.attention.cache.*", "kv_heads", "cp"}}};
inline constexpr std::array<PresetRule, 4> kRing{{{"layers.*.attention.o", "seq", "ring"},
                                                  {"ids", "seq", "ring"},
                                                  {"targets", "seq", "ring"},
                                                  {"layers.*.attention.cache.*", "part", "ring"}}};
inline constexpr std::array<PresetRule, 15> kTensor{{{"layers.*.attention.wq", "kv_heads", "tp"},
                                                     {"layers.*.attention.cache.*", "kv_heads", "tp"},
                                                     {"layers.*.attention.wk", "kv_heads", "tp"},
                                                     {"layers.*.attention.wv", "kv_heads", "tp"},
                                                     {"layers.*.attention.wo", "kv_heads", "tp"},
                                                     {"layers.*.ffn.gate", "ffn", "tp"},
                                                     {"layers.*.ffn.up", "ffn", "tp"},
                                                     {"layers.*.ffn.down", "ffn", "tp"},
                                                     {"embed", "vocab", "tp"},
                                                     {"head", "vocab", "tp"},
                                                     {"layers.*.attention.wq.bias", "kv_heads", "tp"},
                                                     {"layers.*.attention.wk.bias", "kv_heads", "tp"},
                                                     {"layers.*.attention.wv.bias", "kv_heads", "tp"},
                                                     {"layers.*.ffn.gate.bias", "ffn", "tp"},
                                                     {"layers.*.ffn.up.bias", "ffn", "tp"}}};
inline constexpr std::array<PresetRule, 1> kSequence{{{"*.residual", "seq", "tp"}}};
// Weights are split in two directions. Activations between layers are split in two as well; behind a product
// they are split along the sequence over y. Products gather the operands that they need whole, and their
// partial results are scattered.
inline constexpr std::array<PresetRule, 48> kTensor2d{{{"layers.*.attention.wq", "kv_heads", "tpx"},
                                                       {"layers.*.attention.cache.*", "kv_heads", "tpx"},
                                                       {"layers.*.attention.wk", "kv_heads", "tpx"},
                                                       {"layers.*.attention.wv", "kv_heads", "tpx"},
                                                       {"layers.*.attention.wo", "kv_heads", "tpx"},
                                                       {"layers.*.ffn.gate", "ffn", "tpx"},
                                                       {"layers.*.ffn.up", "ffn", "tpx"},
                                                       {"layers.*.ffn.down", "ffn", "tpx"},
                                                       {"embed", "vocab", "tpx"},
                                                       {"head", "vocab", "tpx"},
                                                       {"layers.*.experts.gate", "expert_ffn", "tpy"},
                                                       {"layers.*.experts.up", "expert_ffn", "tpy"},
                                                       {"layers.*.experts.down", "expert_ffn", "tpy"},
                                                       {"layers.*.experts.shared.gate", "shared_ffn", "tpy"},
                                                       {"layers.*.experts.shared.up", "shared_ffn", "tpy"},
                                                       {"layers.*.experts.shared.down", "shared_ffn", "tpy"},
                                                       {"layers.*.experts.out", "hidden", "tpy"},
                                                       {"layers.*.experts.shared.down.out", "hidden", "tpy"},
                                                       {"layers.*.attention.wq", "hidden", "tpy"},
                                                       {"layers.*.attention.wk", "hidden", "tpy"},
                                                       {"layers.*.attention.wv", "hidden", "tpy"},
                                                       {"layers.*.attention.wo", "hidden", "tpy"},
                                                       {"layers.*.ffn.gate", "hidden", "tpy"},
                                                       {"layers.*.ffn.up", "hidden", "tpy"},
                                                       {"layers.*.ffn.down", "hidden", "tpy"},
                                                       {"embed", "hidden", "tpy"},
                                                       {"head", "hidden", "tpy"},
                                                       {"*.norm", "hidden", "tpy"},
                                                       {"final_norm", "hidden", "tpy"},
                                                       {"*.residual", "seq", "tpx"},
                                                       {"*.residual", "hidden", "tpy"},
                                                       {"*.attention.wq.out", "seq", "tpy"},
                                                       {"*.attention.wk.out", "seq", "tpy"},
                                                       {"*.attention.wv.out", "seq", "tpy"},
                                                       {"*.ffn.gate.out", "seq", "tpy"},
                                                       {"*.ffn.up.out", "seq", "tpy"},
                                                       {"logits", "seq", "tpy"},
                                                       {"last", "hidden", "tpy"},
                                                       {"positions", "hidden", "tpy"},
                                                       {"layers.*.attention.wq.bias", "kv_heads", "tpx"},
                                                       {"layers.*.attention.wk.bias", "kv_heads", "tpx"},
                                                       {"layers.*.attention.wv.bias", "kv_heads", "tpx"},
                                                       {"layers.*.attention.wo.bias", "hidden", "tpy"},
                                                       {"layers.*.ffn.gate.bias", "ffn", "tpx"},
                                                       {"layers.*.ffn.up.bias", "ffn", "tpx"},
                                                       {"layers.*.ffn.down.bias", "hidden", "tpy"},
                                                       {"*.norm.bias", "hidden", "tpy"},
                                                       {"final_norm.bias", "hidden", "tpy"}}};
// ZeRO splits over all axes that split tokens, because weights are whole along them (experts are split along
// "ep" already). Gradients are scattered in this order: least is left to move when "dp" comes, whose devices
// usually are the farthest apart.
inline constexpr std::array<PresetRule, 4> kZero1{{{"*.adam_*", "*", "cp", true},
                                                   {"*.adam_*", "*", "ring", true},
                                                   {"*.adam_*", "*", "ep", true},
                                                   {"*.adam_*", "*", "dp", true}}};
inline constexpr std::array<PresetRule, 8> kZero2{{{"*.adam_*", "*", "cp", true},
                                                   {"*.adam_*", "*", "ring", true},
                                                   {"*.adam_*", "*", "ep", true},
                                                   {"*.adam_*", "*", "dp", true},
                                                   {"*.grad*", "*", "cp", true},
                                                   {"*.grad*", "*", "ring", true},
                                                   {"*.grad*", "*", "ep", true},
                                                   {"*.grad*", "*", "dp", true}}};
inline constexpr std::array<PresetRule, 4> kZero3{
    {{"*", "*", "cp", true}, {"*", "*", "ring", true}, {"*", "*", "ep", true}, {"*", "*", "dp", true}}};
}  // namespace preset_rules

inline constexpr std::array<Preset, 13> kPresets{{
    {"dp", "data parallel: the batch over the axis \"dp\"", preset_rules::kData},
    {"replicas", "data parallel as well, over the axis \"replicas\", on which zero1 to zero3 split nothing",
     preset_rules::kReplicas},
    {"ep", "expert parallel: experts over the axis \"ep\", and the batch as well", preset_rules::kExpert},
    {"etp", "expert tensor parallel: the width of each expert over the axis \"tp\"",
     preset_rules::kExpertTensor},
    {"ep_tp", "expert parallel over the axis \"tp\" as well, which has to split the tokens (\"sp\")",
     preset_rules::kExpertsOnTensor},
    {"tp", "tensor parallel: heads, the layers' width and the vocabulary over the axis \"tp\"",
     preset_rules::kTensor},
    {"sp", "sequence parallel: what lies between the tensor-parallel parts, over the axis \"tp\"",
     preset_rules::kSequence},
    {"tp2d", "tensor parallel in two dimensions: weights and activations over the axes \"tpx\" and \"tpy\"",
     preset_rules::kTensor2d},
    {"cp", "context parallel: the sequence over the axis \"cp\"; in attention the heads (Ulysses)",
     preset_rules::kContext},
    {"ring", "context parallel: the sequence over the axis \"ring\", along which keys and values go round",
     preset_rules::kRing},
    {"zero1", "the optimizer's state over the axes that split tokens: \"dp\", \"ep\", \"cp\", \"ring\"",
     preset_rules::kZero1, true},
    {"zero2", "the optimizer's state and the gradients over these axes", preset_rules::kZero2, true},
    {"zero3", "weights, gradients and the optimizer's state over these axes; weights gathered to be used",
     preset_rules::kZero3, true},
}};

}  // namespace hyperrun
