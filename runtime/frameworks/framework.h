// The frameworks whose configurations hyperrun reads and writes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/reading.h"
#include "runtime/frameworks/table.h"
#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

enum class FrameworkKind : std::uint8_t {
  kMegatron,
  kMindspeed,
  kMegatronBridge,
  kTorchtitan,
  kDeepspeed,
  kLlamaFactory,
  kHyperParallel,
  kMindformers,
};

// How settings are written down.
enum class Notation : std::uint8_t { kArguments, kToml, kJson, kYaml };

struct Framework {
  FrameworkKind kind;
  std::string_view name;   // as --from and --flags take it
  std::string_view title;  // as people write it
  const Table& (*table)();
  // Gives the settings their meaning: fills Reading::job.
  void (*to_job)(Reading&);
  // Says a job in the terms of the framework. What it cannot say is added to `cannot`. null: read only.
  void (*from_job)(const Job&, Launch&, std::vector<std::string>& cannot) = nullptr;
  Notation notation = Notation::kArguments;
};

std::span<const Framework> frameworks();
const Framework& framework_of(FrameworkKind kind);
// Throws kUsage at `option` if no framework has this name; `writes`: only those that are written count.
const Framework& framework_named(std::string_view name, std::string_view option, bool writes);

// The meaning of each framework's settings.
void megatron_to_job(Reading& reading);
void mindspeed_to_job(Reading& reading);
void megatron_bridge_to_job(Reading& reading);
void torchtitan_to_job(Reading& reading);
void deepspeed_to_job(Reading& reading);
void llama_factory_to_job(Reading& reading);
void hyper_parallel_to_job(Reading& reading);
void mindformers_to_job(Reading& reading);
void megatron_from_job(const Job& job, Launch& launch, std::vector<std::string>& cannot);
void mindspeed_from_job(const Job& job, Launch& launch, std::vector<std::string>& cannot);
void torchtitan_from_job(const Job& job, Launch& launch, std::vector<std::string>& cannot);
void deepspeed_from_job(const Job& job, Launch& launch, std::vector<std::string>& cannot);
void hyper_parallel_from_job(const Job& job, Launch& launch, std::vector<std::string>& cannot);

}  // namespace hyperrun::frameworks
