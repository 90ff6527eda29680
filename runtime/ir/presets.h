// The presets of parallelism: rules that the shard pass applies as if a user had written them.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace hyperrun {

struct PresetRule {
  std::string_view tensor;  // a glob
  std::string_view dim;     // "*": the first dimension that the axis divides
};

struct Preset {
  std::string_view name;
  std::string_view meaning;  // one line
  std::string_view axis;     // the mesh axis that splits
  std::span<const PresetRule> rules;
};

namespace preset_rules {
inline constexpr std::array<PresetRule, 2> kData{{{"ids", "batch"}, {"targets", "batch"}}};
inline constexpr std::array<PresetRule, 9> kTensor{{{"layers.*.attention.wq", "kv_heads"},
                                                    {"layers.*.attention.wk", "kv_heads"},
                                                    {"layers.*.attention.wv", "kv_heads"},
                                                    {"layers.*.attention.wo", "kv_heads"},
                                                    {"layers.*.ffn.gate", "ffn"},
                                                    {"layers.*.ffn.up", "ffn"},
                                                    {"layers.*.ffn.down", "ffn"},
                                                    {"embed", "vocab"},
                                                    {"head", "vocab"}}};
inline constexpr std::array<PresetRule, 1> kSequence{{{"*.residual", "seq"}}};
inline constexpr std::array<PresetRule, 1> kZero1{{{"*.adam_*", "*"}}};
}  // namespace preset_rules

inline constexpr std::array<Preset, 4> kPresets{{
    {"dp", "data parallel: the batch over the axis \"dp\"", "dp", preset_rules::kData},
    {"tp", "tensor parallel: heads, the SwiGLU's width and the vocabulary over the axis \"tp\"", "tp",
     preset_rules::kTensor},
    {"sp", "sequence parallel: what lies between the tensor-parallel parts, over the axis \"tp\"", "tp",
     preset_rules::kSequence},
    {"zero1", "the optimizer's state over the axis \"dp\"", "dp", preset_rules::kZero1},
}};

}  // namespace hyperrun
