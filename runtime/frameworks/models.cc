#include "runtime/frameworks/models.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/ir/families.h"

namespace hyperrun::frameworks {
namespace {

constexpr std::int32_t kAssumedVocab = 128256, kGpt2Vocab = 50257;

struct KnownTokenizer {
  std::string_view type;
  std::int32_t vocab;
};
constexpr std::array kTokenizers{
    KnownTokenizer{"GPT2BPETokenizer", kGpt2Vocab}, KnownTokenizer{"Llama2Tokenizer", 32000},
    KnownTokenizer{"Llama3Tokenizer", 128256},      KnownTokenizer{"DeepSeekV2Tokenizer", 102400},
    KnownTokenizer{"DeepSeekV3Tokenizer", 129280},  KnownTokenizer{"TikTokenizer", 131072}};

Error missing(const Reading& r, const std::string& flag, const std::string& what) {
  return Error(Code::kMissingField, fmt::format("{} is not there, and so is not known: {}", flag, what))
      .at(r.findings.empty() ? "" : r.findings.front().setting.place)
      .legal(fmt::format("--{} N, or --model with the model's config.json", flag))
      .fix("see that the script's variables have values: --set NAME=VALUE, --args gives its arguments");
}

// The layers before the first with experts in "([0]*3+[1]*58)"; nullopt: the layers follow another pattern.
class Pattern {
 public:
  explicit Pattern(std::string_view text) : s_(text) {}

  std::optional<std::vector<std::int32_t>> all() {
    std::vector<std::int32_t> list;
    if (!sum(list) || at() != '\0') return std::nullopt;
    return list;
  }

 private:
  static constexpr std::size_t kMost = 10'000;
  char at() {
    while (i_ < s_.size() && (s_[i_] == ' ' || s_[i_] == '"' || s_[i_] == '\'')) ++i_;
    return i_ < s_.size() ? s_[i_] : '\0';
  }
  bool take(char c) { return at() == c && (++i_, true); }
  std::optional<std::int32_t> number() {
    at();
    std::int64_t v = 0;
    const std::size_t begin = i_;
    while (i_ < s_.size() && s_[i_] >= '0' && s_[i_] <= '9' && v < 100'000) v = v * 10 + (s_[i_++] - '0');
    return i_ == begin ? std::nullopt : std::optional(static_cast<std::int32_t>(v));
  }
  bool sum(std::vector<std::int32_t>& out) {
    if (++depth_ > 50) return false;
    do {
      std::vector<std::int32_t> term;
      if (take('(')) {
        if (!sum(term) || !take(')')) return false;
      } else if (take('[')) {
        do {
          const auto v = number();
          if (!v) break;
          term.push_back(*v);
        } while (take(','));
        if (!take(']')) return false;
      } else {
        return false;
      }
      while (take('*')) {
        const auto times = number();
        if (!times || term.size() * static_cast<std::size_t>(*times) > kMost) return false;
        std::vector<std::int32_t> once = std::move(term);
        term.clear();
        for (std::int32_t n = 0; n < *times; ++n) term.insert(term.end(), once.begin(), once.end());
      }
      out.insert(out.end(), term.begin(), term.end());
      if (out.size() > kMost) return false;
    } while (take('+'));
    --depth_;
    return true;
  }

  std::string_view s_;
  std::size_t i_ = 0;
  int depth_ = 0;
};

// The window of Megatron-LM's "127,0": a token sees so many earlier positions. nullopt: it sees all of them.
std::optional<std::int32_t> earlier_positions(Reading& r) {
  const Launch& l = r.launch;
  if (!l.window_pair) return l.window;
  std::string text = *l.window_pair;
  for (char& c : text)
    if (c == ',' || c == '(' || c == ')' || c == '[' || c == ']' || c == '\'' || c == '"') c = ' ';
  std::istringstream in(text);
  std::int32_t before = -1, behind = 0;
  if (!(in >> before) || before > (1 << 24)) {
    r.give_up("window-size", "a window that is no pair of numbers");
    return std::nullopt;
  }
  if (in >> behind; behind > 0)
    r.give_up("window-size", "a window of later positions: a token sees itself and earlier ones here");
  return before < 0 || behind > 0 ? std::nullopt : std::optional(before);
}

// A number N: the last of each N layers has no window. Else a list with a 1 for each layer that has it.
void take_window_layers(Reading& r, ModelSpec& m) {
  if (!r.launch.window_pattern) return;
  const std::string& text = *r.launch.window_pattern;
  auto pattern = Pattern(text).all();
  if (!pattern && text.size() < 5 && text.find_first_not_of("0123456789") == std::string::npos &&
      text != "0") {
    pattern.emplace();
    for (std::int32_t i = 1; i <= m.layers; ++i) pattern->push_back(i % std::stoi(text) != 0 ? 1 : 0);
  }
  if (!pattern || static_cast<std::int32_t>(pattern->size()) != m.layers)
    return r.give_up("window-attn-skip-freq",
                     fmt::format("a pattern that does not have the {} layers", m.layers));
  for (std::int32_t first = 0, last; first < m.layers; first = last + 1) {
    last = first;
    if ((*pattern)[static_cast<std::size_t>(first)] == 0) continue;
    while (last + 1 < m.layers && (*pattern)[static_cast<std::size_t>(last) + 1] != 0) ++last;
    m.window_layers.push_back({first, last, 1});
  }
  if (m.window_layers.empty()) m.window = 0;
}

// Whether flags give a window that is shorter than a sequence.
bool has_window(Reading& r, const ModelSpec& m) {
  const auto earlier = earlier_positions(r);
  return earlier && *earlier + 1 < m.sequence;
}

void take_window(Reading& r, ModelSpec& m) {
  const auto earlier = earlier_positions(r);
  if (!earlier) return r.set_aside("window-attn-skip-freq", "without window-size");
  const bool fits = has_window(r, m), has = family_of(m).windows != Windows::kNone;
  for (const char* name : {"window-size", "sliding-window", "window-attn-skip-freq"}) {
    if (!fits) r.set_aside(name, "a window that no sequence fills");
    if (fits && !has) r.give_up(name, "attention within a window: " + m.name + " has none");
  }
  if (!fits || !has) return;
  m.window = *earlier + 1;
  m.window_layers.clear();
  take_window_layers(r, m);
}

// A number N: one of N layers has experts, the first of each N.
std::optional<std::vector<std::int32_t>> every(const std::string& text, std::int32_t layers) {
  if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const int n = std::max(1, std::stoi(text));
  std::vector<std::int32_t> list;
  for (std::int32_t i = 0; i < layers; ++i) list.push_back(i % n == 0 ? 1 : 0);
  return list;
}

void take_dense_layers(Reading& r, ModelSpec& m) {
  if (r.launch.dense_layers) m.experts.dense_layers = std::max(0, *r.launch.dense_layers);
  if (!r.launch.expert_pattern || *r.launch.expert_pattern == "1" || *r.launch.expert_pattern == "-1") return;
  auto pattern = Pattern(*r.launch.expert_pattern).all();
  if (!pattern) pattern = every(*r.launch.expert_pattern, m.layers);
  if (!pattern || static_cast<std::int32_t>(pattern->size()) != m.layers)
    return r.give_up("moe-layer-freq", fmt::format("a pattern that does not have the {} layers", m.layers));
  for (std::int32_t i = 0; i < std::min(m.experts.dense_layers, m.layers); ++i)
    (*pattern)[static_cast<std::size_t>(i)] = 0;
  m.experts.dense_layers = 0, m.experts.dense.clear();
  for (std::int32_t first = 0; first < m.layers;) {
    std::int32_t end = first;
    while (end < m.layers && (*pattern)[static_cast<std::size_t>(end)] == 0) ++end;
    if (first == 0)
      m.experts.dense_layers = end;
    else if (end > first)
      m.experts.dense.push_back({first, end - 1, 1});
    first = end + 1;
  }
}

void take_shared(Reading& r, ExpertsSpec& e) {
  if (r.launch.shared) e.shared = *r.launch.shared;
  if (!r.launch.shared_ffn || *r.launch.shared_ffn == 0) return;
  if (*r.launch.shared_ffn % e.ffn != 0)
    r.give_up("moe-shared-expert-intermediate-size",
              fmt::format("shared experts of a width that {} does not divide", e.ffn));
  e.shared = std::max(1, *r.launch.shared_ffn / e.ffn);
}

void take_experts(Reading& r, ModelSpec& m) {
  const Launch& l = r.launch;
  if (l.experts.value_or(0) <= 1 && m.experts.count == 0) {
    if (l.experts.value_or(0) == 1) r.give_up("num-experts", "one expert is none");
    return;
  }
  ExpertsSpec& e = m.experts;
  e.count = l.experts.value_or(e.count);
  e.choices = l.choices.value_or(e.choices);
  e.ffn = l.expert_ffn.value_or(e.ffn > 0 ? e.ffn : m.ffn);
  take_shared(r, e);
  take_dense_layers(r, m);
  if (l.scoring) e.scoring = *l.scoring;
  // A softmax before the choice leaves the chosen scores as they are; one behind it makes their sum 1.
  if (l.experts)
    e.normalize =
        !l.scores_before_choice.value_or(false) || l.normalize.value_or(false) || e.scoring == "sigmoid";
  if (l.normalize && !*l.normalize) e.normalize = false;
  e.scale = l.scale.value_or(e.scale);
  e.groups = l.groups.value_or(e.groups);
  e.group_choices = l.group_choices.value_or(e.group_choices);
  const std::string balancing = l.balancing.value_or("aux_loss");
  if (balancing != "none") e.aux_loss = l.aux_loss.value_or(e.aux_loss);
  if (l.expert_bias.value_or(false) || balancing == "bias") e.bias_rate = l.bias_rate.value_or(1e-3);
  if (l.capacity && *l.capacity > 0) e.capacity.factor = *l.capacity;
}

void take_rope(Reading& r, ModelSpec& m) {
  const Launch& l = r.launch;
  m.rope_theta = l.rope_theta.value_or(m.rope_theta);
  const bool latent = m.latent.kv_rank > 0 || l.latent.value_or(false) || l.kv_rank.has_value();
  const bool yarn = l.position_kind.value_or("") == "yarn" || (latent && l.rope_factor.value_or(1) > 1);
  const std::string kind = l.rope_kind.value_or(l.llama_rope.value_or(false) ? "llama3"
                                                : yarn                       ? "yarn"
                                                                             : "default");
  RopeScaling s;
  if (kind == "llama3") {
    s.factor = l.rope_factor.value_or(8), s.original_sequence = l.rope_original.value_or(8192);
    s.low_freq_factor = l.rope_low.value_or(1), s.high_freq_factor = l.rope_high.value_or(4);
  } else if (kind == "linear") {
    s.type = kLinearRope, s.factor = l.rope_factor.value_or(1);
  } else if (kind == "yarn") {
    s.type = kYarnRope, s.factor = l.rope_factor.value_or(1);
    s.original_sequence = l.rope_original.value_or(4096);
    s.beta_fast = l.rope_fast.value_or(32), s.beta_slow = l.rope_slow.value_or(1);
    s.mscale = l.rope_mscale.value_or(1), s.mscale_all_dim = l.rope_mscale_all.value_or(0);
  } else if (l.rope_factor.value_or(1) != 1) {
    return r.give_up("rope-scaling-factor", "a scaling of positions whose kind is not expressed");
  } else {
    return;
  }
  m.rope_scaling = s;
}

void take_latent(Reading& r, ModelSpec& m) {
  const Launch& l = r.launch;
  m.latent.q_rank = l.q_rank.value_or(m.latent.q_rank);
  m.latent.kv_rank = l.kv_rank.value_or(m.latent.kv_rank > 0 ? m.latent.kv_rank : 32);
  m.latent.nope_dim = l.nope_dim.value_or(m.latent.nope_dim > 0 ? m.latent.nope_dim : 128);
  m.latent.rope_dim = l.rope_dim.value_or(m.latent.rope_dim > 0 ? m.latent.rope_dim : 64);
  m.latent.value_dim = l.value_dim.value_or(m.latent.value_dim > 0 ? m.latent.value_dim : 128);
  m.kv_heads = m.heads;
  m.head_dim = m.latent.nope_dim + m.latent.rope_dim;
}

bool is_plain_qwen(const ModelSpec& m) {
  const ExpertsSpec& e = m.experts;
  return e.count > 0 && e.shared == 0 && e.scoring == "softmax" && e.scale == 1 && e.groups == 1 &&
         e.bias_rate == 0;
}

bool is_plain_mixtral(const ModelSpec& m) {
  ExpertsSpec plain;
  plain.count = m.experts.count, plain.choices = m.experts.choices, plain.ffn = m.experts.ffn;
  plain.aux_loss = m.experts.aux_loss, plain.capacity = m.experts.capacity;
  return plain == m.experts && m.ffn == m.experts.ffn;
}

// The family whose layers the flags describe. What differs from it is told.
void take_family(Reading& r, ModelSpec& m) {
  const Launch& l = r.launch;
  const bool rotary = l.rotary.value_or(false) || l.position_kind.value_or("") == "rope" ||
                      l.position_kind.value_or("") == "yarn";
  const bool rms = l.norm.value_or("LayerNorm") == "RMSNorm", gated = l.swiglu.value_or(false);
  if (l.latent.value_or(false) || l.kv_rank) {
    const ExpertsSpec& e = m.experts;
    const bool second = e.count > 0 && e.scoring == "softmax" && !e.normalize && e.bias_rate == 0;
    m.name = second ? "deepseek_v2" : "deepseek_v3";
    if (second) m.experts.group_best = 1;
    return;
  }
  if (!rotary && !rms && !gated && m.experts.count == 0) {
    m.name = "gpt2";
    if (l.no_bias.value_or(false)) r.give_up("disable-bias-linear", "products without biases: gpt2 has them");
    return;
  }
  const bool window = has_window(r, m);
  m.name = l.qk_norm.value_or(false)                    ? is_plain_qwen(m) ? "qwen3_moe" : "qwen3"
           : l.qkv_bias.value_or(false)                 ? "qwen2"
           : m.experts.count > 0 && is_plain_mixtral(m) ? "mixtral"
           : window                                     ? "mistral"
                                                        : "llama";
  if (m.name.starts_with("qwen3") && l.qkv_bias.value_or(false))
    r.give_up("add-qkv-bias", "biases of queries, keys and values: " + m.name + " has them with one more");
  if (!rotary) r.leave_out("model.name", "learned positions: " + m.name + " has rotary ones");
  if (!rms) r.leave_out("model.name", "LayerNorm: " + m.name + " has RMSNorm");
  if (!gated) r.leave_out("model.name", "an MLP without SwiGLU: " + m.name + " has one, with a product more");
  if (!l.no_bias.value_or(false)) r.leave_out("model.name", "biases of products: " + m.name + " has none");
}

std::int32_t default_ffn(const Launch& l, const ModelSpec& m) {
  const auto four = static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{4} * m.hidden, 1 << 22));
  return l.swiglu.value_or(false) ? std::max(64, four * 2 / 3 / 64 * 64) : four;
}

void take_vocab(Reading& r, ModelSpec& m, std::int32_t tensor) {
  const Launch& l = r.launch;
  if (l.padded_vocab) {
    m.vocab = *l.padded_vocab;
    return;
  }
  std::int64_t vocab = r.options.vocab.value_or(l.vocab.value_or(m.vocab));
  std::string why;
  if (vocab == 0 && l.tokenizer_model)
    if (const auto known = known_model(*l.tokenizer_model))
      vocab = known->vocab, why = "as that of " + *l.tokenizer_model;
  if (vocab == 0 && l.tokenizer) {
    const auto* t = std::ranges::find(kTokenizers, std::string_view(*l.tokenizer), &KnownTokenizer::type);
    if (t != kTokenizers.end()) vocab = t->vocab, why = "as that of " + *l.tokenizer;
  }
  if (vocab == 0 && !l.tokenizer && l.vocab_file && l.merge_file)
    vocab = kGpt2Vocab,
    why = "as that of GPT-2's byte pairs, which --vocab-file with --merge-file usually are";
  if (vocab == 0)
    vocab = kAssumedVocab,
    why = "a guess, as neither a flag nor the tokenizer's name says it; --vocab N or --model sets it";
  if (r.options.vocab) {
    m.vocab = *r.options.vocab;
    return;
  }
  const std::int64_t multiple = std::int64_t{std::max(1, l.vocab_multiple.value_or(128))} * tensor;
  m.vocab = static_cast<std::int32_t>(
      std::min<std::int64_t>((vocab + multiple - 1) / multiple * multiple, 1 << 22));
  if (m.vocab != vocab)
    why += fmt::format("{}{} padded to a multiple of {}", why.empty() ? "" : ", ", vocab, multiple);
  if (!why.empty()) r.assume("model.vocab", why);
}

}  // namespace

ModelSpec model_by_name(Reading& r, const std::string& name) {
  std::optional<ModelSpec> model = r.options.model;
  if (model && r.launch.sequence) model->sequence = 0;
  if (!model && !name.empty()) model = known_model(name);
  if (!model)
    throw Error(Code::kMissingField, name.empty() ? "the configuration names no model"
                                                  : fmt::format("the sizes of {} are not known", name))
        .at(r.place("model"))
        .legal("--model PATH of its config.json; known by name: " + joined(known_models()))
        .fix("download the config.json of the model and give it by --model");
  if (r.options.model)
    r.assume("model", "the sizes of " + r.options.model_path);
  else
    r.assume("model", fmt::format("the published sizes of {}; --model gives others", name));
  ModelSpec m = *model;
  if (r.launch.sequence) m.sequence = *r.launch.sequence;
  if (m.sequence == 0)
    m.sequence = 2048, r.assume("model.sequence", "2048, as the configuration does not say it");
  else if (!r.launch.sequence)
    r.assume("model.sequence", "the longest of the model, as the configuration does not say it");
  if (r.launch.vocab) m.vocab = *r.launch.vocab;
  if (r.options.vocab) m.vocab = *r.options.vocab;
  return m;
}

ModelSpec model_of_flags(Reading& r, std::int32_t tensor) {
  const Launch& l = r.launch;
  if (!l.layers && !l.hidden && (r.options.model || l.model)) {
    ModelSpec m = model_by_name(r, l.model.value_or(""));
    if (l.mtp_layers) m.mtp.layers = *l.mtp_layers, m.mtp.loss_factor = l.mtp_factor.value_or(0.1);
    return m;
  }
  ModelSpec m = r.options.model.value_or(ModelSpec{});
  if (r.options.model) r.assume("model", "what the flags leave open is that of " + r.options.model_path);
  const auto required = [&](Launch::Integer flag, std::int32_t& size, const char* name, const char* what) {
    if (flag) size = *flag;
    if (size == 0) throw missing(r, name, what);
  };
  required(l.layers, m.layers, "num-layers", "the number of layers");
  required(l.hidden, m.hidden, "hidden-size", "the width of the model");
  required(l.heads, m.heads, "num-attention-heads", "the number of heads");
  required(l.sequence, m.sequence, "seq-length", "the tokens of a sample");
  if (!r.options.model || l.kv_heads)
    m.kv_heads = l.grouped_queries.value_or(l.kv_heads.has_value()) ? l.kv_heads.value_or(1) : m.heads;
  m.head_dim = l.head_dim.value_or(m.head_dim);
  m.ffn = l.ffn.value_or(m.ffn > 0 ? m.ffn : default_ffn(l, m));
  m.norm_eps = l.norm_eps.value_or(m.norm_eps);
  if (l.untied || l.tied || !r.options.model) m.tied_head = !l.untied.value_or(l.tied ? !*l.tied : false);
  take_experts(r, m);
  if (!r.options.model) take_family(r, m);
  take_window(r, m);
  if (family_of(m).latent) take_latent(r, m);
  if (m.name == "gpt2")
    m.positions = std::max(l.positions.value_or(0), m.sequence);
  else
    take_rope(r, m);
  if (m.name == "mixtral") m.ffn = m.experts.ffn;
  if (l.mtp_layers.value_or(0) > 0) m.mtp = {*l.mtp_layers, l.mtp_factor.value_or(0.1)};
  take_vocab(r, m, tensor);
  return m;
}

}  // namespace hyperrun::frameworks
