#include "runtime/frameworks/job_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/frameworks/table.h"
#include "runtime/ir/families.h"

namespace hyperrun::frameworks {
namespace {

// Comments stand in one column where lines are short.
constexpr std::size_t kCommentColumn = 34;

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  if (text.size() > 160) {
    text.resize(157);
    text += "...";
  }
  return text;
}

class JobText {
 public:
  JobText(const Reading& reading, bool flags) : reading_(reading), job_(reading.job), flags_(flags) {}

  std::string all(const std::string& heading) {
    text_ = heading;
    supernode();
    model();
    parallel();
    memory();
    training();
    if (job_.run.seed != RunSpec{}.seed) {
      open("run");
      field("seed", std::to_string(job_.run.seed));
      close();
    }
    return std::move(text_);
  }

 private:
  void open(const std::string& name) {
    line(name + " {", "");
    path_.push_back(name);
  }
  void close() {
    path_.pop_back();
    line("}", "");
  }
  void line(std::string text, const std::string& comment) {
    text.insert(0, 2 * path_.size(), ' ');
    if (!comment.empty()) {
      if (text.size() < kCommentColumn) text.resize(kCommentColumn, ' ');
      text += "  # " + one_line(comment);
    }
    text_ += text;
    text_ += '\n';
  }
  void field(const std::string& name, const std::string& value) {
    std::string full;
    for (const std::string& block : path_) full += block + '.';
    line(name + ": " + value, origin(full + name));
  }
  template <class T>
  void unless(const T& usual, const T& value, const std::string& name, const std::string& text) {
    if (value != usual) field(name, text);
  }
  void number(const char* name, std::int32_t value, std::int32_t usual) {
    unless(usual, value, name, std::to_string(value));
  }
  void number(const char* name, double value, double usual) {
    unless(usual, value, name, number_text(value));
  }

  // The setting that became this field, or what was assumed for it.
  std::string origin(const std::string& field) const {
    for (const bool exactly : {true, false})
      for (const Finding& f : reading_.findings)
        if (f.verdict == Verdict::kTaken &&
            (f.meaning == field || (!exactly && f.meaning.starts_with(field + ' '))))
          return setting(f.setting);
    for (const Assumption& a : reading_.assumptions)
      if (a.field == field) return a.text;
    return "";
  }
  // The place has the file's name without its folders, which are of the importing machine.
  std::string setting(const Setting& s) const {
    const std::string value = s.has_value ? (flags_ ? " " : " = ") + s.value : "";
    return fmt::format("{}{}{}, {}", flags_ && !s.name.starts_with("launcher") ? "--" : "", s.name, value,
                       s.place.substr(s.place.rfind('/') + 1));
  }

  void supernode() {
    open("supernode");
    std::string devices = origin("supernode.devices");
    if (reading_.options.devices) devices = "--devices";
    line(fmt::format("devices: {}", job_.supernode.devices), devices);
    field("profile", in_quotes(job_.supernode.profile));
    unless(std::string(), job_.supernode.software, "software", in_quotes(job_.supernode.software));
    close();
  }

  void model() {
    const ModelSpec& m = job_.model;
    const bool latent = m.latent.kv_rank > 0, gpt2 = m.name == "gpt2";
    open("model");
    field("name", in_quotes(m.name));
    field("layers", std::to_string(m.layers));
    field("hidden", std::to_string(m.hidden));
    field("heads", std::to_string(m.heads));
    if (!latent && !gpt2) number("kv_heads", m.kv_heads, m.heads);
    if (!latent && !gpt2 && m.head_dim != 0 && m.head_dim * m.heads != m.hidden)
      field("head_dim", std::to_string(m.head_dim));
    if (m.name != "mixtral") field("ffn", std::to_string(m.ffn));
    field("vocab", std::to_string(m.vocab));
    field("sequence", std::to_string(m.sequence));
    if (!gpt2) number("rope_theta", m.rope_theta, ModelSpec{}.rope_theta);
    number("norm_eps", m.norm_eps, ModelSpec{}.norm_eps);
    if (m.tied_head != gpt2) field("tied_head", m.tied_head ? "true" : "false");
    if (gpt2) number("positions", m.positions, 0);
    if (m.attention_bias) field("attention_bias", "true");
    if (m.mlp_bias) field("mlp_bias", "true");
    number("window", m.window, 0);
    layer_ranges("window_layers", m.window_layers);
    number("rotary_dim", m.rotary_dim, 0);
    experts();
    if (latent) latent_attention();
    if (m.mtp.layers > 0) {
      open("mtp");
      field("layers", std::to_string(m.mtp.layers));
      number("loss_factor", m.mtp.loss_factor, MtpSpec{}.loss_factor);
      close();
    }
    rope_scaling();
    close();
  }

  void layer_ranges(const char* name, const std::vector<LayerRange>& list) {
    for (const LayerRange& r : list)
      line(fmt::format("{} {{ first_layer: {} last_layer: {} every: {} }}", name, r.first_layer, r.last_layer,
                       r.every),
           "");
  }

  void experts() {
    const ExpertsSpec &e = job_.model.experts, usual;
    if (e.count == 0) return;
    open("experts");
    field("count", std::to_string(e.count));
    field("choices", std::to_string(e.choices));
    field("ffn", std::to_string(e.ffn));
    number("shared", e.shared, usual.shared);
    number("dense_layers", e.dense_layers, usual.dense_layers);
    unless(usual.scoring, e.scoring, "scoring", in_quotes(e.scoring));
    const ModelFamily& family = family_of(job_.model);
    if (e.normalize != family.normalizes) field("normalize", e.normalize ? "true" : "false");
    number("group_best", e.group_best, family.group_best);
    layer_ranges("dense", e.dense);
    number("scale", e.scale, usual.scale);
    number("aux_loss", e.aux_loss, usual.aux_loss);
    number("bias_rate", e.bias_rate, usual.bias_rate);
    number("groups", e.groups, usual.groups);
    number("group_choices", e.group_choices, usual.group_choices);
    if (e.capacity.factor > 0) {
      open("capacity");
      field("factor", number_text(e.capacity.factor));
      if (!e.capacity.drop) field("drop", "false");
      close();
    }
    close();
  }

  void latent_attention() {
    const LatentSpec& l = job_.model.latent;
    open("latent");
    number("q_rank", l.q_rank, 0);
    field("kv_rank", std::to_string(l.kv_rank));
    field("nope_dim", std::to_string(l.nope_dim));
    field("rope_dim", std::to_string(l.rope_dim));
    field("value_dim", std::to_string(l.value_dim));
    close();
  }

  void number_list(const char* name, const std::vector<double>& list) {
    std::string text;
    for (const double v : list) text += (text.empty() ? "" : ", ") + number_text(v);
    if (!list.empty()) line(fmt::format("{}: [{}]", name, text), "");
  }

  void rope_scaling() {
    const RopeScaling &s = job_.model.rope_scaling, usual;
    if (s == usual) return;
    open("rope_scaling");
    if (s.type != kLlama3Rope || s.original_sequence == 0) field("rope_type", in_quotes(s.type));
    field("factor", number_text(s.factor));
    number("attention_factor", s.attention_factor, usual.attention_factor);
    number("beta_fast", s.beta_fast, usual.beta_fast);
    number("beta_slow", s.beta_slow, usual.beta_slow);
    number("mscale", s.mscale, usual.mscale);
    number("mscale_all_dim", s.mscale_all_dim, usual.mscale_all_dim);
    if (!s.truncate) field("truncate", "false");
    number_list("short_factor", s.short_factor), number_list("long_factor", s.long_factor);
    number("low_freq_factor", s.low_freq_factor, usual.low_freq_factor);
    number("high_freq_factor", s.high_freq_factor, usual.high_freq_factor);
    number("original_sequence", s.original_sequence, usual.original_sequence);
    close();
  }

  void parallel() {
    const ParallelSpec& p = job_.parallel;
    open("parallel");
    for (const MeshAxis& axis : p.mesh)
      line(fmt::format("mesh {{ name: {} size: {} }}", in_quotes(axis.name), axis.size),
           axis_origin(axis.name));
    if (!p.presets.empty()) {
      std::string list;
      for (const std::string& preset : p.presets) list += (list.empty() ? "" : ", ") + in_quotes(preset);
      line("presets: [" + list + "]", origin("parallel.presets"));
    }
    for (const ShardRule& rule : p.rules) {
      std::string axes;
      for (const std::string& axis : rule.dims.front().axes)
        axes += (axes.empty() ? "" : ", ") + in_quotes(axis);
      line(fmt::format("rules {{ tensor: {} dims {{ dim: {} axes: [{}] }} }}", in_quotes(rule.tensor),
                       in_quotes(rule.dims.front().dim), axes),
           "");
    }
    if (!p.pipeline.axis.empty()) pipeline();
    if (p.gradients != kFloat32) field("gradients", in_quotes(p.gradients));
    if (p.paired_passes) field("paired_passes", "true");
    close();
  }
  std::string axis_origin(const std::string& axis) const {
    if (axis == "dp") {
      const std::string own = origin("parallel.mesh dp");
      return own.empty() ? "the devices that are left" : own;
    }
    for (const Finding& f : reading_.findings)
      if (f.verdict == Verdict::kTaken && f.meaning.starts_with("parallel.mesh ") &&
          f.meaning.find(axis, 14) != std::string::npos)
        return setting(f.setting);
    return "";
  }
  void pipeline() {
    const PipelineSpec& p = job_.parallel.pipeline;
    open("pipeline");
    line("axis: \"pp\"", "");
    field("schedule", in_quotes(p.schedule));
    if (p.stages.empty() && p.chunks > 1) field("chunks", std::to_string(p.chunks));
    std::string comment = origin("parallel.pipeline.stages");
    for (const PipelineSpec::Stage& s : p.stages) {
      line(fmt::format("stages {{ device: {} layers: {} }}", s.device, s.layers), comment);
      comment.clear();
    }
    close();
  }

  void memory() {
    const MemorySpec& m = job_.memory;
    if (m.policy == "none") return;
    open("memory");
    line("policy: " + in_quotes(m.policy), origin("memory.tensors"));
    if (m.tier != "pool") line("tier: " + in_quotes(m.tier), "");
    std::string list;
    for (const std::string& t : m.tensors) list += (list.empty() ? "" : ", ") + in_quotes(t);
    if (!list.empty()) line("tensors: [" + list + "]", "");
    close();
  }

  void training() {
    const TrainingSpec &t = job_.training, usual;
    open("training");
    number("steps", t.steps, 0);
    field("batch", std::to_string(t.batch));
    field("micro_batches", std::to_string(t.micro_batches));
    number("lr", t.lr, 0.0);
    if (t.lr > 0) field("min_lr", number_text(t.min_lr));
    number("warmup_steps", t.warmup_steps, 0);
    number("beta1", t.beta1, usual.beta1);
    number("beta2", t.beta2, usual.beta2);
    number("eps", t.eps, usual.eps);
    number("weight_decay", t.weight_decay, usual.weight_decay);
    number("clip_norm", t.clip_norm, usual.clip_norm);
    number("init_std", t.init_std, usual.init_std);
    field("precision", in_quotes(t.precision));
    std::string comment = origin("training.recompute");
    for (const RecomputeSpec& r : t.recompute) {
      const bool all = r.first_layer == 0 && r.last_layer == job_.model.layers - 1;
      const std::string range =
          all ? "" : fmt::format(" first_layer: {} last_layer: {}", r.first_layer, r.last_layer);
      line(fmt::format("recompute {{ policy: {}{} }}", in_quotes(r.policy), range), comment);
      comment.clear();
    }
    close();
  }

  const Reading& reading_;
  const Job& job_;
  bool flags_;
  std::string text_;
  std::vector<std::string> path_;
};

}  // namespace

std::string job_text(const Reading& reading, const std::string& heading, bool flags) {
  return JobText(reading, flags).all(heading);
}

}  // namespace hyperrun::frameworks
