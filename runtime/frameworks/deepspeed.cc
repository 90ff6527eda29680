// The meaning of DeepSpeed's JSON, and of LLaMA-Factory's YAML, which has the batch and names such a file.
#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/frameworks/framework.h"
#include "runtime/frameworks/models.h"
#include "runtime/frameworks/parallelism.h"
#include "runtime/frameworks/recomputation.h"
#include "runtime/frameworks/steps.h"

namespace hyperrun::frameworks {
namespace {

constexpr TrainingDefaults kDefaults{.framework = "DeepSpeed", .clip_norm = 0};
// transformers, training_args.py. LLaMA-Factory and files with "auto" are run by it.
constexpr TrainingDefaults kTrainer{
    .framework = "Hugging Face's Trainer", .weight_decay = 0, .precision = kBfloat16, .lr = 5e-5};
constexpr std::int32_t kMicroBatchOfTrainer = 8;

std::int32_t degree(const Launch::Integer& given) { return std::max(1, given.value_or(1)); }

void take_zero(Reading& r, Parallelism& layout) {
  const Launch& l = r.launch;
  layout.zero = std::clamp(l.zero.value_or(0), 0, 3);
  if (l.fsdp_words) {
    const std::string& words = *l.fsdp_words;
    if (words.find("shard_grad_op") != std::string::npos)
      layout.zero = 2;
    else if (words.find("shard") != std::string::npos)
      layout.zero = 3;
    if (words.find("offload") != std::string::npos) take_offload(r, {"weights", "gradients", "optimizer"});
  }
  // MiCS keeps a whole copy of the state in each group of so many devices.
  const std::int32_t shard = l.shards.value_or(-1);
  if (shard > 0 && layout.data % shard == 0) layout.replicas = layout.data / shard, layout.data = shard;
}

// Any two of the batch, the micro-batch and the number of micro-batches give the third. `trainer`: what is
// left open is as Hugging Face's Trainer has it.
void take_parts(Reading& r, const Parallelism& layout, bool trainer) {
  const Launch& l = r.launch;
  const std::int32_t replicas = layout.batch_parts();
  std::int32_t batch = l.batch.value_or(0), micro = l.micro_batch.value_or(0),
               steps = l.accumulation.value_or(0);
  if (micro == 0 && batch > 0) {
    const std::int64_t parts = std::int64_t{replicas} * std::max(1, steps);
    if (batch % parts != 0)
      throw r
          .error(Code::kBadValue,
                 fmt::format("a batch of {} sequences cannot be cut into {} micro-batches on {} replicas",
                             batch, std::max(1, steps), replicas),
                 {"training.batch", "training.micro_batches"})
          .legal(fmt::format("a multiple of {}", parts));
    micro = static_cast<std::int32_t>(batch / parts);
  }
  if (micro == 0 && trainer)
    micro = kMicroBatchOfTrainer,
    r.assume("training.micro_batches",
             fmt::format("{} sequences in each of {}, the default of Hugging Face's Trainer", micro,
                         std::max(1, steps)));
  if (micro == 0)
    micro = 1,
    r.assume("training.micro_batches", "one sequence a micro-batch, as the configuration leaves it open");
  if (batch > 0 && steps > 0 && std::int64_t{micro} * steps * replicas != batch)
    throw r
        .error(Code::kBadValue,
               fmt::format("{} sequences x {} micro-batches x {} replicas are not a batch of {}", micro,
                           steps, replicas, batch),
               {"training.batch", "training.micro_batches"})
        .legal("a product that is the batch")
        .fix("change one of them, or the number of devices");
  if (batch == 0)
    batch = static_cast<std::int32_t>(
        std::min<std::int64_t>(std::int64_t{micro} * std::max(1, steps) * replicas, 1 << 24));
  take_batch(r, batch, micro, replicas);
}

void take_tiers(Reading& r) {
  const Launch& l = r.launch;
  if (l.offloads_optimizer.value_or(false)) take_offload(r, {"optimizer"});
  if (l.optimizer_tier && *l.optimizer_tier != "none") take_offload(r, {"optimizer"}, *l.optimizer_tier);
  if (l.weight_tier && *l.weight_tier != "none") take_offload(r, {"weights"}, *l.weight_tier);
}

}  // namespace

namespace {

// In a file of Hugging Face's Trainer, "auto" stands for an argument of the Trainer.
bool has_autos(Reading& r) {
  bool found = false;
  for (Finding& f : r.findings)
    if (f.setting.value == "auto" && f.verdict == Verdict::kNoMatter) {
      found = true;
      if (f.meaning == kLeftOpen) f.meaning = "as Hugging Face's Trainer is told";
    }
  return found;
}

// The precision where nobody says it.
void take_precision(Reading& r, const std::string& why) {
  Launch& l = r.launch;
  if (l.bfloat16.value_or(false) || l.float16.value_or(false)) return;
  const auto open = [&](const char* name) {
    return std::ranges::any_of(
        r.findings, [&](const Finding& f) { return f.setting.name == name && f.setting.value == "auto"; });
  };
  const bool any = l.bfloat16 || l.float16;
  if (any && !open("bf16.enabled") && !open("bfloat16.enabled") && !open("fp16.enabled")) return;
  l.bfloat16 = true;
  r.assume("training.precision", why);
}

void to_job(Reading& r, bool trainer) {
  const Launch& l = r.launch;
  Parallelism layout;
  layout.tensor = degree(l.tensor), layout.pipeline = degree(l.pipeline), layout.ulysses = degree(l.ulysses);
  r.job.model = model_by_name(r, l.model.value_or(""));
  const std::int32_t devices = required_devices(r), replicas = left_for_data(r, layout, devices);
  layout.data = replicas;
  if (degree(l.expert) > 1) {
    if (r.job.model.experts.count > 0)
      place_experts(layout, replicas, degree(l.expert), layout.tensor, r);
    else
      r.give_up("expert_parallel.autoep_size", "the model has no experts");
    // Experts are whole on each device of a tensor-parallel group.
    layout.experts = ExpertLayout::kRepeated;
  }
  take_zero(r, layout);
  r.job.parallel = parallel_of(layout);
  take_parts(r, layout, trainer);
  const bool all = l.recompute_all.value_or(false) || l.recompute_layers.value_or(0) >= r.job.model.layers;
  if (!all && l.recompute_layers.value_or(0) > 0)
    r.give_up("activation_checkpointing.number_checkpoints",
              "checkpoints of some layers: which, the model's code says");
  r.job.training.recompute = recompute_specs({all ? "full" : "none"}, layers_of(layout, r.job.model.layers));
  take_training(r, trainer ? kTrainer : kDefaults);
  take_tiers(r);
  take_machine(r, devices, "h100");
}

// What a stage of LLaMA-Factory has beside a loss of each next token.
std::string_view lack_of_stage(std::string_view stage) {
  if (stage == "dpo" || stage == "kto")
    return "learning from preferences: the pairs, and the memory and passes of the reference model, are left "
           "out";
  if (stage == "ppo")
    return "learning from rewards: generation, and the models of reward, value and reference, are left out";
  if (stage == "rm") return "a model of rewards: its head and the pairs are left out";
  return "not known to hyperrun; a loss of each next token stands in its place";
}

void take_method(Reading& r) {
  const Launch& l = r.launch;
  const std::string stage = l.training_stage.value_or("sft"), kind = l.finetuning.value_or("lora");
  if (stage != "sft" && stage != "pt") r.give_up("stage", std::string(lack_of_stage(stage)));
  const std::string all = ": all weights are trained here, with their gradients and optimizer state";
  if (!l.finetuning)
    r.leave_out("finetuning_type", "lora, the default of LLaMA-Factory" + all);
  else if (kind != "full")
    r.give_up("finetuning_type", (kind == "freeze" ? "a part of the layers" : "adapters alone") + all);
}

void take_checkpointing(Reading& r) {
  Launch& l = r.launch;
  if (l.no_recompute.value_or(false) || l.recompute_all.value_or(false)) return;
  if (l.recompute_all)
    r.set_aside("gradient_checkpointing",
                "LLaMA-Factory recomputes unless disable_gradient_checkpointing: true");
  if (!l.no_recompute)
    r.assume("training.recompute",
             "full, the default of LLaMA-Factory; disable_gradient_checkpointing: true ends it");
  l.recompute_all = true;
}

}  // namespace

void deepspeed_to_job(Reading& r) {
  const bool trainer = has_autos(r);
  if (trainer)
    take_precision(r, "bfloat16: \"auto\" is bf16 or fp16 of Hugging Face's Trainer, which are not known");
  to_job(r, trainer);
}

void llama_factory_to_job(Reading& r) {
  has_autos(r);
  take_method(r);
  take_checkpointing(r);
  take_precision(r, "bfloat16, as most published weights are: neither bf16 nor fp16 is set");
  if (!r.launch.sequence) {
    r.launch.sequence = 2048;
    r.assume("model.sequence", "2048, the default of LLaMA-Factory's cutoff_len");
  }
  to_job(r, true);
  const Launch& l = r.launch;
  if (!l.deepspeed_file && !l.fsdp_words && r.job.supernode.devices > 1)
    r.assume("parallel.presets",
             "no ZeRO, as neither deepspeed nor fsdp is there; a file of accelerate is not read");
}

void deepspeed_from_job(const Job& job, Launch& l, std::vector<std::string>& cannot) {
  std::string why;
  const auto layout = parallelism_of(job.parallel, job.model.layers, why);
  if (!layout) return cannot.push_back(why);
  if (layout->pipeline_is_inner) cannot.emplace_back("stages that are nearer to each other than replicas");
  if (layout->sequence) cannot.emplace_back("sequence parallelism beside tensor parallelism");
  if (layout->ring > 1) cannot.emplace_back("context parallelism round a ring");
  if (layout->zero > 1 && layout->pipeline > 1)
    cannot.push_back(fmt::format("ZeRO {} with a pipeline", layout->zero));
  if (layout->replicas > 1 && layout->zero < 3) cannot.emplace_back("replicas beside ZeRO 1 or 2");
  if (layout->tensor > 1 && layout->experts != ExpertLayout::kRepeated)
    cannot.emplace_back("experts that are split over tp");
  if (layout->expert > 1 && layout->zero == 3) cannot.emplace_back("expert parallelism with ZeRO 3");
  if (layout->pipeline > 1 && layout->schedule != "1f1b")
    cannot.push_back("the schedule " + layout->schedule);
  if (layout->chunks > 1) cannot.emplace_back("several chunks of a device");
  if (!layout->stages.empty()) cannot.emplace_back("stages of these numbers of layers");
  l.devices = job.supernode.devices;
  if (layout->tensor > 1) l.tensor = layout->tensor;
  if (layout->ulysses > 1) l.ulysses = layout->ulysses;
  if (layout->expert > 1) l.expert = layout->expert;
  if (layout->pipeline > 1) l.pipeline = layout->pipeline;
  l.zero = layout->zero;
  if (layout->replicas > 1) l.shards = layout->data * layout->expert;
  const auto re = recomputation_of(job.training.recompute, layers_of(*layout, job.model.layers));
  if (!re || re->of_chunk > 0 || re->every > 1 || re->policy == "selective")
    cannot.emplace_back("recomputation but of whole layers, all of them");
  else if (re->policy == "full")
    l.recompute_layers = job.model.layers,
    l.remark = "the model's code checkpoints each layer: model.gradient_checkpointing_enable()";
  if (job.memory.policy == "hyperoffload") {
    const auto has = [&](const char* name) {
      return std::ranges::find(job.memory.tensors, name) != job.memory.tensors.end();
    };
    const std::string tier = job.memory.tier;
    if (job.memory.tensors.empty() || has("activations") || has("gradients") || has("cache"))
      cannot.emplace_back("memory beyond HBM for other tensors than weights and the optimizer's state");
    if (has("optimizer")) l.optimizer_tier = tier;
    if (has("weights")) l.weight_tier = tier;
  } else if (job.memory.policy != "none") {
    cannot.push_back("the memory policy " + job.memory.policy);
  }
  if (job.parallel.tiles != 1) cannot.push_back(fmt::format("parallel.tiles {}", job.parallel.tiles));
  if (job.parallel.paired_passes) cannot.emplace_back("paired passes");
  if (job.parallel.gradients == kBfloat16) cannot.emplace_back("gradients that are exchanged in bfloat16");
  put_training(job.training, l);
  l.micro_batch = micro_batch_size(job, *layout);
  l.accumulation = job.training.micro_batches;
  l.optimizer = "adamw", l.rate_schedule = "cosine";
  l.betas = fmt::format("{} {}", job.training.beta1, job.training.beta2);
  l.sequence.reset();
}

}  // namespace hyperrun::frameworks
