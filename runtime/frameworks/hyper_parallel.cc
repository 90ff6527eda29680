// The meaning of hyper-parallel's YAML, and of MindFormers'.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/frameworks/framework.h"
#include "runtime/frameworks/models.h"
#include "runtime/frameworks/parallelism.h"
#include "runtime/frameworks/recomputation.h"
#include "runtime/frameworks/steps.h"

namespace hyperrun::frameworks {
namespace {

constexpr TrainingDefaults kHyperParallel{.framework = "hyper-parallel"};
constexpr TrainingDefaults kMindformers{.framework = "MindFormers", .eps = 1e-6};

std::int32_t degree(const Launch::Integer& given) { return std::max(1, given.value_or(1)); }

void take_context(Reading& r, Parallelism& layout) {
  const std::int32_t context = degree(r.launch.context);
  const std::string kind = r.launch.context_kind.value_or("ulysses");
  layout.ulysses = kind == "ulysses" ? context : kind == "hybrid" ? degree(r.launch.ulysses) : 1;
  if (context % layout.ulysses != 0)
    throw r
        .error(Code::kBadValue,
               fmt::format("{} devices that exchange heads do not divide a context of {}", layout.ulysses,
                           context),
               {"parallel.mesh cp", "parallel.mesh ring"})
        .legal("a divisor of the context parallelism");
  layout.ring = context / layout.ulysses;
}

// FSDP's shards are counted over replicas and context together.
void take_sharding(Reading& r, Parallelism& layout, std::int32_t replicas) {
  const std::int32_t context = layout.ring * layout.ulysses, shards = degree(r.launch.shards);
  layout.zero = shards == 1 ? 0 : r.launch.reshards.value_or(true) ? 3 : 2;
  if (shards == 1 || shards >= replicas * context) return;
  const std::int32_t copies = replicas * context / shards;
  if (layout.data % copies == 0)
    layout.replicas = copies, layout.data /= copies;
  else
    r.leave_out("parallel.mesh replicas",
                fmt::format("shards of {} devices: state is split over all that split tokens", shards));
}

// Experts lie over the tensor axis as well where they are spread at all.
void take_experts(Reading& r, Parallelism& layout, std::int32_t replicas) {
  const std::int32_t experts = degree(r.launch.expert);
  layout.data = replicas;
  if (r.job.model.experts.count == 0) {
    if (experts > 1) r.leave_out("parallel.mesh ep", "expert parallelism: the model has no experts");
    return;
  }
  if (experts == 1) return place_experts(layout, replicas, 1, layout.tensor, r);
  place_experts(layout, replicas, experts * layout.tensor, 1, r);
}

void take_stages(Reading& r, Parallelism& layout) {
  if (layout.pipeline == 1) return;
  layout.chunks = degree(r.launch.chunks);
  layout.schedule = r.launch.schedule.value_or(layout.chunks > 1 ? "interleaved" : "1f1b");
  if (layout.schedule == "interleaved" && layout.chunks == 1) layout.schedule = "1f1b";
  if (layout.schedule == "1f1b" && layout.chunks > 1) layout.schedule = "interleaved";
  if (layout.pipeline * layout.chunks > r.job.model.layers)
    throw r
        .error(Code::kBadLayout,
               fmt::format("{} layers cannot fill {} stages", r.job.model.layers,
                           layout.pipeline * layout.chunks),
               {"parallel.mesh pp", "parallel.pipeline.chunks"})
        .legal("as many stages as layers, or fewer");
}

}  // namespace

void hyper_parallel_to_job(Reading& r) {
  const Launch& l = r.launch;
  Parallelism layout;
  layout.tensor = degree(l.tensor), layout.pipeline = degree(l.pipeline);
  layout.sequence = l.sequence_parallel.value_or(false) && layout.tensor > 1;
  take_context(r, layout);
  r.job.model = model_by_name(r, l.model.value_or(""));
  std::int32_t devices = devices_of(r);
  if (devices == 0) {
    devices =
        layout.tensor * layout.pipeline *
        std::max({degree(l.shards) * degree(l.replicas), layout.ring * layout.ulysses, degree(l.expert)});
    r.assume("supernode.devices",
             fmt::format("{}, the product of the sizes; --devices gives another number", devices));
  }
  const std::int32_t replicas = left_for_data(r, layout, devices);
  take_experts(r, layout, replicas);
  take_sharding(r, layout, replicas);
  take_stages(r, layout);
  r.job.parallel = parallel_of(layout);
  take_batch(r, l.batch.value_or(8), l.micro_batch.value_or(1), replicas);
  r.job.training.recompute =
      recompute_specs({l.recompute.value_or("none")}, layers_of(layout, r.job.model.layers));
  take_training(r, kHyperParallel);
  take_machine(r, devices, devices % 16 == 0 ? "matrix384" : "atlas_a2");
}

void hyper_parallel_from_job(const Job& job, Launch& l, std::vector<std::string>& cannot) {
  std::string why;
  const auto layout = parallelism_of(job.parallel, job.model.layers, why);
  if (!layout) return cannot.push_back(why);
  const std::int32_t tokens = layout->data * layout->expert * layout->ring * layout->ulysses;
  if (layout->pipeline_is_inner) cannot.emplace_back("stages that are nearer to each other than replicas");
  if (layout->zero == 1) cannot.emplace_back("ZeRO 1");
  if (layout->replicas > 1 && layout->zero == 0) cannot.emplace_back("replicas of what is not split");
  if (layout->zero > 1 && tokens == 1) cannot.emplace_back("FSDP over one device");
  if (layout->pipeline > 1 && layout->schedule == "zero_bubble" && layout->chunks > 1)
    cannot.emplace_back("a zero bubble of several chunks");
  if (layout->pipeline > 1 && layout->schedule == "gpipe" && layout->chunks > 1)
    cannot.emplace_back("several chunks of a device in the schedule gpipe");
  if (layout->pipeline > 1 && layout->schedule == "1f1b" && layout->chunks > 1)
    cannot.emplace_back("several chunks of a device in the schedule 1f1b");
  if (!layout->stages.empty()) cannot.emplace_back("stages of these numbers of layers");
  if (layout->tensor > 1 && job.model.experts.count > 0 &&
      layout->experts != (layout->expert > 1 ? ExpertLayout::kSpread : ExpertLayout::kWidth))
    cannot.emplace_back("experts but whole ones over ep and tp together, or of split width without ep");
  if (layout->expert > 1 && job.model.experts.count == 0)
    cannot.emplace_back("an axis ep of a model without experts");
  l.devices = job.supernode.devices;
  l.tensor = layout->tensor, l.pipeline = layout->pipeline, l.context = layout->ring * layout->ulysses,
  l.expert = layout->expert;
  l.sequence_parallel = layout->sequence;
  if (*l.context > 1)
    l.context_kind = layout->ring == 1 ? "ulysses" : layout->ulysses == 1 ? "ring" : "hybrid";
  if (l.context_kind == "hybrid") l.ulysses = layout->ulysses;
  l.shards = layout->zero > 1 ? tokens : 1;
  if (layout->zero > 1) l.reshards = layout->zero == 3;
  if (layout->pipeline > 1)
    l.schedule = layout->schedule, l.chunks = layout->chunks, l.micro_batches = job.training.micro_batches;
  const auto re = recomputation_of(job.training.recompute, layers_of(*layout, job.model.layers));
  if (!re || re->of_chunk > 0 || re->every > 1)
    cannot.emplace_back("recomputation of these layers alone");
  else
    l.recompute = re->policy;
  if (job.memory.policy != "none") cannot.emplace_back("memory beyond HBM that is planned");
  if (job.parallel.tiles != 1) cannot.push_back(fmt::format("parallel.tiles {}", job.parallel.tiles));
  if (job.parallel.paired_passes) cannot.emplace_back("paired passes");
  if (job.parallel.gradients == kBfloat16) cannot.emplace_back("gradients that are exchanged in bfloat16");
  put_training(job.training, l);
  l.micro_batch = micro_batch_size(job, *layout);
  l.precision = job.training.precision;
  l.bfloat16.reset();
  l.betas = fmt::format("{} {}", job.training.beta1, job.training.beta2);
  l.sequence = job.model.sequence;
  l.remark = "put the model's own path into model.pretrained_model_name_or_path";
}

namespace {

bool says_on(const Launch::Words& words) {
  return words && *words != "False" && *words != "false" && !words->empty();
}

// A file with sizes describes the model; one without names the folder of a config.json.
ModelSpec mindformers_model(Reading& r, std::int32_t tensor) {
  Launch& l = r.launch;
  if (!l.layers && !l.hidden) return model_by_name(r, l.model.value_or(l.architecture.value_or("")));
  l.norm = "RMSNorm", l.position_kind = "rope", l.swiglu = true, l.no_bias = true;
  l.vocab_multiple = 1;
  if (!l.tied) l.untied = true;
  if (!l.ffn && l.hidden && l.ffn_multiple.value_or(0) > 0) {
    // Two thirds of 4 hidden, times the factor, up to a multiple.
    const double width = std::floor(8.0 * *l.hidden / 3) * l.ffn_factor.value_or(1);
    const double parts = std::ceil(std::floor(width) / *l.ffn_multiple);
    if (parts * *l.ffn_multiple < (1 << 22)) l.ffn = static_cast<std::int32_t>(parts) * *l.ffn_multiple;
  }
  if (l.kv_rank) l.latent = true;
  return model_of_flags(r, tensor);
}

}  // namespace

void mindformers_to_job(Reading& r) {
  const Launch& l = r.launch;
  Parallelism layout;
  layout.tensor = degree(l.tensor), layout.pipeline = degree(l.pipeline);
  layout.sequence = l.sequence_parallel.value_or(false) && layout.tensor > 1;
  const std::int32_t context = degree(l.context), data = degree(l.shards);
  layout.ulysses = std::min(context, degree(l.ulysses));
  layout.ring = context / layout.ulysses;
  r.job.model = mindformers_model(r, layout.tensor);
  const std::int32_t product = data * layout.tensor * layout.pipeline * layout.ring * layout.ulysses;
  const std::int32_t devices = r.options.devices.value_or(product),
                     replicas = left_for_data(r, layout, devices);
  layout.data = replicas;
  if (r.job.model.experts.count > 0) place_experts(layout, replicas, degree(l.expert), layout.tensor, r);
  if (l.distributed_optimizer.value_or(false))
    layout.zero = l.zero_word ? *l.zero_word == "3" ? 3 : *l.zero_word == "2" ? 2 : 1 : 1;
  take_stages(r, layout);
  r.job.parallel = parallel_of(layout);
  const std::int32_t micro = degree(l.micro_batch),
                     parts = layout.pipeline > 1 ? degree(l.micro_batches) : degree(l.accumulation);
  take_batch(r, micro * parts * replicas, micro, replicas);
  const std::string policy = says_on(l.recompute_words) ? "full"
                             : says_on(l.select_words)  ? "selective"
                                                        : "none";
  r.job.training.recompute = recompute_specs({policy}, layers_of(layout, r.job.model.layers));
  take_training(r, kMindformers);
  take_machine(r, devices, devices % 16 == 0 ? "matrix384" : "atlas_a2");
}

}  // namespace hyperrun::frameworks
