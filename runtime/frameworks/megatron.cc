// The meaning of the arguments of Megatron-LM, MindSpeed-LLM and Megatron-Bridge.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/frameworks/framework.h"
#include "runtime/frameworks/models.h"
#include "runtime/frameworks/parallelism.h"
#include "runtime/frameworks/recomputation.h"
#include "runtime/frameworks/stages.h"
#include "runtime/frameworks/steps.h"
#include "runtime/frameworks/tables.h"

namespace hyperrun::frameworks {
namespace {

constexpr TrainingDefaults kDefaults{.framework = "Megatron-LM"};

std::vector<std::int32_t> numbers(const std::string& text) {
  std::string plain = text;
  for (char& c : plain)
    if (c == ',' || c == '[' || c == ']' || c == '\'' || c == '"') c = ' ';
  std::istringstream in(plain);
  std::vector<std::int32_t> list;
  for (std::int32_t n; in >> n;) list.push_back(n);
  return list;
}

std::int32_t degree(Reading& r, const Launch::Integer& given, std::string_view field) {
  const std::int32_t n = given.value_or(1);
  if (n < 1 || n > (1 << 20))
    throw r.error(Code::kBadValue, fmt::format("a degree of {}", n), {field}).legal("1 to 1048576");
  return n;
}

// The context is divided over a ring, over heads (Ulysses), or over both.
void take_context(Reading& r, Parallelism& layout, const std::string& usual) {
  const Launch& l = r.launch;
  const std::int32_t context = degree(r, l.context, "parallel.mesh ring");
  const std::string kind = l.context_kind.value_or(usual);
  if (context == 1) return;
  if (kind == "ring") {
    layout.ring = context;
    return;
  }
  if (kind == "ulysses") {
    layout.ulysses = context;
    return;
  }
  std::int32_t heads = l.ulysses.value_or(1);
  if (l.hierarchical_sizes)
    if (const auto sizes = numbers(*l.hierarchical_sizes); !sizes.empty()) heads = sizes.front();
  if (heads < 1 || context % heads != 0)
    throw r
        .error(Code::kBadValue,
               fmt::format("{} devices that exchange heads do not divide a context of {}", heads, context),
               {"parallel.mesh cp", "parallel.mesh ring"})
        .legal("a divisor of the context parallelism");
  layout.ulysses = heads;
  layout.ring = context / heads;
}

void take_zero(Reading& r, Parallelism& layout) {
  const Launch& l = r.launch;
  if (l.distributed_optimizer.value_or(false)) layout.zero = 1;
  if (l.zero) layout.zero = std::clamp(*l.zero, 0, 3);
  if (l.own_sharding.value_or(false))
    layout.zero = l.zero_word ? std::stoi(*l.zero_word) : l.keeps_gathered.value_or(false) ? 2 : 3;
  else if (l.zero_word && *l.zero_word != "0")
    r.give_up("data-parallel-sharding-strategy", "without use-megatron-fsdp it has no effect");
  if (layout.zero == 1 && layout.data * layout.expert * layout.ring * layout.ulysses == 1)
    r.assume("parallel.presets", "no zero1: one replica has nothing to split its optimizer's state over");
}

void take_replicas(Reading& r, Parallelism& layout) {
  const std::int32_t replicas = degree(r, r.launch.replicas, "parallel.mesh replicas");
  if (replicas == 1) return;
  if (layout.data % replicas != 0)
    return r.give_up("num-distributed-optimizer-instances",
                     fmt::format("copies of the state that do not divide {} replicas", layout.data));
  layout.replicas = replicas;
  layout.data /= replicas;
}

void take_experts(Reading& r, Parallelism& layout, std::int32_t replicas) {
  const Launch& l = r.launch;
  layout.data = replicas;
  if (r.job.model.experts.count == 0) {
    if (l.expert.value_or(1) > 1) r.give_up("expert-model-parallel-size", "the model has no experts");
    return;
  }
  const std::int32_t experts = degree(r, l.expert, "parallel.mesh ep");
  if (l.experts_over_tensor.value_or(false) && layout.tensor > 1)
    return place_experts(layout, replicas, experts * layout.tensor, 1, r);
  place_experts(layout, replicas, experts, l.expert_tensor.value_or(layout.tensor), r);
}

// The words of a list in any notation: "layernorm moe_act", "['layernorm', 'moe_act']".
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> list(1);
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || c == '_')
      list.back() += c;
    else if (!list.back().empty())
      list.emplace_back();
  }
  if (list.back().empty()) list.pop_back();
  return list;
}

// A job's "selective" repeats norms and SwiGLU. Of the modules that Megatron-LM may repeat it is those two.
// Returns whether any of the modules is among them, and tells the others.
bool repeats_norms_or_swiglu(Reading& r) {
  const std::vector<std::string> modules = words_of(r.launch.recompute_modules.value_or("core_attn"));
  std::vector<std::string> others;
  bool norms = false, swiglu = false;
  for (const std::string& m : modules) {
    norms |= m == "layernorm";
    swiglu |= m == "moe_act";
    if (m != "layernorm" && m != "moe_act" && m != "core_attn") others.push_back(m);
  }
  const bool any = norms || swiglu;
  const std::string core = "the scores of attention are never kept here, so nothing is left to repeat";
  if (!others.empty())
    r.give_up("recompute-modules",
              fmt::format(
                  "{}: parts of a layer with products; a job repeats norms and SwiGLU (selective) or a whole "
                  "layer (full){}",
                  joined(others), any ? ", the first here" : ""));
  if (any && !(norms && swiglu))
    r.assume("training.recompute",
             fmt::format("selective, which repeats norms and SwiGLU; the run names {} alone",
                         norms ? "norms" : "activations of experts"));
  if (!any && others.empty()) {
    for (const char* name : {"recompute-granularity", "recompute-activations", "recompute-modules"})
      r.set_aside(name, core);
  } else if (!any) {
    r.set_aside("recompute-granularity", "as recompute-modules says");
  }
  return any;
}

// MindSpeed-LLM names norms and activations by flags of their own.
bool repeats_by_flag(Reading& r) {
  const bool norms = r.launch.recompute_norm.value_or(false),
             swiglu = r.launch.recompute_activation.value_or(false);
  if (norms != swiglu)
    r.assume("training.recompute",
             fmt::format("selective, which repeats norms and SwiGLU; the run names {} alone",
                         norms ? "norms" : "activations"));
  return norms || swiglu;
}

void take_recompute(Reading& r, const std::vector<std::int32_t>& stages) {
  const Launch& l = r.launch;
  Recomputation re;
  const bool selective =
      l.recompute.value_or(l.recompute_selective.value_or(false) ? "selective" : "none") == "selective";
  if (l.recompute && *l.recompute != "selective") re.policy = *l.recompute;
  if (selective && repeats_norms_or_swiglu(r)) re.policy = "selective";
  if (!selective) r.set_aside("recompute-modules", "of selective recomputation alone");
  if (re.policy == "none" && repeats_by_flag(r)) re.policy = "selective";
  if (l.recompute_all.value_or(false)) re.policy = "full";
  if (re.policy == "full" && l.recompute_method.value_or("uniform") == "block") {
    re.of_chunk = std::max(0, l.recompute_layers.value_or(1));
    if (re.of_chunk == 0) re.policy = "none";
  } else if (re.policy == "full" && l.recompute_layers.value_or(1) > 1) {
    r.give_up("recompute-num-layers", "one kept input for several layers: each layer keeps its input here");
  }
  r.job.training.recompute = recompute_specs(re, stages);
}

void take_offloads(Reading& r) {
  const Launch& l = r.launch;
  if (l.offloads_optimizer.value_or(false) || l.offloads_optimizer_here.value_or(false))
    take_offload(r, {"optimizer"});
  if (l.offloads_activations.value_or(false)) take_offload(r, {"activations"});
}

// Whether the setting asks for an overlap, and does not only tune one.
bool asks_for_overlap(const Setting& s) {
  if (s.name.starts_with("no-") || s.name.starts_with("disable-") || (s.has_value && says_off(s.value)))
    return false;
  for (const std::string_view part : {"overlap", "mc2", "ascend-coc", "async-comm", "delay-wgrad", "defer-"})
    if (s.name.find(part) != std::string::npos) return true;
  return false;
}

// The software profiles of these frameworks overlap nothing, whatever the script asks for.
void tell_overlaps(Reading& r) {
  const std::string& software = r.job.supernode.software;
  if (software.empty()) return;
  for (Finding& f : r.findings) {
    if (f.verdict != Verdict::kNoMatter || (f.meaning != kOverlapping && f.meaning != kBesideProducts))
      continue;
    if (!asks_for_overlap(f.setting)) {
      f.meaning = fmt::format("how exchanges overlap: none does with the software \"{}\"", software);
      continue;
    }
    f.verdict = Verdict::kGap;
    f.meaning = fmt::format(
        "the software \"{}\" overlaps nothing; a job without supernode.software overlaps all that streams "
        "allow",
        software);
  }
}

// Megatron-LM has no groups of queries without --group-query-attention, whatever their number is.
void take_query_groups(Reading& r) {
  Launch& l = r.launch;
  const auto is_it = [](const Finding& f) { return f.setting.name == "num-query-groups"; };
  if (l.grouped_queries.value_or(false) || std::ranges::none_of(r.findings, is_it)) return;
  l.kv_heads.reset();
  l.grouped_queries = false;
  r.set_aside("num-query-groups", "without group-query-attention each head has its own keys and values");
}

void tell_dropout(Reading& r) {
  for (const char* name : {"hidden-dropout", "attention-dropout"})
    if (std::ranges::none_of(r.findings, [&](const Finding& f) { return f.setting.name == name; }))
      r.leave_out("model", fmt::format("{} of 0.1, the default of Megatron-LM: there is none here", name));
}

struct Usual {
  std::string context, machine, software;
  bool bridge = false;
};

void to_job(Reading& r, const Usual& usual) {
  const Launch& l = r.launch;
  Parallelism layout;
  layout.tensor = degree(r, l.tensor, "parallel.mesh tp");
  layout.pipeline = degree(r, l.pipeline, "parallel.mesh pp");
  layout.sequence = l.sequence_parallel.value_or(false) && layout.tensor > 1;
  layout.pipeline_is_inner = l.pipeline_is_inner.value_or(false) && layout.pipeline > 1;
  if (!usual.bridge) take_query_groups(r);
  r.job.model = model_of_flags(r, layout.tensor);
  take_context(r, layout, usual.context);
  const std::int32_t devices = required_devices(r), replicas = left_for_data(r, layout, devices);
  take_experts(r, layout, replicas);
  take_replicas(r, layout);
  take_zero(r, layout);
  take_stages(r, layout);
  r.job.parallel = parallel_of(layout);
  take_batch(r, l.batch.value_or(0), l.micro_batch.value_or(1), replicas);
  take_recompute(r, layers_of(layout, r.job.model.layers));
  take_training(r, kDefaults);
  if (!usual.bridge) tell_dropout(r);
  take_offloads(r);
  if (l.paired_passes.value_or(false) || l.paired_passes_here.value_or(false)) {
    r.job.parallel.paired_passes = r.job.training.micro_batches > 1;
    if (!r.job.parallel.paired_passes)
      for (const char* name : {"overlap-moe-expert-parallel-comm", "moe-fb-overlap"})
        r.give_up(name, "a step of one micro-batch has no passes to pair");
  }
  take_machine(r, devices, usual.machine, usual.software);
  tell_overlaps(r);
}

}  // namespace

void megatron_to_job(Reading& r) { to_job(r, {"ring", "h100", "megatron"}); }

void mindspeed_to_job(Reading& r) {
  const bool two_dies = r.launch.per_node.value_or(8) > 8;
  to_job(r, {"ulysses", two_dies ? "matrix384" : "atlas_a2", "mindspeed"});
}

void megatron_bridge_to_job(Reading& r) {
  // A recipe's data types are those of mixed precision, unless it says otherwise.
  if (!r.launch.bfloat16 && !r.launch.float16 && !r.launch.precision)
    r.launch.bfloat16 = true,
    r.assume("training.precision", "bfloat16, the default of Megatron-Bridge's recipes");
  to_job(r, {"ring", "h100", "megatron", true});
}

namespace {

void put_selective(const ModelSpec& model, Launch& l, bool mindspeed) {
  if (mindspeed) {
    l.recompute_norm = l.recompute_activation = true;
    return;
  }
  l.recompute = "selective";
  // The activation of a dense layer is none of Megatron-LM's modules.
  const bool experts = model.experts.count > 0;
  l.recompute_modules = experts ? "layernorm moe_act" : "layernorm";
  if (!experts || model.experts.dense_layers > 0)
    l.remark = "Megatron-LM repeats no SwiGLU of dense layers: its activations are kept there";
}

void from_job(const Job& job, Launch& l, std::vector<std::string>& cannot, bool mindspeed) {
  std::string why;
  const auto layout = parallelism_of(job.parallel, job.model.layers, why);
  if (!layout) {
    cannot.push_back(why);
    return;
  }
  l.devices = job.supernode.devices;
  l.tensor = layout->tensor, l.pipeline = layout->pipeline, l.context = layout->ring * layout->ulysses;
  if (layout->sequence) l.sequence_parallel = true;
  if (layout->pipeline_is_inner) l.pipeline_is_inner = true;
  if (layout->ring > 1 || layout->ulysses > 1) {
    l.context_kind = layout->ulysses == 1 ? "ring" : layout->ring == 1 ? "ulysses" : "hybrid";
    if (*l.context_kind == "hybrid" && mindspeed) l.ulysses = layout->ulysses;
    if (*l.context_kind == "hybrid" && !mindspeed)
      l.hierarchical_sizes = fmt::format("{} {}", layout->ulysses, layout->ring);
  }
  if (job.model.experts.count > 0) {
    const auto degrees = expert_degrees(*layout);
    if (!degrees)
      cannot.emplace_back("experts that devices along tp repeat, beside expert parallelism");
    else
      l.expert = degrees->experts, l.expert_tensor = degrees->tensor;
  } else if (layout->expert > 1) {
    cannot.emplace_back("an axis ep of a model without experts");
  }
  if (layout->replicas > 1) l.replicas = layout->replicas;
  if (layout->zero == 1) l.distributed_optimizer = true;
  if (layout->zero > 1 && (layout->pipeline > 1 || mindspeed))
    cannot.push_back(fmt::format("ZeRO {}{}", layout->zero, mindspeed ? "" : " with a pipeline"));
  if (layout->zero > 1)
    l.own_sharding = true, l.zero_word = std::to_string(layout->zero), l.distributed_optimizer = true;
  put_stages(*layout, job.model, l, cannot);
  const auto re = recomputation_of(job.training.recompute, layers_of(*layout, job.model.layers));
  if (!re || re->every > 1 || (re->of_chunk > 0 && re->policy != "full"))
    cannot.emplace_back("recomputation of these layers alone");
  else if (re->policy != "none") {
    if (re->policy == "selective") put_selective(job.model, l, mindspeed);
    if (re->policy == "full")
      l.recompute = re->policy, l.recompute_method = re->of_chunk > 0 ? "block" : "uniform",
      l.recompute_layers = std::max(1, re->of_chunk);
  }
  if (job.memory.policy != "none") {
    const bool optimizer =
        job.memory.tensors == std::vector<std::string>{"optimizer"} && job.memory.tier == "pool";
    if (job.memory.policy != "hyperoffload" || !optimizer)
      cannot.emplace_back("memory beyond HBM, but for the optimizer's state");
    else
      (mindspeed ? l.offloads_optimizer_here : l.offloads_optimizer) = true;
  }
  if (job.parallel.tiles != 1) cannot.push_back(fmt::format("parallel.tiles {}", job.parallel.tiles));
  if (job.parallel.paired_passes) (mindspeed ? l.paired_passes_here : l.paired_passes) = true;
  if (job.parallel.gradients == kBfloat16) l.gradients_bfloat16 = true;
  l.micro_batch = micro_batch_size(job, *layout);
  put_training(job.training, l);
  l.rate_schedule = "cosine", l.hidden_dropout = "0", l.attention_dropout = "0";
  flags_of_model(job.model, l, cannot);
}

}  // namespace

void megatron_from_job(const Job& job, Launch& l, std::vector<std::string>& cannot) {
  from_job(job, l, cannot, false);
  // Its vocabulary is padded to a multiple of this and of the devices along tp; no flag gives the padded
  // size. One that tp does not divide is padded as the compiler does it.
  l.padded_vocab.reset();
  const std::int32_t vocab = job.model.vocab, tensor = l.tensor.value_or(1);
  l.vocab = vocab;
  l.vocab_multiple = vocab % tensor == 0 ? std::gcd(128, vocab / tensor) : 1;
}

void mindspeed_from_job(const Job& job, Launch& l, std::vector<std::string>& cannot) {
  from_job(job, l, cannot, true);
  if (l.window_pair) l.window = job.model.window - 1, l.window_pair.reset();
  if (l.window_pattern) cannot.emplace_back("windows of some layers");
  // Its experts are split over tp unless they are spread over it, and it has no degree of their tensor
  // parallelism.
  if (l.expert_tensor.value_or(1) == 1 && l.tensor.value_or(1) > 1 && l.expert) {
    if (*l.expert % *l.tensor == 0)
      l.expert = *l.expert / *l.tensor, l.experts_over_tensor = true;
    else
      cannot.emplace_back("experts that devices along tp repeat");
  }
  l.expert_tensor.reset();
}

}  // namespace hyperrun::frameworks
