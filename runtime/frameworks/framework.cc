#include "runtime/frameworks/framework.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/frameworks/tables.h"

namespace hyperrun::frameworks {
namespace {

const std::array kFrameworks{
    Framework{FrameworkKind::kMegatron, "megatron", "Megatron-LM", megatron_table, megatron_to_job,
              megatron_from_job, Notation::kArguments},
    Framework{FrameworkKind::kMindspeed, "mindspeed", "MindSpeed-LLM", mindspeed_table, mindspeed_to_job,
              mindspeed_from_job, Notation::kArguments},
    Framework{FrameworkKind::kMegatronBridge, "megatron-bridge", "Megatron-Bridge", megatron_table,
              megatron_bridge_to_job},
    Framework{FrameworkKind::kTorchtitan, "torchtitan", "torchtitan", torchtitan_table, torchtitan_to_job,
              torchtitan_from_job, Notation::kToml},
    Framework{FrameworkKind::kDeepspeed, "deepspeed", "DeepSpeed", deepspeed_table, deepspeed_to_job,
              deepspeed_from_job, Notation::kJson},
    Framework{FrameworkKind::kLlamaFactory, "llama-factory", "LLaMA-Factory", llama_factory_table,
              llama_factory_to_job},
    Framework{FrameworkKind::kHyperParallel, "hyper-parallel", "hyper-parallel", hyper_parallel_table,
              hyper_parallel_to_job, hyper_parallel_from_job, Notation::kYaml},
    Framework{FrameworkKind::kMindformers, "mindformers", "MindFormers", mindformers_table,
              mindformers_to_job},
};

}  // namespace

std::span<const Framework> frameworks() { return kFrameworks; }

const Framework& framework_of(FrameworkKind kind) {
  return *std::ranges::find(kFrameworks, kind, &Framework::kind);
}

const Framework& framework_named(std::string_view name, std::string_view option, bool writes) {
  std::vector<std::string_view> names;
  for (const Framework& f : kFrameworks) {
    if (writes && f.from_job == nullptr) continue;
    if (f.name == name) return f;
    names.push_back(f.name);
  }
  throw Error(Code::kUsage, fmt::format("there is no framework \"{}\"", name))
      .at(std::string(option))
      .legal(joined(names))
      .fix("name one of these");
}

}  // namespace hyperrun::frameworks
