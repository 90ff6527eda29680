#include "runtime/frameworks/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/spec/profile_reader.h"

namespace hyperrun::frameworks {

std::int32_t devices_of(const Reading& r) {
  if (r.options.devices) return *r.options.devices;
  const Launch& l = r.launch;
  const auto check = [&](const Launch::Integer& n) {
    if (n && *n < 1)
      throw r.error(Code::kBadValue, fmt::format("{} devices", *n), {"supernode.devices"}).legal("1 or more");
  };
  check(l.devices), check(l.nodes), check(l.per_node);
  if (l.devices) return *l.devices;
  if (!l.per_node) return 0;
  const std::int64_t product = std::int64_t{l.nodes.value_or(1)} * *l.per_node;
  if (product > (1 << 20))
    throw r.error(Code::kBadValue, fmt::format("{} devices", product), {"supernode.devices"})
        .legal("1 to 1048576");
  return static_cast<std::int32_t>(product);
}

std::int32_t required_devices(const Reading& r) {
  const std::int32_t devices = devices_of(r);
  if (devices > 0) return devices;
  throw Error(Code::kMissingField, "nothing says how many devices there are")
      .at(r.findings.empty() ? "" : r.findings.front().setting.place)
      .legal("--devices N, or a launcher's number of nodes and of devices in each")
      .fix("add --devices N");
}

std::int32_t left_for_data(const Reading& r, const Parallelism& l, std::int32_t devices) {
  const std::int64_t others = std::int64_t{l.pipeline} * l.ring * l.ulysses * l.tensor;
  if (devices % others == 0) return static_cast<std::int32_t>(devices / others);
  throw r
      .error(Code::kBadLayout,
             fmt::format("{} devices cannot be divided into pp {} x cp {} x tp {} = {}", devices, l.pipeline,
                         l.ring * l.ulysses, l.tensor, others),
             {"parallel.mesh tp", "parallel.mesh pp", "parallel.mesh ring", "supernode.devices"})
      .legal(fmt::format("a multiple of {} devices", others))
      .fix("change one of these sizes, or give --devices");
}

void take_batch(Reading& r, std::int32_t batch, std::int32_t micro_batch, std::int32_t replicas) {
  const std::int64_t at_once = std::int64_t{micro_batch} * replicas;
  if (micro_batch < 1 || at_once > (1 << 24))
    throw r
        .error(Code::kBadValue, fmt::format("a micro-batch of {} sequences", micro_batch),
               {"training.micro_batches"})
        .legal("1 or more");
  if (batch == 0) batch = static_cast<std::int32_t>(at_once);
  if (batch < 1 || batch % at_once != 0)
    throw r
        .error(Code::kBadValue,
               fmt::format("a batch of {} sequences cannot be cut into micro-batches of {} on {} replicas",
                           batch, micro_batch, replicas),
               {"training.batch", "training.micro_batches", "supernode.devices"})
        .legal(fmt::format("a multiple of {}", at_once))
        .fix("change the batch, the micro-batch, or the number of devices");
  r.job.training.batch = batch;
  r.job.training.micro_batches = static_cast<std::int32_t>(batch / at_once);
}

namespace {

// The decimal number that is meant: 3e-05, not the product 2.9999999999999997e-05.
double decimal(double v, int digits) {
  return std::strtod(fmt::format("{:.{}g}", v, digits).c_str(), nullptr);
}

void take_betas(Reading& r, TrainingSpec& t) {
  if (!r.launch.betas) return;
  std::string text = *r.launch.betas;
  for (char& c : text)
    if (c == ',' || c == '[' || c == ']' || c == '(' || c == ')') c = ' ';
  std::istringstream in(text);
  double first = 0, second = 0;
  if (in >> first >> second) t.beta1 = first, t.beta2 = second;
}

void take_steps(Reading& r, TrainingSpec& t) {
  const Launch& l = r.launch;
  if (l.steps.value_or(l.total_steps.value_or(0)) > 0)
    t.steps = l.steps.value_or(l.total_steps.value_or(0));
  else if (l.samples.value_or(0) > 0 && t.batch > 0)
    t.steps = std::max(1, *l.samples / t.batch);
  if (l.warmup_steps)
    t.warmup_steps = std::max(0, *l.warmup_steps);
  else if (l.warmup_samples && t.batch > 0)
    t.warmup_steps = std::max(0, *l.warmup_samples) / t.batch;
  else if (l.warmup_share && t.steps > 0)
    t.warmup_steps = static_cast<std::int32_t>(std::lround(*l.warmup_share * t.steps));
  if (t.steps > 0 && t.warmup_steps > t.steps) {
    r.assume("training.warmup_steps",
             fmt::format("{}, all steps: a warm-up of {} is longer", t.steps, t.warmup_steps));
    t.warmup_steps = t.steps;
  }
}

}  // namespace

void take_training(Reading& r, const TrainingDefaults& d) {
  TrainingSpec& t = r.job.training;
  const Launch& l = r.launch;
  const auto real = [&](double& field, const Launch::Real& given, double otherwise, const char* name) {
    const double usual = field;
    field = given.value_or(otherwise);
    if (!given && field != usual)
      r.assume(std::string("training.") + name, fmt::format("{}, the default of {}", field, d.framework));
  };
  real(t.beta1, l.beta1, 0.9, "beta1");
  real(t.beta2, l.beta2, l.betas ? t.beta2 : d.beta2, "beta2");
  real(t.eps, l.eps, d.eps, "eps");
  real(t.weight_decay, l.weight_decay, d.weight_decay, "weight_decay");
  real(t.clip_norm, l.clip_norm, d.clip_norm, "clip_norm");
  real(t.init_std, l.init_std, d.init_std, "init_std");
  take_betas(r, t);
  take_steps(r, t);
  real(t.lr, l.lr, d.lr, "lr");
  t.min_lr = l.min_lr ? *l.min_lr : decimal(t.lr * l.min_lr_share.value_or(d.min_lr_share), 15);
  if (t.min_lr > t.lr) {
    r.give_up("min-lr", "a last rate above the first");
    t.min_lr = t.lr;
  }
  if (t.lr == 0) t.min_lr = 0;
  const bool half = l.bfloat16.value_or(false) || l.float16.value_or(false) ||
                    l.precision.value_or("") == "bfloat16" || l.precision.value_or("") == "float16";
  const bool said = l.bfloat16 || l.float16 || l.precision;
  t.precision = half ? kBfloat16 : said ? kFloat32 : d.precision;
  if (l.gradients_bfloat16.value_or(false)) r.job.parallel.gradients = kBfloat16;
  if (l.seed && *l.seed >= 0) r.job.run.seed = static_cast<std::uint64_t>(*l.seed);
}

void put_training(const TrainingSpec& t, Launch& l) {
  l.batch = t.batch;
  if (t.steps > 0) l.steps = t.steps;
  if (t.lr > 0) l.lr = t.lr, l.min_lr = t.min_lr, l.min_lr_share = decimal(t.min_lr / t.lr, 12);
  if (t.warmup_steps > 0) l.warmup_steps = t.warmup_steps;
  l.beta1 = t.beta1, l.beta2 = t.beta2, l.eps = t.eps, l.weight_decay = t.weight_decay,
  l.clip_norm = t.clip_norm;
  l.init_std = t.init_std;
  if (t.precision == kBfloat16) l.bfloat16 = true;
}

namespace {

// Whether the profile says nothing of the framework. A file of the user's own may.
bool is_bare(const std::string& profile) {
  if (!is_built_in(profile)) return false;
  const Machine machine = load_profile(profile, "");
  return machine.software.name.empty() && !machine.feeding().takes_time() && !machine.in_order();
}

}  // namespace

void take_machine(Reading& r, std::int32_t devices, const std::string& usual, const std::string& software) {
  r.job.supernode.devices = devices;
  r.job.supernode.profile = r.options.profile.empty() ? usual : r.options.profile;
  if (r.options.profile.empty())
    r.assume("supernode.profile",
             fmt::format("\"{}\", as no configuration names the machine; --profile names another", usual));
  if (software.empty() || !is_bare(r.job.supernode.profile)) return;
  r.job.supernode.software = software;
  r.assume(
      "supernode.software",
      fmt::format("\"{}\": what the framework keeps in HBM besides, and that it overlaps nothing", software));
}

void take_offload(Reading& r, std::vector<std::string> tensors, const std::string& tier) {
  MemorySpec& m = r.job.memory;
  m.policy = "hyperoffload";
  if (tier == "flash") m.tier = tier;
  for (std::string& t : tensors)
    if (std::ranges::find(m.tensors, t) == m.tensors.end()) m.tensors.push_back(std::move(t));
}

std::int32_t micro_batch_size(const Job& job, const Parallelism& l) {
  return job.training.batch / (job.training.micro_batches * l.batch_parts());
}

}  // namespace hyperrun::frameworks
