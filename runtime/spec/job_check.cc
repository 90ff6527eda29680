#include "runtime/spec/job_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "runtime/ir/axis_list.h"
#include "runtime/ir/families.h"
#include "runtime/ir/pipeline.h"
#include "runtime/ir/shrink.h"
#include "runtime/spec/job_check_media.h"
#include "runtime/spec/job_check_model.h"
#include "runtime/spec/job_check_pipeline.h"
#include "runtime/spec/job_fields.h"
#include "runtime/spec/job_legal.h"
#include "runtime/spec/job_mesh.h"
#include "runtime/spec/layout_notation.h"

namespace hyperrun {
namespace {

constexpr std::size_t kLongestName = 64;

bool in_name(char c) {
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

std::string name_from(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string().substr(0, kLongestName);
  for (char& c : name)
    if (!in_name(c)) c = '-';
  return name.empty() || name.front() == '.' ? "job" : name;
}

bool legal_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), in_name);
}

// The axes over which a preset splits the batch.
std::vector<MeshAxis> axes_of_the_batch(const ParallelSpec& parallel) {
  std::vector<MeshAxis> axes;
  for (const MeshAxis& axis : parallel.mesh)
    for (const std::string& name : parallel.presets)
      for (const Preset& preset : kPresets)
        if (preset.name == name && preset.rules[0].dim == "batch" && preset.rules[0].axis == axis.name)
          axes.push_back(axis);
  return axes;
}

std::string data_parallel_axes(const ParallelSpec& parallel) {
  std::string names;
  for (const MeshAxis& axis : axes_of_the_batch(parallel))
    names += (names.empty() ? "" : " and ") + axis.name;
  return names;
}

class Checker {
 public:
  Checker(const Job& job, const JobSource& source) : job_(job), source_(source) {}

  std::vector<Error> run(JobUse use) && {
    names();
    clock();
    divergence();
    machine();
    memory();
    shrink(use);
    check_model(job_, source_, errors_);
    schedule();
    recompute();
    if (use == JobUse::kToBePlanned) return std::move(errors_);
    mesh();
    if (!axes_are_named()) return std::move(errors_);  // the rest would only repeat it
    presets();
    rules();
    check_pipeline(job_, source_, errors_);
    batch();
    return std::move(errors_);
  }

 private:
  Error& report(Code code, const std::string& cause, std::string_view field) {
    return errors_.emplace_back(Error(code, cause).at(source_.place(field)));
  }

  void names() {
    if (!legal_name(job_.name))
      report(Code::kBadValue, in_quotes(job_.name) + " cannot name a run directory", "name")
          .legal("1 to 64 letters, digits, '.', '_', '-', not starting with '.'")
          .fix("rename the job");
    const std::string& directory = job_.run.directory;
    if (directory.empty())
      report(Code::kBadValue, "\"directory\" is empty", "run.directory")
          .legal("a path")
          .fix("give it, or leave the field out");
    for (std::size_t at = directory.find('{'); at != std::string::npos; at = directory.find('{', at + 1)) {
      std::string hole = directory.substr(at, directory.find('}', at) - at + 1);
      if (hole != "{job}" && hole != "{time}")
        report(Code::kBadValue, "\"directory\" holds " + hole, "run.directory")
            .legal("{job}, {time}")
            .fix("remove it");
    }
  }

  void clock() {
    const RunSpec& run = job_.run;
    if (run.clock == kPaced && run.streams == StreamThreads::kOne)
      report(Code::kBadValue, "on the paced clock each stream has a thread", "run.streams")
          .legal("AUTO, PER_STREAM")
          .fix("leave streams out");
    const auto& machine = job_.supernode.machine;
    if (run.clock == kPaced && machine && (machine->feeding().takes_time() || machine->in_order()))
      report(Code::kBadValue, "the paced clock has no feeder, as " + machine->name + " has",
             "supernode.profile")
          .legal("a profile without a feeder")
          .fix("choose another profile, leave the software out, or simulate the job");
    if (run.clock != kPaced && run.dilation > 0)
      report(Code::kBadValue, "the native clock stretches no time", "run.dilation")
          .legal("0, or clock: \"paced\"")
          .fix("add clock: \"paced\", or leave dilation out");
  }

  void divergence() {
    const double jump = job_.run.divergence_jump;
    if (jump > 0 && jump <= 1)
      report(Code::kBadValue, fmt::format("a loss that is {:g} times the mean would have diverged", jump),
             "run.divergence_jump")
          .legal("0, or above 1")
          .fix("choose 3, say, or leave divergence_jump out");
  }

  // No part of the job's machine may be larger than the profile's. The limit of the pool is that of all hosts
  // with devices of the job; the limit of flash is that of the job's devices.
  void machine() {
    const SupernodeSpec& s = job_.supernode;
    if (!s.machine) return;
    const Machine& m = *s.machine;
    if (m.devices > 0 && s.devices > m.devices)
      report(Code::kBadValue,
             fmt::format("the profile \"{}\" has {} devices, not {}", m.name, m.devices, s.devices),
             "supernode.devices")
          .legal(fmt::format("1 to {}", m.devices))
          .fix("take fewer devices, or choose another profile");
    const std::int64_t host = std::min<std::int64_t>(m.devices_of_a_host(), 1 << 20);
    const std::int64_t near = (s.devices + host - 1) / host * host;
    const std::string of_profile = " of the profile \"" + m.name + "\" ";
    up_to(m.hbm_of_jobs(), s.hbm, "a device" + of_profile + "has",
          m.reserved() > 0 ? "HBM beside what its software takes" : "HBM", "hbm");
    if (m.pool.exists())
      up_to(m.pool.capacity.value * static_cast<double>(near), s.pool,
            fmt::format("{} devices{}have", near, of_profile), "pool", "pool");
    if (m.flash.exists())
      up_to(m.flash.capacity.value * static_cast<double>(s.devices), s.flash,
            fmt::format("{} devices{}have", s.devices, of_profile), "flash", "flash");
  }

  void up_to(double most, Bytes wanted, const std::string& who_has, const std::string& what,
             const std::string& field) {
    if (static_cast<double>(wanted.value) <= most) return;
    const std::string has = to_string(Bytes(std::llround(most)));
    report(Code::kBadValue, who_has + " " + has + " of " + what + ", not " + to_string(wanted),
           "supernode." + field)
        .legal("up to " + has)
        .fix("take less, or choose another profile");
  }

  void memory() {
    const MemorySpec& memory = job_.memory;
    if (memory.policy == "none") return nothing_moves(memory);
    const SupernodeSpec& supernode = job_.supernode;
    const bool flash = memory.tier == "flash";
    if (supernode.machine && !(flash ? supernode.machine->flash : supernode.machine->pool).exists())
      report(Code::kBadValue, "the profile \"" + supernode.machine->name + "\" has no " + memory.tier,
             "memory.tier")
          .legal("a tier that the profile has")
          .fix("choose another tier or profile");
    else if ((flash ? supernode.flash : supernode.pool).value == 0)
      report(Code::kBadValue, "there is no " + memory.tier + " to move anything to", "memory.tier")
          .legal("a tier with a budget")
          .fix("give supernode." + memory.tier + " a budget");
    if (memory.policy == "weights")
      for (const std::string& tensors : memory.tensors)
        if (tensors != "weights")
          report(Code::kBadValue, "the policy \"weights\" moves no " + tensors, "memory.tensors")
              .legal("weights")
              .fix("choose the policy \"hyperoffload\", or leave tensors out");
  }

  void nothing_moves(const MemorySpec& memory) {
    for (const auto& [field, given] :
         {std::pair{"tensors", !memory.tensors.empty()}, {"tier", source_.has("memory.tier")}})
      if (given)
        report(Code::kBadValue, "the policy \"none\" moves nothing", std::string("memory.") + field)
            .legal("with another policy")
            .fix(std::string("choose the policy \"hyperoffload\", or leave ") + field + " out");
  }

  // Checks the divisors of an execution to scale. Stages are not checked for the planner, which replaces
  // them.
  void shrink(JobUse use) {
    const ShrinkSpec& by = job_.run.shrink;
    if (by == ShrinkSpec{}) return;
    if (job_.run.clock != kPaced)
      report(Code::kBadValue, "only the paced clock executes to scale", "run.shrink")
          .legal("with clock: \"paced\"")
          .fix("add clock: \"paced\", or leave shrink out");
    const ModelSpec& m = job_.model;
    std::vector<std::pair<std::int32_t, const char*>> depths{{m.layers, "layers"}};
    for (const PipelineSpec::Stage& stage : job_.parallel.pipeline.stages)
      if (use != JobUse::kToBePlanned) depths.emplace_back(stage.layers, "layers of a stage");
    divides(by.depth, "depth", depths);
    divides(by.width, "width",
            {{m.hidden, "hidden"},
             {m.head_dim, "head_dim"},
             {m.ffn, "ffn"},
             {m.experts.ffn, "experts.ffn"},
             {m.latent.q_rank, "latent.q_rank"},
             {m.latent.kv_rank, "latent.kv_rank"},
             {m.latent.nope_dim, "latent.nope_dim"},
             {m.latent.rope_dim, "latent.rope_dim"},
             {m.latent.value_dim, "latent.value_dim"},
             {m.rotary_dim, "rotary_dim"}});
    divides(by.sequence, "sequence",
            {{m.sequence, "sequence"},
             {m.positions, "positions"},
             {m.experts.capacity.group, "experts.capacity.group"},
             {job_.inference.context, "inference.context"},
             {job_.inference.chunk, "inference.chunk"}});
    divides(by.vocab, "vocab", {{m.vocab, "vocab"}});
    divides(by.batch, "batch",
            {{job_.training.batch, "batch"},
             {job_.inference.slots, "inference.slots"},
             {job_.inference.prompts, "inference.prompts"}});
    if (errors_.empty()) of_the_small_model(use);
  }

  void divides(std::int32_t by, const char* field,
               const std::vector<std::pair<std::int32_t, const char*>>& of_what) {
    for (const auto& [size, what] : of_what) {
      if (size % by == 0) continue;
      report(Code::kBadValue, of(by, field) + " does not divide " + of(size, what),
             std::string("run.shrink.") + field)
          .legal(list(divisors(size)))
          .fix("choose a legal value");
      return;
    }
  }

  void of_the_small_model(JobUse use) {
    const Job small = shrunk(job_);
    constexpr std::int32_t kSmallestVocab = 257;
    if (small.model.vocab < kSmallestVocab)
      report(Code::kBadValue, "the small model would have a " + of(small.model.vocab, "vocab"),
             "run.shrink.vocab")
          .legal(fmt::format("1 to {}", job_.model.vocab / kSmallestVocab))
          .fix("divide by less");
    for (const Error& e : Checker(small, source_).run(use))
      report(e.code(), "the small model: " + e.cause(), "run.shrink")
          .legal(e.legal())
          .fix("divide by other numbers in run.shrink");
  }

  // False if an axis has no name that presets and rules could refer to.
  bool axes_are_named() {
    const auto& mesh = job_.parallel.mesh;
    std::size_t before = errors_.size();
    std::set<std::string> seen;
    if (mesh.size() > kMostAxes)
      report(Code::kBadLayout, fmt::format("the mesh has {} axes", mesh.size()), "parallel.mesh")
          .legal(fmt::format("at most {}", kMostAxes))
          .fix("leave out axes of one device, or make one axis of several");
    for (std::size_t i = 0; i < mesh.size(); ++i) {
      std::string field = fmt::format("parallel.mesh[{}].name", i);
      if (!legal_axis_name(mesh[i].name))
        report(Code::kBadValue, "a mesh axis cannot be called " + in_quotes(mesh[i].name), field)
            .legal("a letter, then letters, digits or '_'")
            .fix("rename it");
      if (!seen.insert(mesh[i].name).second)
        report(Code::kBadLayout, "two mesh axes are called " + in_quotes(mesh[i].name), field)
            .legal("each name once")
            .fix("rename one, or make one axis of both");
    }
    return errors_.size() == before;
  }

  void mesh() {
    const auto& mesh = job_.parallel.mesh;
    if (mesh_size(mesh) == job_.supernode.devices) return;
    report(Code::kBadLayout,
           fmt::format("the mesh has {} devices, the supernode {}", mesh_size(mesh), job_.supernode.devices),
           "parallel.mesh")
        .legal(legal_meshes(job_.parallel, job_.supernode.devices))
        .fix("change the sizes in parallel.mesh, or supernode.devices");
  }

  void presets() {
    for (std::size_t i = 0; i < job_.parallel.presets.size(); ++i)
      for (const Preset& preset : kPresets)
        if (preset.name == job_.parallel.presets[i]) preset_axes(preset, i);
    experts_on_tensor();
  }

  // Preset "ep_tp" puts whole experts on "tp" and needs tokens that are split over it. A generation's passes
  // have too few tokens to split.
  void experts_on_tensor() {
    const std::vector<std::string>& presets = job_.parallel.presets;
    const auto has = [&](std::string_view name) { return std::ranges::find(presets, name) != presets.end(); };
    if (!has("ep_tp")) return;
    const std::string field =
        fmt::format("parallel.presets[{}]", std::ranges::find(presets, "ep_tp") - presets.begin());
    if (has("etp"))
      report(Code::kBadLayout, "\"ep_tp\" has whole experts on \"tp\", \"etp\" parts of each", field)
          .legal("one of them")
          .fix("remove the other");
    if (job_.run.generate.tokens > 0)
      report(Code::kBadLayout,
             "a generation has too few tokens to split them over \"tp\", as \"ep_tp\" wants", field)
          .legal("without \"ep_tp\", or without run.generate")
          .fix("leave run.generate out, or put experts on the axis \"ep\" alone");
  }

  void preset_axes(const Preset& preset, std::size_t index) {
    std::set<std::string> missing;
    for (const PresetRule& rule : preset.rules) {
      if (!has_axis(rule.axis))
        missing.emplace(rule.axis);
      else if (preset.any_axis)
        return;
    }
    std::string axes;
    for (const std::string& axis : missing) axes += (axes.empty() ? "" : " or ") + in_quotes(axis);
    if (preset.any_axis && !missing.empty())
      return missing_axis(preset, index, axes, preset.rules.back().axis);
    for (const std::string& axis : missing) missing_axis(preset, index, in_quotes(axis), axis);
  }

  void missing_axis(const Preset& preset, std::size_t index, const std::string& axes, std::string_view axis) {
    report(Code::kBadLayout, "the preset " + in_quotes(preset.name) + " needs a mesh axis " + axes,
           fmt::format("parallel.presets[{}]", index))
        .legal(axis_names(job_.parallel.mesh))
        .fix("add mesh { name: " + in_quotes(axis) + " size: ... }, or remove the preset");
  }

  void rules() {
    for (std::size_t r = 0; r < job_.parallel.rules.size(); ++r) {
      std::set<std::string> dims, axes;
      const auto& rule = job_.parallel.rules[r];
      for (std::size_t d = 0; d < rule.dims.size(); ++d) {
        std::string field = fmt::format("parallel.rules[{}].dims[{}]", r, d);
        if (!dims.insert(rule.dims[d].dim).second)
          report(Code::kBadLayout, "the rule names dimension \"" + rule.dims[d].dim + "\" twice",
                 field + ".dim")
              .legal("each dimension once")
              .fix("list all its axes in one dims block");
        for (std::size_t a = 0; a < rule.dims[d].axes.size(); ++a)
          rule_axis(rule.dims[d].axes[a], axes, fmt::format("{}.axes[{}]", field, a));
      }
      if (rule.layout) rule_layout(rule, fmt::format("parallel.rules[{}].layout", r));
    }
  }

  void rule_layout(const ShardRule& rule, const std::string& field) {
    if (!rule.dims.empty())
      report(Code::kBadValue, "the rule has both \"dims\" and \"layout\"", field)
          .legal("one of them")
          .fix("keep layout to say how the whole tensor lies, dims to say something about some dimensions");
    const auto& mesh = job_.parallel.mesh;
    if (!rule.layout->mesh.empty() && rule.layout->mesh != mesh)
      report(Code::kBadLayout,
             "the layout is for " + format_mesh(rule.layout->mesh) + ", the job's mesh is " +
                 (mesh.empty() ? "empty" : format_mesh(mesh)),
             field)
          .legal(mesh.empty() ? "none" : format_mesh(mesh))
          .fix("change the layout's mesh or parallel.mesh, or leave out what stands before the dimensions");
    std::set<std::string> axes;
    for (const auto& dim : rule.layout->dims)
      for (const std::string& axis : dim) rule_axis(axis, axes, field);
  }

  void rule_axis(const std::string& axis, std::set<std::string>& seen, const std::string& field) {
    if (axis == job_.parallel.pipeline.axis && has_axis(axis)) {
      report(Code::kBadLayout,
             "the axis " + in_quotes(axis) + " has the pipeline's stages and splits no tensor", field)
          .legal("another axis")
          .fix("use another axis, or give the pipeline one of its own");
      return;
    }
    if (!has_axis(axis))
      report(Code::kBadLayout, "the mesh has no axis \"" + axis + "\"", field)
          .legal(axis_names(job_.parallel.mesh))
          .fix("use an axis of the mesh, or add mesh { name: " + in_quotes(axis) + " size: ... }");
    else if (!seen.insert(axis).second)
      report(Code::kBadLayout, "the rule uses axis \"" + axis + "\" twice", field)
          .legal("each axis once")
          .fix("split one dimension over it, not two");
  }

  void batch() {
    const TrainingSpec& t = job_.training;
    std::int64_t parts = data_parallel_size(job_.parallel);
    if (t.batch % (parts * t.micro_batches) == 0) return;
    if (t.batch % parts != 0) {
      report(Code::kBadValue,
             fmt::format("{} cannot be cut for {} devices along {}", of(t.batch, "batch"), parts,
                         data_parallel_axes(job_.parallel)),
             "training.batch")
          .legal(fmt::format("a multiple of {}", parts * t.micro_batches))
          .fix("change the batch, or give these axes together one of the sizes " + list(divisors(t.batch)));
      return;
    }
    report(
        Code::kBadValue,
        of(t.micro_batches, "micro_batches") + " cannot cut " + of(t.batch, "batch") +
            (parts == 1 ? std::string()
                        : fmt::format(" for {} devices along {}", parts, data_parallel_axes(job_.parallel))),
        "training.micro_batches")
        .legal(list(divisors(t.batch / parts)))
        .fix(fmt::format("choose a legal value, or make batch a multiple of {}", parts * t.micro_batches));
  }

  void schedule() {
    const TrainingSpec& t = job_.training;
    if (t.lr > 0 && t.min_lr > t.lr)
      report(Code::kBadValue, "\"min_lr\" is above \"lr\"", "training.min_lr")
          .legal("0 to lr")
          .fix("lower it, or leave it out for a tenth of lr");
    if (t.steps == 0) return;  // a job that is not run may leave it open
    if (t.warmup_steps > t.steps)
      report(Code::kBadValue, "the warm-up is longer than the training", "training.warmup_steps")
          .legal(fmt::format("0 to {}", t.steps))
          .fix("shorten it, or train longer");
    if (job_.run.trace_steps > 0 && job_.run.trace_first >= t.steps)
      report(Code::kBadValue, "the trace begins after the last step", "run.trace_first")
          .legal(fmt::format("0 to {}", t.steps - 1))
          .fix("trace an earlier step");
  }

  void recompute() {
    const auto& specs = job_.training.recompute;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const std::string field = fmt::format("training.recompute[{}].", i);
      if (specs[i].first_layer >= job_.model.layers)
        report(Code::kBadValue, fmt::format("the model has no layer {}", specs[i].first_layer),
               field + "first_layer")
            .legal(fmt::format("0 to {}", job_.model.layers - 1))
            .fix("name a layer of the model, or leave it out for the first one");
      else if (specs[i].last_layer >= job_.model.layers)
        report(Code::kBadValue, fmt::format("the model has no layer {}", specs[i].last_layer),
               field + "last_layer")
            .legal(fmt::format("0 to {}", job_.model.layers - 1))
            .fix("name a layer of the model, or leave it out for the last one");
      else if (specs[i].first_layer > specs[i].last_layer)
        report(Code::kBadValue, "\"first_layer\" lies behind \"last_layer\"", field + "first_layer")
            .legal(fmt::format("0 to {}", specs[i].last_layer))
            .fix("exchange them");
    }
  }

  bool has_axis(std::string_view name) const {
    const auto& mesh = job_.parallel.mesh;
    return std::any_of(mesh.begin(), mesh.end(), [&](const MeshAxis& a) { return a.name == name; });
  }

  const Job& job_;
  const JobSource& source_;
  std::vector<Error> errors_;
};

// The decimal number that is meant: 0.0003, not the quotient 0.00030000000000000003.
double decimal(double v) { return std::strtod(fmt::format("{:.15g}", v).c_str(), nullptr); }

// Fills in stages that the job does not list: `chunks` on each device, with layers spread evenly.
void fill_pipeline(Job& job, const JobSource& source) {
  PipelineSpec& p = job.parallel.pipeline;
  if (p.axis.empty()) return;
  const bool given = source.has("parallel.pipeline.chunks");
  std::map<std::int32_t, std::int32_t> of_device;
  for (const PipelineSpec::Stage& s : p.stages) ++of_device[s.device];
  if (!given && !p.stages.empty())
    for (const auto& [device, count] : of_device) p.chunks = std::max(p.chunks, count);
  if (!given && p.stages.empty() && p.schedule == "interleaved") p.chunks = 2;
  if (!p.stages.empty()) return;
  for (const MeshAxis& axis : job.parallel.mesh) {
    if (axis.name != p.axis) continue;
    // A pipeline with more stages than layers is refused later; this bound keeps the list short until then.
    p.stages = even_stages(axis.size, std::min(p.chunks, 1 + job.model.layers / axis.size), job.model.layers);
  }
}

// Fills in the ends of ranges: the last layer.
void fill_layers(std::vector<LayerRange>& ranges, std::int32_t layers, const char* field,
                 const JobSource& source) {
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (!source.has(fmt::format("{}[{}].last_layer", field, i))) ranges[i].last_layer = layers - 1;
}

}  // namespace

std::vector<Error> fill_defaults(Job& job, const JobSource& source) {
  std::vector<Error> errors;
  if (!source.has("name")) job.name = name_from(source.path);
  ModelSpec& m = job.model;
  if (!source.has("model.kv_heads")) m.kv_heads = m.heads;
  const ModelFamily& family = family_of(m);
  fill_layers(m.window_layers, m.layers, "model.window_layers", source);
  fill_layers(m.experts.dense, m.layers, "model.experts.dense", source);
  if (m.experts.count > 0 && !source.has("model.experts.normalize")) m.experts.normalize = family.normalizes;
  if (m.experts.count > 0 && !source.has("model.experts.group_best"))
    m.experts.group_best = family.group_best;
  if (source.has("model.rope_scaling") && !source.has("model.rope_scaling.rope_type"))
    m.rope_scaling.type = m.rope_scaling.original_sequence > 0 ? kLlama3Rope : kLinearRope;
  if (!source.has("model.tied_head")) m.tied_head = family.learned_positions;
  if (!source.has("model.ffn") && family.experts == Experts::kMixtral) {
    m.ffn = m.experts.ffn;
  } else if (!source.has("model.ffn") && family.learned_positions) {
    m.ffn = static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{4} * m.hidden, 1 << 22));
  } else if (!source.has("model.ffn")) {
    std::int64_t wide = (std::int64_t{8} * m.hidden + 2) / 3;
    m.ffn = static_cast<std::int32_t>((wide + 63) / 64 * 64);
  }
  if (!source.has("model.head_dim") && m.latent.kv_rank > 0) {
    m.head_dim = m.latent.nope_dim + m.latent.rope_dim;
  } else if (!source.has("model.head_dim")) {
    m.head_dim = m.hidden / m.heads;
    if (m.hidden % m.heads != 0)
      errors.push_back(
          Error(Code::kBadValue, of(m.heads, "heads") + " does not divide " + of(m.hidden, "hidden"))
              .at(source.place("model.heads"))
              .legal(list(divisors(m.hidden)))
              .fix("choose a legal value, or give head_dim yourself"));
  }
  if (!source.has("training.min_lr")) job.training.min_lr = decimal(job.training.lr / 10);
  for (std::size_t i = 0; i < job.training.recompute.size(); ++i)
    if (!source.has(fmt::format("training.recompute[{}].last_layer", i)))
      job.training.recompute[i].last_layer = m.layers - 1;
  fill_encoders(job, source);
  fill_pipeline(job, source);
  for (std::size_t i = 0; i < job.parallel.rules.size(); ++i) {
    std::string field = fmt::format("parallel.rules[{}]", i);
    if (!source.has(field + ".origin")) job.parallel.rules[i].origin = source.place(field);
  }
  return errors;
}

std::vector<Error> check_job(const Job& job, const JobSource& source, JobUse use) {
  return Checker(job, source).run(use);
}

std::int64_t data_parallel_size(const ParallelSpec& parallel) {
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes_of_the_batch(parallel)) size *= axis.size;
  return size;
}

}  // namespace hyperrun
