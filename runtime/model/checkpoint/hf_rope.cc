#include "runtime/model/checkpoint/hf_rope.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/ir/limits.h"
#include "runtime/model/checkpoint/hf_blocks.h"

namespace hyperrun {
namespace {

using nlohmann::json;

constexpr const char* kOriginal = "original_max_position_embeddings";
constexpr const char* kPartial = "partial_rotary_factor";

double required_real(const JsonFields& fields, const char* name) {
  if (fields.find(name) == nullptr) throw fields.error(name, "the field is missing");
  return positive_real(fields, name, 1);
}

double real_at_least_0(const JsonFields& fields, const char* name) {
  const double value = fields.number(name, 0);
  if (value < 0) throw fields.error(name, "must not be negative");
  return value;
}

std::vector<double> read_factors(const JsonFields& fields, const char* name, std::int64_t pairs) {
  const json& list = fields.required(name);
  const bool numbers = list.is_array() && std::ranges::all_of(list, [](const json& v) {
                         return v.is_number() && v.get<double>() > 0;
                       });
  if (!numbers || std::ssize(list) != pairs)
    throw fields.error(name, "is no list of positive numbers, one for each pair")
        .legal(fmt::format("{} numbers", pairs));
  return list.get<std::vector<double>>();
}

// The elements of a head that turn.
std::int64_t turning(const ModelSpec& m) {
  if (m.latent.kv_rank > 0) return m.latent.rope_dim;
  return m.rotary_dim > 0 ? m.rotary_dim : m.head_dim;
}

void read_llama3(const JsonFields& fields, RopeScaling& s) {
  s.low_freq_factor = required_real(fields, "low_freq_factor");
  s.high_freq_factor = required_real(fields, "high_freq_factor");
  s.original_sequence = positive(fields, kOriginal, limits::kSequence);
  if (s.high_freq_factor <= s.low_freq_factor)
    throw fields.error("high_freq_factor", "is not above low_freq_factor");
}

void read_yarn(const JsonFields& fields, RopeScaling& s) {
  s.attention_factor = real_at_least_0(fields, "attention_factor");
  // As in Hugging Face, 0 stands for the default.
  if (const double fast = real_at_least_0(fields, "beta_fast"); fast > 0) s.beta_fast = fast;
  if (const double slow = real_at_least_0(fields, "beta_slow"); slow > 0) s.beta_slow = slow;
  if (s.beta_fast <= s.beta_slow) throw fields.error("beta_fast", "is not above beta_slow");
  s.mscale = real_at_least_0(fields, "mscale");
  s.mscale_all_dim = real_at_least_0(fields, "mscale_all_dim");
  s.truncate = fields.boolean("truncate", true);
}

// Phi-3 has the original length beside the block, and the factor is the quotient of the lengths.
void read_longrope(const JsonFields& root, const JsonFields& fields, const ModelSpec& m, RopeScaling& s) {
  const JsonFields& has = fields.find(kOriginal) != nullptr ? fields : root;
  s.original_sequence = positive_or(has, kOriginal, m.sequence, limits::kSequence);
  s.factor = static_cast<double>(m.sequence) / s.original_sequence;
  if (root.find(kOriginal) == nullptr) s.factor = positive_real(fields, "factor", s.factor);
  s.attention_factor = real_at_least_0(fields, "attention_factor");
  s.short_factor = read_factors(fields, "short_factor", turning(m) / 2);
  s.long_factor = read_factors(fields, "long_factor", turning(m) / 2);
}

RopeScaling read_scaling(const JsonFields& root, const JsonFields& fields, const std::string& type,
                         const ModelSpec& m) {
  RopeScaling s;
  s.type = type;
  if (type == kLongRope) {
    read_longrope(root, fields, m, s);
    return s;
  }
  s.factor = required_real(fields, "factor");
  if (type == kLlama3Rope) read_llama3(fields, s);
  if (type == kDynamicRope) s.original_sequence = m.sequence;
  if (type == kYarnRope) {
    s.original_sequence = positive_or(fields, kOriginal, m.sequence, limits::kSequence);
    read_yarn(fields, s);
  }
  return s;
}

void read_part(const JsonFields& fields, const ModelFamily& family, ModelSpec& m) {
  const double part = fields.number(kPartial, 1);
  if (part == 1) return;
  if (!family.turns_a_part) throw fields.error(kPartial, "partial rotation is not supported").legal("1");
  m.rotary_dim = static_cast<std::int32_t>(m.head_dim * part);
  if (!(part > 0) || part > 1 || m.rotary_dim < 2 || m.rotary_dim % 2 != 0)
    throw fields.error(kPartial, fmt::format("{} of {} elements is no even number of them", part, m.head_dim))
        .legal("above 0, up to 1");
}

}  // namespace

void read_rope(const JsonFields& fields, const std::string& place, const ModelFamily& family, ModelSpec& m) {
  m.rope_theta = positive_real(fields, "rope_theta", 10000);
  read_part(fields, family, m);
  for (const char* field : {"rope_scaling", "rope_parameters"}) {
    const json* block = fields.find(field);
    if (block == nullptr) continue;
    const JsonFields inner(*block, place + ": " + field);
    m.rope_theta = positive_real(inner, "rope_theta", m.rope_theta);
    read_part(inner, family, m);
    std::string type = inner.string("rope_type", inner.string("type", "default").c_str());
    if (type == "su") type = kLongRope;  // its name in the first files of Phi-3
    if (type == "default") continue;
    if (type != kLinearRope && type != kDynamicRope && type != kYarnRope && type != kLlama3Rope &&
        type != kLongRope)
      throw fields.error(field, "\"" + type + "\" is not supported")
          .legal("null, default, linear, dynamic, yarn, llama3, longrope");
    m.rope_scaling = read_scaling(fields, inner, type, m);
  }
}

void write_rope(const ModelSpec& m, const ModelFamily& family, nlohmann::ordered_json& root) {
  const RopeScaling& s = m.rope_scaling;
  root["rope_theta"] = m.rope_theta;
  if (family.turns_a_part)
    root[kPartial] = m.rotary_dim > 0 ? static_cast<double>(m.rotary_dim) / m.head_dim : 1.0;
  root["rope_scaling"] = nullptr;
  if (s == RopeScaling{}) return;
  const bool linear = s.type == kLinearRope || (s.type == kLlama3Rope && s.original_sequence == 0);
  nlohmann::ordered_json block{{"rope_type", linear ? std::string(kLinearRope) : s.type}};
  const auto put = [&](const char* name, double value) {
    if (value > 0) block[name] = value;
  };
  put("factor", s.factor);
  if (s.type == kLlama3Rope && !linear)
    block["low_freq_factor"] = s.low_freq_factor, block["high_freq_factor"] = s.high_freq_factor;
  if (s.type == kYarnRope) {
    block["beta_fast"] = s.beta_fast, block["beta_slow"] = s.beta_slow;
    put("mscale", s.mscale), put("mscale_all_dim", s.mscale_all_dim);
    if (!s.truncate) block["truncate"] = false;
  }
  put("attention_factor", s.attention_factor);
  if (s.type == kLongRope) block["short_factor"] = s.short_factor, block["long_factor"] = s.long_factor;
  if (s.type == kDynamicRope)
    root["max_position_embeddings"] = s.original_sequence;
  else if (s.type == kLongRope)
    root[kOriginal] = s.original_sequence,
    root["max_position_embeddings"] = std::llround(s.factor * s.original_sequence);
  else if (!linear)
    block[kOriginal] = s.original_sequence;
  root["rope_scaling"] = std::move(block);
}

}  // namespace hyperrun
