// The meaning of torchtitan's configurations.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/frameworks/framework.h"
#include "runtime/frameworks/models.h"
#include "runtime/frameworks/parallelism.h"
#include "runtime/frameworks/recomputation.h"
#include "runtime/frameworks/steps.h"

namespace hyperrun::frameworks {
namespace {

constexpr TrainingDefaults kDefaults{
    .framework = "torchtitan", .beta2 = 0.95, .weight_decay = 0.1, .precision = "bfloat16"};

std::int32_t degree(const Launch::Integer& given) { return std::max(1, given.value_or(1)); }

// FSDP splits state over the shards and the context; replicas hold it once each.
void take_sharding(Reading& r, Parallelism& layout, std::int32_t left) {
  const Launch& l = r.launch;
  const std::int32_t replicas = degree(l.replicas);
  std::int32_t shards = l.shards.value_or(-1);
  if (left % replicas != 0 || (shards > 0 && shards * replicas != left))
    throw r
        .error(Code::kBadLayout,
               fmt::format("{} devices are left for {} replicas of {} shards", left, replicas, shards),
               {"parallel.mesh dp", "parallel.mesh dp, replicas", "supernode.devices"})
        .legal("degrees whose product is the number of devices; -1 for the shards that are left")
        .fix("change a degree, or give --devices");
  if (shards < 1) shards = left / replicas;
  const bool splits = shards > 1 || layout.ring > 1;
  layout.data = splits ? shards : replicas;
  layout.replicas = splits ? replicas : 1;
  const std::string when = l.resharding.value_or("default");
  layout.zero = !splits ? 0 : when == "always" || (when == "default" && layout.pipeline == 1) ? 3 : 2;
}

// torchtitan counts the embedding and the head as layers of the ends.
void take_stages(Reading& r, Parallelism& layout) {
  const Launch& l = r.launch;
  if (layout.pipeline == 1) return;
  layout.schedule = l.schedule.value_or("1f1b");
  const std::int32_t layers = r.job.model.layers, first = l.first_less.value_or(1),
                     last = l.last_less.value_or(1);
  const std::int32_t counted = layers + first + last;
  const bool several = layout.schedule == "interleaved" || layout.schedule == "zero_bubble";
  std::int32_t stages = layout.pipeline * (several ? 2 : 1);
  if (l.layers_of_chunk && *l.layers_of_chunk > 0)
    stages = (counted + *l.layers_of_chunk - 1) / *l.layers_of_chunk;
  if (stages % layout.pipeline != 0 || stages > counted)
    throw r
        .error(Code::kBadLayout,
               fmt::format("{} stages for {} devices of the pipeline", stages, layout.pipeline),
               {"parallel.pipeline.stages", "parallel.mesh pp"})
        .legal("layers per stage that give each device as many stages")
        .fix("change pipeline_parallel_layers_per_stage");
  layout.chunks = stages / layout.pipeline;
  layout.stages = even_layers(stages, counted);
  layout.stages.front() -= first;
  layout.stages.back() -= last;
  if (layout.stages == even_layers(stages, layers)) layout.stages.clear();
}

void take_parts(Reading& r, const Parallelism& layout) {
  const Launch& l = r.launch;
  const std::int32_t local = degree(l.batch_of_replica ? l.batch_of_replica : Launch::Integer(8)),
                     replicas = layout.batch_parts();
  std::int32_t micro = local;
  if (layout.pipeline > 1 && l.micro_batches.value_or(-1) > 0 && !l.pipeline_micro_batch)
    micro = std::max(1, local / *l.micro_batches);
  else if (layout.pipeline > 1)
    micro = degree(l.pipeline_micro_batch);
  const std::int32_t batch = l.batch.value_or(-1) > 0 ? *l.batch : local * replicas;
  take_batch(r, batch, micro, replicas);
  const std::int32_t passes = batch / std::max(1, local * replicas), all = r.job.training.micro_batches;
  if (layout.pipeline > 1 && passes > 1)
    r.assume(
        "training.micro_batches",
        fmt::format(
            "{} in one pass of the pipeline; torchtitan has {} passes of {} each, and fills the pipeline "
            "so many times",
            all, passes, all / passes));
}

Recomputation recomputation(Reading& r) {
  const std::string mode = r.launch.recompute.value_or("selective"),
                    option = r.launch.recompute_every.value_or("2");
  if (mode != "selective") return {mode};
  const int every = std::atoi(option.c_str());
  if (every > 0) return {"full", 0, every};
  return {"selective"};
}

}  // namespace

void torchtitan_to_job(Reading& r) {
  const Launch& l = r.launch;
  Parallelism layout;
  layout.tensor = degree(l.tensor), layout.pipeline = degree(l.pipeline), layout.ring = degree(l.context);
  layout.sequence = layout.tensor > 1;
  r.job.model = model_by_name(r, l.model.value_or("") + (l.flavor ? " " + *l.flavor : ""));
  const std::int32_t devices = required_devices(r);
  take_sharding(r, layout, left_for_data(r, layout, devices));
  if (r.job.model.experts.count > 0) {
    const std::int32_t experts = degree(l.expert);
    place_experts(layout, layout.data, experts, experts == 1 ? layout.tensor : l.expert_tensor.value_or(1), r,
                  true);
  } else if (degree(l.expert) > 1) {
    r.give_up("parallelism.expert_parallel_degree", "the model has no experts");
  }
  take_stages(r, layout);
  r.job.parallel = parallel_of(layout);
  take_parts(r, layout);
  r.job.training.recompute = recompute_specs(recomputation(r), layers_of(layout, r.job.model.layers));
  take_training(r, kDefaults);
  if (l.offloads_optimizer.value_or(false)) take_offload(r, {"weights", "gradients", "optimizer"});
  take_machine(r, devices, "h100");
}

namespace {

// The degrees of layers that the ends have fewer, and the layers per stage that give these stages.
void put_stages(const Parallelism& layout, std::int32_t layers, Launch& l, std::vector<std::string>& cannot) {
  if (layout.pipeline == 1) return;
  if (layout.schedule == "1f1b" && layout.chunks > 1)
    cannot.emplace_back("several chunks of a device in the schedule 1f1b");
  if (layout.schedule == "zero_bubble" && layout.chunks == 1)
    cannot.emplace_back("a zero bubble of one stage a device");
  l.schedule = layout.schedule;
  const std::vector<std::int32_t> wanted = layers_of(layout, layers);
  const auto stages = static_cast<std::int32_t>(wanted.size());
  for (std::int32_t first = 0; first <= 8; ++first)
    for (std::int32_t last = 0; last <= 8; ++last) {
      const std::int32_t counted = layers + first + last, of_stage = (counted + stages - 1) / stages;
      std::vector<std::int32_t> made = even_layers(stages, counted);
      made.front() -= first, made.back() -= last;
      if (made != wanted || (counted + of_stage - 1) / of_stage != stages) continue;
      l.first_less = first, l.last_less = last, l.layers_of_chunk = of_stage;
      return;
    }
  cannot.emplace_back("stages of these numbers of layers");
}

}  // namespace

void torchtitan_from_job(const Job& job, Launch& l, std::vector<std::string>& cannot) {
  std::string why;
  const auto layout = parallelism_of(job.parallel, job.model.layers, why);
  if (!layout) return cannot.push_back(why);
  const std::int32_t shards = layout->data * layout->expert;
  const bool splits = layout->zero >= 2;
  if (layout->pipeline_is_inner) cannot.emplace_back("stages that are nearer to each other than replicas");
  if (layout->tensor > 1 && !layout->sequence)
    cannot.emplace_back("tensor parallelism without sequence parallelism");
  if (layout->ulysses > 1) cannot.emplace_back("context parallelism by heads (Ulysses)");
  if (layout->zero == 1) cannot.emplace_back("ZeRO 1");
  if (!splits && layout->ring > 1) cannot.emplace_back("context parallelism without FSDP");
  if (!splits && layout->replicas > 1) cannot.emplace_back("replicas of what is not split");
  l.tensor = layout->tensor, l.pipeline = layout->pipeline, l.context = layout->ring;
  l.replicas = splits ? layout->replicas : shards, l.shards = splits ? shards : 1;
  if (splits) l.resharding = layout->zero == 3 ? "always" : "never";
  if (job.model.experts.count > 0) {
    const auto degrees = expert_degrees(*layout);
    if (!degrees || (layout->tensor > 1 && layout->experts == ExpertLayout::kRepeated))
      cannot.emplace_back("experts that devices along tp repeat");
    else
      l.expert = degrees->experts, l.expert_tensor = degrees->tensor;
    if (!splits && layout->expert > 1) cannot.emplace_back("expert parallelism without FSDP");
    if (layout->ring > 1 && l.expert.value_or(1) > 1)
      cannot.emplace_back("expert parallelism that leaves out the context");
  } else if (layout->expert > 1) {
    cannot.emplace_back("an axis ep of a model without experts");
  }
  put_stages(*layout, job.model.layers, l, cannot);
  const auto re = recomputation_of(job.training.recompute, layers_of(*layout, job.model.layers));
  if (!re || re->of_chunk > 0 || (re->every > 1 && re->policy != "full"))
    cannot.emplace_back("recomputation of these layers alone");
  else if (re->every > 1)
    l.recompute = "selective", l.recompute_every = std::to_string(re->every);
  else {
    l.recompute = re->policy;
    if (re->policy == "selective") l.recompute_every = "op";
  }
  if (job.memory.policy != "none") cannot.emplace_back("memory beyond HBM that is planned");
  if (job.parallel.tiles != 1) cannot.push_back(fmt::format("parallel.tiles {}", job.parallel.tiles));
  if (job.parallel.paired_passes) cannot.emplace_back("paired passes");
  if (job.parallel.gradients == kBfloat16) cannot.emplace_back("gradients that are exchanged in bfloat16");
  put_training(job.training, l);
  const std::int32_t micro = micro_batch_size(job, *layout);
  l.batch_of_replica = layout->pipeline > 1 ? micro * job.training.micro_batches : micro;
  if (layout->pipeline > 1) l.pipeline_micro_batch = micro;
  l.precision = job.training.precision;
  l.bfloat16.reset();
  l.sequence = job.model.sequence;
  if (const auto name = torchtitan_name(job.model))
    l.model = std::string(name->name), l.flavor = std::string(name->flavor);
  else
    l.remark = "torchtitan has no flavor of these sizes: add one to its model's args, and name it in [model]";
  l.devices = job.supernode.devices;
}

}  // namespace hyperrun::frameworks
