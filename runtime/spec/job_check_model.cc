#include "runtime/spec/job_check_model.h"

#include <fmt/core.h>

#include <string>

#include "runtime/ir/families.h"
#include "runtime/spec/job_legal.h"
#include "runtime/spec/job_mesh.h"

namespace hyperrun {
namespace {

class ModelChecker {
 public:
  ModelChecker(const Job& job, const JobSource& source, std::vector<Error>& errors)
      : job_(job), source_(source), errors_(errors) {}

  void run() {
    heads();
    learned_positions();
    biases();
    window();
    rope();
    latent();
    experts();
    policy();
  }

 private:
  Error& report(Code code, const std::string& cause, std::string_view field) {
    return errors_.emplace_back(Error(code, cause).at(source_.place(field)));
  }

  void heads() {
    const ModelSpec& m = job_.model;
    if (m.heads % m.kv_heads != 0)
      report(Code::kBadValue, of(m.kv_heads, "kv_heads") + " does not divide " + of(m.heads, "heads"),
             "model.kv_heads")
          .legal(list(divisors(m.heads)))
          .fix("choose a legal value, or another number of heads");
    if (m.head_dim % 2 != 0 && m.latent.kv_rank == 0 && !family_.learned_positions && m.rotary_dim == 0)
      report(Code::kBadValue, of(m.head_dim, "head_dim") + " is odd, and RoPE turns pairs", "model.head_dim")
          .legal("an even number")
          .fix(source_.has("model.head_dim") ? "choose an even number"
                                             : "head_dim is hidden / heads: change one, or give head_dim");
  }

  // The names of families for which `has` is true: "llama" or "qwen3".
  template <class Has>
  static std::string names_of(Has has) {
    std::string names;
    for (const ModelFamily& f : families())
      if (has(f)) names += (names.empty() ? "" : " or ") + in_quotes(f.name);
    return names;
  }

  // Refuses a field that the family does not have.
  template <class Has>
  void needs_family(bool given, const char* field, const std::string& what, Has has) {
    if (!given || has(family_)) return;
    report(Code::kBadValue, in_quotes(job_.model.name) + " has no " + what, "model." + std::string(field))
        .legal(fmt::format("{} with name: {}", in_quotes(field), names_of(has)))
        .fix("remove it, or change the name");
  }

  void biases() {
    const ModelSpec& m = job_.model;
    needs_family(m.attention_bias, "attention_bias",
                 family_.qkv_bias ? "bias on the output of attention; those on q, k and v it always has"
                                  : "biases in attention",
                 [](const ModelFamily& f) { return f.may_have_attention_bias; });
    needs_family(m.mlp_bias, "mlp_bias", "biases in its SwiGLU",
                 [](const ModelFamily& f) { return f.may_have_mlp_bias; });
  }

  void ranges(const std::vector<LayerRange>& list, const std::string& field) {
    const std::int32_t last = job_.model.layers - 1;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const LayerRange& r = list[i];
      if (r.first_layer <= r.last_layer && r.last_layer <= last) continue;
      report(Code::kBadValue, fmt::format("there are no layers {} to {}", r.first_layer, r.last_layer),
             fmt::format("{}[{}]", field, i))
          .legal(fmt::format("first_layer up to last_layer, both of 0 to {}", last))
          .fix("name layers of the model");
    }
  }

  void window() {
    const ModelSpec& m = job_.model;
    needs_family(m.window > 0, "window", "sliding window",
                 [](const ModelFamily& f) { return f.windows != Windows::kNone; });
    ranges(m.window_layers, "model.window_layers");
    if (m.window == 0 && !m.window_layers.empty())
      report(Code::kMissingField, "\"window_layers\" without a \"window\"", "model.window_layers")
          .legal("a window of 1 to 16777216 positions")
          .fix("add window: ..., or remove window_layers");
  }

  // Checks fields that only GPT-2 has, or that it has not.
  void learned_positions() {
    const ModelSpec& m = job_.model;
    needs_family(m.positions > 0, "positions", "learned positions",
                 [](const ModelFamily& f) { return f.learned_positions; });
    if (!family_.learned_positions) return;
    const auto refuse = [&](bool wrong, const std::string& cause, const char* field,
                            const std::string& legal) {
      if (wrong)
        report(Code::kBadValue, cause, field)
            .legal(legal)
            .fix("leave " + std::string(field).substr(6) + " out, or choose another model");
    };
    refuse(m.positions > 0 && m.positions < m.sequence,
           of(m.positions, "positions") + " are fewer than " + of(m.sequence, "sequence"), "model.positions",
           fmt::format("0, or {} to 16777216", m.sequence));
    refuse(m.kv_heads != m.heads, "in \"gpt2\" each head has keys and values of its own", "model.kv_heads",
           std::to_string(m.heads));
    refuse(source_.has("model.head_dim") && m.head_dim * m.heads != m.hidden,
           of(m.head_dim, "head_dim") + " x " + of(m.heads, "heads") + " is not " + of(m.hidden, "hidden") +
               ", as it is in \"gpt2\"",
           "model.head_dim", "hidden / heads");
    refuse(m.rope_theta != ModelSpec{}.rope_theta, "\"gpt2\" has learned positions, none that turn",
           "model.rope_theta", "10000");
    refuse(m.rope_scaling != RopeScaling{}, "\"gpt2\" has learned positions, none that turn",
           "model.rope_scaling", "\"rope_scaling\" with another name");
    refuse(m.experts.count > 0, "\"gpt2\" has no experts", "model.experts", "\"experts\" with another name");
    refuse(m.mtp.layers > 0, "\"gpt2\" predicts one token", "model.mtp", "\"mtp\" with another name");
  }

  // A policy's loss is about the tokens of its completions, each predicted from those before it.
  void policy() {
    if (job_.training.policy.trains() && job_.model.mtp.layers > 0)
      report(Code::kBadValue, "a policy is trained to predict one token, not further ones", "model.mtp")
          .legal("\"mtp\" without training.policy")
          .fix("remove it, or training.policy");
  }

  void rope() {
    const ModelSpec& m = job_.model;
    needs_family(m.rotary_dim > 0, "rotary_dim", "part of a head that does not turn",
                 [](const ModelFamily& f) { return f.turns_a_part; });
    if (m.rotary_dim % 2 != 0 || m.rotary_dim > m.head_dim)
      report(Code::kBadValue, of(m.rotary_dim, "rotary_dim") + " of " + of(m.head_dim, "head_dim"),
             "model.rotary_dim")
          .legal(fmt::format("even numbers up to {}", m.head_dim))
          .fix("choose one, or leave it out for all elements");
    const RopeScaling& r = m.rope_scaling;
    if (r == RopeScaling{}) return;
    if (r.high_freq_factor <= r.low_freq_factor)
      report(Code::kBadValue, "high_freq_factor is not above low_freq_factor", "model.rope_scaling")
          .legal("low_freq_factor below high_freq_factor; 1 and 4 where they are left out")
          .fix("leave both out, or raise high_freq_factor");
    if (r.beta_fast <= r.beta_slow)
      report(Code::kBadValue, "beta_fast is not above beta_slow", "model.rope_scaling")
          .legal("beta_slow below beta_fast; 1 and 32 where they are left out")
          .fix("leave both out, or raise beta_fast");
    if (r.type != kLinearRope && r.original_sequence == 0)
      report(Code::kMissingField, in_quotes(r.type) + " has to know on which lengths the model was trained",
             "model.rope_scaling")
          .legal("original_sequence: 1 to 16777216")
          .fix("add original_sequence: ...");
    rope_factors(r);
  }

  void rope_factors(const RopeScaling& r) {
    const ModelSpec& m = job_.model;
    const std::int32_t width = m.latent.kv_rank > 0 ? m.latent.rope_dim
                               : m.rotary_dim > 0   ? m.rotary_dim
                                                    : m.head_dim;
    const auto pairs = static_cast<std::size_t>(r.type == kLongRope ? width / 2 : 0);
    const auto check = [&](const std::vector<double>& list, const char* field) {
      if (list.size() == pairs) return;
      report(Code::kBadValue,
             fmt::format("{} numbers in {}, and {} has {}", list.size(), in_quotes(field), in_quotes(r.type),
                         pairs == 0 ? "none" : fmt::format("one for each of {} pairs", pairs)),
             fmt::format("model.rope_scaling.{}", field))
          .legal(fmt::format("{} numbers", pairs))
          .fix("give as many, or choose another type");
    };
    check(r.short_factor, "short_factor"), check(r.long_factor, "long_factor");
  }

  void latent() {
    const ModelSpec& m = job_.model;
    const bool wanted = family_.latent, given = m.latent.kv_rank > 0;
    if (wanted && !given)
      report(Code::kMissingField,
             in_quotes(m.name) + " has latent attention, and \"model\" has no \"latent\"", "model.name")
          .legal("latent { kv_rank: ... nope_dim: ... rope_dim: ... value_dim: ... }")
          .fix("add latent { ... }, or choose another model");
    needs_family(given, "latent", "latent attention", [](const ModelFamily& f) { return f.latent; });
    if (!wanted || !given) return;
    if (m.kv_heads != m.heads)
      report(Code::kBadValue, "in latent attention each head has keys and values of its own",
             "model.kv_heads")
          .legal(std::to_string(m.heads))
          .fix("leave kv_heads out");
    if (m.latent.rope_dim % 2 != 0)
      report(Code::kBadValue, of(m.latent.rope_dim, "rope_dim") + " is odd, and RoPE turns pairs",
             "model.latent.rope_dim")
          .legal("an even number")
          .fix("choose an even number");
    if (m.head_dim != m.latent.nope_dim + m.latent.rope_dim)
      report(Code::kBadValue, of(m.head_dim, "head_dim") + " is not nope_dim + rope_dim", "model.head_dim")
          .legal(std::to_string(m.latent.nope_dim + m.latent.rope_dim))
          .fix("leave head_dim out");
  }

  void expert_groups(const ExpertsSpec& e) {
    if (e.count % e.groups != 0)
      report(Code::kBadValue, of(e.groups, "groups") + " do not divide " + of(e.count, "count"),
             "model.experts.groups")
          .legal(list(divisors(e.count)))
          .fix("choose a legal value, or another number of experts");
    else if (e.group_choices > e.groups)
      report(Code::kBadValue, fmt::format("{} of {} groups", of(e.group_choices, "group_choices"), e.groups),
             "model.experts.group_choices")
          .legal(fmt::format("1 to {}", e.groups))
          .fix("choose fewer, or have more groups");
    else if (e.groups > 1 && e.choices > e.group_choices * (e.count / e.groups))
      report(Code::kBadValue,
             fmt::format("{} of the {} experts in the groups of a token", of(e.choices, "choices"),
                         e.group_choices * (e.count / e.groups)),
             "model.experts.groups")
          .legal(fmt::format("group_choices x count / groups of {} or more", e.choices))
          .fix("raise group_choices, or have fewer groups");
  }

  // Refuses fields whose values are settled by the family.
  void experts_of_family(const ExpertsSpec& e) {
    const ExpertsSpec plain;
    const auto refuse = [&](bool differs, const std::string& cause, const std::string& legal) {
      if (differs)
        report(Code::kBadValue, in_quotes(job_.model.name) + " has " + cause, "model.experts")
            .legal(legal)
            .fix("remove the other fields, or choose \"llama\"");
    };
    const bool plain_scores = e.scoring == plain.scoring && e.bias_rate == plain.bias_rate;
    const bool ungrouped = e.scale == plain.scale && e.groups == plain.groups && e.shared == plain.shared;
    if (family_.experts == Experts::kMixtral)
      refuse(!plain_scores || !ungrouped || e.dense_layers > 0 || !e.dense.empty() || !e.normalize,
             "experts in all layers, none shared, of normalized softmax scores",
             "count, choices, ffn, aux_loss and capacity");
    if (family_.experts == Experts::kQwen)
      refuse(!plain_scores || !ungrouped, "experts of softmax scores, none shared and in no groups",
             "count, choices, ffn, normalize, dense_layers, dense, aux_loss and capacity");
    if (family_.experts != Experts::kDeepseek) return;
    refuse(!e.dense.empty(), "experts in all layers behind the first ones", "dense_layers in place of dense");
    if (!family_.normalizes)
      refuse(
          !plain_scores || e.normalize, "experts of softmax scores that are not normalized",
          "count, choices, ffn, shared, dense_layers, scale, groups, group_choices, aux_loss and capacity");
  }

  void capacity(const CapacitySpec& c) {
    if (!c.drop && c.factor < 1)
      report(Code::kBadValue, "an even share of the rows has no room, and none may be dropped",
             "model.experts.capacity.factor")
          .legal("1 or more, with drop: false")
          .fix("raise it, or leave drop out");
    if (c.group == 0 || job_.model.sequence % c.group == 0) return;
    report(Code::kBadValue,
           fmt::format("groups of {} tokens do not divide {}", c.group, of(job_.model.sequence, "sequence")),
           "model.experts.capacity.group")
        .legal(list(divisors(job_.model.sequence)))
        .fix("choose a legal value, or leave it out for the whole sequence");
  }

  void experts() {
    const ExpertsSpec& e = job_.model.experts;
    const bool always = family_.experts == Experts::kMixtral || family_.experts == Experts::kQwen;
    if (e.count == 0 && always)
      report(Code::kMissingField,
             in_quotes(job_.model.name) + " has experts, and \"model\" has no \"experts\"", "model.name")
          .legal("experts { count: ... ffn: ... }")
          .fix("add experts { ... }, or choose another model");
    if (e.count == 0) return;
    experts_of_family(e);
    if (family_.experts == Experts::kMixtral && job_.model.ffn != e.ffn)
      report(Code::kBadValue, "no layer of \"mixtral\" has a SwiGLU but the experts'", "model.ffn")
          .legal(std::to_string(e.ffn))
          .fix("leave ffn out");
    ranges(e.dense, "model.experts.dense");
    expert_groups(e);
    capacity(e.capacity);
    if (e.choices > e.count)
      report(Code::kBadValue, fmt::format("{} of {} experts", of(e.choices, "choices"), e.count),
             source_.has("model.experts.choices") ? "model.experts.choices" : "model.experts.count")
          .legal(fmt::format("choices of 1 to {}", e.count))
          .fix("choose fewer, or have more experts");
    if (e.dense_layers >= job_.model.layers)
      report(Code::kBadValue, "no layer is left for the experts", "model.experts.dense_layers")
          .legal(fmt::format("0 to {}", job_.model.layers - 1))
          .fix("lower it, or leave experts out");
  }

  const Job& job_;
  const JobSource& source_;
  std::vector<Error>& errors_;
  const ModelFamily& family_ = family_of(job_.model);
};

}  // namespace

std::string of(std::int64_t v, const char* field) { return fmt::format("{} {}", field, v); }

void check_model(const Job& job, const JobSource& source, std::vector<Error>& errors) {
  ModelChecker(job, source, errors).run();
}

}  // namespace hyperrun
