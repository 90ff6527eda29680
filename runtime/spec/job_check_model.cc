#include "runtime/spec/job_check_model.h"

#include <fmt/core.h>

#include <string>

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
    gpt2();
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
    if (m.head_dim % 2 != 0 && m.latent.kv_rank == 0 && m.name != "gpt2")
      report(Code::kBadValue, of(m.head_dim, "head_dim") + " is odd, and RoPE turns pairs", "model.head_dim")
          .legal("an even number")
          .fix(source_.has("model.head_dim") ? "choose an even number"
                                             : "head_dim is hidden / heads: change one, or give head_dim");
  }

  // Checks fields that only GPT-2 has, or that it has not.
  void gpt2() {
    const ModelSpec& m = job_.model;
    if (m.name != "gpt2") {
      if (m.positions > 0)
        report(Code::kBadValue, in_quotes(m.name) + " has no learned positions", "model.positions")
            .legal("\"positions\" with name: \"gpt2\"")
            .fix("remove it, or change the name");
      return;
    }
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
    const RopeScaling& r = job_.model.rope_scaling;
    if (r.high_freq_factor <= r.low_freq_factor)
      report(Code::kBadValue, "high_freq_factor is not above low_freq_factor", "model.rope_scaling")
          .legal("low_freq_factor below high_freq_factor; 1 and 4 where they are left out")
          .fix("leave both out, or raise high_freq_factor");
  }

  void latent() {
    const ModelSpec& m = job_.model;
    const bool wanted = m.name == "deepseek_v3", given = m.latent.kv_rank > 0;
    if (wanted && !given)
      report(Code::kMissingField,
             in_quotes(m.name) + " has latent attention, and \"model\" has no \"latent\"", "model.name")
          .legal("latent { kv_rank: ... nope_dim: ... rope_dim: ... value_dim: ... }")
          .fix("add latent { ... }, or choose another model");
    if (!wanted && given)
      report(Code::kBadValue, in_quotes(m.name) + " has no latent attention", "model.latent")
          .legal("\"latent\" with name: \"deepseek_v3\"")
          .fix("remove it, or change the name");
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

  void mixtral(const ExpertsSpec& e) {
    const ExpertsSpec plain;
    if (e.shared != plain.shared || e.dense_layers != plain.dense_layers || e.scoring != plain.scoring ||
        e.normalize != plain.normalize || e.scale != plain.scale || e.groups != plain.groups ||
        e.bias_rate != plain.bias_rate)
      report(Code::kBadValue,
             "\"mixtral\" has experts in all layers, none shared, of normalized softmax scores",
             "model.experts")
          .legal("count, choices, ffn, aux_loss and capacity")
          .fix("remove the other fields, or choose \"llama\"");
    if (job_.model.ffn != e.ffn)
      report(Code::kBadValue, "no layer of \"mixtral\" has a SwiGLU but the experts'", "model.ffn")
          .legal(std::to_string(e.ffn))
          .fix("leave ffn out");
  }

  void capacity(const CapacitySpec& c) {
    if (c.group == 0 || job_.model.sequence % c.group == 0) return;
    report(Code::kBadValue,
           fmt::format("groups of {} tokens do not divide {}", c.group, of(job_.model.sequence, "sequence")),
           "model.experts.capacity.group")
        .legal(list(divisors(job_.model.sequence)))
        .fix("choose a legal value, or leave it out for the whole sequence");
  }

  void experts() {
    const ExpertsSpec& e = job_.model.experts;
    if (e.count == 0 && job_.model.name == "mixtral")
      report(Code::kMissingField,
             in_quotes(job_.model.name) + " has experts, and \"model\" has no \"experts\"", "model.name")
          .legal("experts { count: ... ffn: ... }")
          .fix("add experts { ... }, or choose another model");
    if (e.count == 0) return;
    if (job_.model.name == "mixtral") mixtral(e);
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
};

}  // namespace

std::string of(std::int64_t v, const char* field) { return fmt::format("{} {}", field, v); }

void check_model(const Job& job, const JobSource& source, std::vector<Error>& errors) {
  ModelChecker(job, source, errors).run();
}

}  // namespace hyperrun
