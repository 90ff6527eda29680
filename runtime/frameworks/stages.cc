#include "runtime/frameworks/stages.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "runtime/base/error.h"

namespace hyperrun::frameworks {
namespace {

constexpr std::size_t kLongestNotation = 1 << 16;

// Writes the repetitions of a notation out: "(t|)*2" becomes "t|t|".
class Notation {
 public:
  explicit Notation(std::string_view text) {
    for (const char c : text)
      if (c != ',' && c != ' ' && c != '\'' && c != '"') s_ += c;
  }
  std::optional<std::string> all() {
    std::string text;
    if (!sequence(text, 0) || i_ < s_.size()) return std::nullopt;
    return text;
  }

 private:
  bool sequence(std::string& out, int depth) {
    if (depth > 20) return false;
    while (i_ < s_.size() && s_[i_] != ')') {
      std::string part;
      if (s_[i_] == '(') {
        ++i_;
        if (!sequence(part, depth + 1) || i_ >= s_.size()) return false;
        ++i_;
      } else if (std::string_view("EtmL|").find(s_[i_]) != std::string_view::npos) {
        part = s_[i_++];
      } else {
        return false;
      }
      std::size_t times = 1;
      if (i_ < s_.size() && s_[i_] == '*') {
        times = 0;
        for (++i_; i_ < s_.size() && s_[i_] >= '0' && s_[i_] <= '9' && times < 100'000; ++i_)
          times = times * 10 + static_cast<std::size_t>(s_[i_] - '0');
      }
      if (part.size() * times + out.size() > kLongestNotation) return false;
      for (std::size_t n = 0; n < times; ++n) out += part;
    }
    return true;
  }

  std::string s_;
  std::size_t i_ = 0;
};

Error bad_stages(const Reading& r, const std::string& cause, const std::vector<std::string_view>& fields) {
  return r.error(Code::kBadLayout, cause, fields)
      .legal("stages that have all layers together")
      .fix("change the number of layers, of stages, or of layers of a stage");
}

// Uneven ends: the first and the last device have the layers that are named, the others share the rest.
void take_ends(Reading& r, Parallelism& layout, std::int32_t layers) {
  const Launch& l = r.launch;
  const std::int32_t devices = layout.pipeline;
  std::int32_t first = l.first_layers.value_or(-1), last = l.last_layers.value_or(-1);
  if (l.embedding_counts.value_or(false) || l.head_counts.value_or(false)) {
    const std::int32_t counted =
        layers + (l.embedding_counts.value_or(false) ? 1 : 0) + (l.head_counts.value_or(false) ? 1 : 0);
    const std::int32_t share = counted / devices;
    if (l.embedding_counts.value_or(false)) first = share - 1;
    if (l.head_counts.value_or(false)) last = share - 1;
  }
  if ((first < 0 && last < 0) || devices == 1) return;
  const std::int32_t middle = devices - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
  const std::int32_t rest = layers - std::max(first, 0) - std::max(last, 0);
  if (rest < 0 || (middle == 0 && rest > 0) || (middle > 0 && rest % middle != 0))
    throw bad_stages(r, fmt::format("{} layers do not divide over the {} stages between", rest, middle),
                     {"parallel.pipeline.stages", "model.layers", "parallel.mesh pp"});
  for (std::int32_t v = 0; v < devices * layout.chunks; ++v) {
    const std::int32_t device = v % devices, chunk = v / devices;
    const std::int32_t of_device = device == 0 && first >= 0            ? first
                                   : device == devices - 1 && last >= 0 ? last
                                                                        : rest / std::max(1, middle);
    layout.stages.push_back(even_layers(layout.chunks, of_device)[static_cast<std::size_t>(chunk)]);
  }
}

void take_list(Reading& r, Parallelism& layout, std::int32_t layers) {
  std::string text = *r.launch.stage_layers;
  std::ranges::replace(text, ',', ' ');
  std::istringstream in(text);
  for (std::int32_t n; in >> n;) layout.stages.push_back(n);
  if (std::ssize(layout.stages) != layout.pipeline ||
      std::accumulate(layout.stages.begin(), layout.stages.end(), 0) != layers)
    throw bad_stages(r,
                     fmt::format("the list {} is not of {} stages with {} layers together",
                                 *r.launch.stage_layers, layout.pipeline, layers),
                     {"parallel.pipeline.stages", "model.layers", "parallel.mesh pp"});
}

// Layers that are there for the balance alone and compute nothing. They are numbered among all.
void take_idle_layers(Reading& r, Parallelism& layout, std::int32_t layers) {
  std::string text = *r.launch.idle_layers;
  std::ranges::replace(text, ',', ' ');
  std::istringstream in(text);
  const std::vector<std::int32_t> all = layers_of(layout, layers);
  std::vector<std::int32_t> stages = all;
  for (std::int32_t n; in >> n;) {
    std::int32_t end = 0;
    for (std::size_t v = 0; v < all.size(); ++v)
      if (end += all[v]; n >= 0 && n < end) {
        --stages[v], --r.job.model.layers;
        break;
      }
  }
  if (r.job.model.layers < 1)
    throw bad_stages(r, "no layer is left that computes", {"parallel.pipeline.stages", "model.layers"});
  if (layout.pipeline > 1) layout.stages = std::move(stages);
}

void take_chunks(Reading& r, Parallelism& layout, std::int32_t layers) {
  const Launch& l = r.launch;
  layout.chunks = std::max(1, l.chunks.value_or(1));
  if (l.layers_of_chunk && *l.layers_of_chunk > 0) {
    const std::int32_t per_device = layers / layout.pipeline;
    if (per_device % *l.layers_of_chunk != 0)
      throw bad_stages(
          r,
          fmt::format("chunks of {} layers do not divide the {} of a device", *l.layers_of_chunk, per_device),
          {"parallel.pipeline.chunks", "model.layers", "parallel.mesh pp"});
    layout.chunks = per_device / *l.layers_of_chunk;
  }
  if (layout.chunks > 1) layout.schedule = "interleaved";
  if (layout.chunks > 4096)
    throw bad_stages(r, fmt::format("{} chunks", layout.chunks), {"parallel.pipeline.chunks"});
}

}  // namespace

std::optional<std::vector<std::int32_t>> parse_stage_notation(std::string_view text) {
  const auto plain = Notation(text).all();
  if (!plain) return std::nullopt;
  std::vector<std::int32_t> layers(1, 0);
  for (const char c : *plain) {
    if (c == '|') layers.push_back(0);
    if (c == 't') ++layers.back();
  }
  return layers;
}

std::string stage_notation(const std::vector<std::int32_t>& layers, std::int32_t mtp_layers) {
  std::string text;
  for (std::size_t v = 0; v < layers.size(); ++v) {
    if (v > 0) text += '|';
    if (v == 0) text += 'E';
    if (layers[v] == 1) text += 't';
    if (layers[v] > 1) text += fmt::format("t*{}", layers[v]);
  }
  for (std::int32_t n = 0; n < mtp_layers; ++n) text += 'm';
  return text + 'L';
}

void take_stages(Reading& r, Parallelism& layout) {
  const Launch& l = r.launch;
  const std::int32_t layers = r.job.model.layers;
  if (layout.pipeline == 1) {
    if (l.idle_layers) take_idle_layers(r, layout, layers);
    return;
  }
  if (l.stages) {
    const auto stages = parse_stage_notation(*l.stages);
    const auto sum = stages ? std::accumulate(stages->begin(), stages->end(), 0) : 0;
    if (!stages || std::ssize(*stages) % layout.pipeline != 0 || sum != layers)
      throw bad_stages(
          r,
          stages ? fmt::format("the layout has {} stages with {} layers, for {} devices and {} layers",
                               stages->size(), sum, layout.pipeline, layers)
                 : "the layout of stages is not of E, t, m, L, |, ( ), * and numbers",
          {"parallel.pipeline.stages", "model.layers", "parallel.mesh pp"});
    layout.chunks = static_cast<std::int32_t>(std::ssize(*stages) / layout.pipeline);
    if (layout.chunks > 1) layout.schedule = "interleaved";
    if (*stages != even_layers(layout.pipeline * layout.chunks, layers)) layout.stages = *stages;
    return;
  }
  take_chunks(r, layout, layers);
  if (l.stage_layers)
    take_list(r, layout, layers);
  else
    take_ends(r, layout, layers);
  if (l.idle_layers) take_idle_layers(r, layout, layers);
  if (layout.stages.empty() && layers % (layout.pipeline * layout.chunks) != 0) {
    // A model that is only named has its layers divided by code that is not read.
    if (l.layers)
      throw bad_stages(
          r, fmt::format("{} layers do not divide over {} stages", layers, layout.pipeline * layout.chunks),
          {"model.layers", "parallel.mesh pp", "parallel.pipeline.chunks"});
    r.assume("parallel.pipeline.stages",
             fmt::format("{} layers spread over {} stages as evenly as they divide", layers,
                         layout.pipeline * layout.chunks));
  }
  if (layout.stages == even_layers(layout.pipeline * layout.chunks, r.job.model.layers))
    layout.stages.clear();
}

void put_stages(const Parallelism& layout, const ModelSpec& model, Launch& l,
                std::vector<std::string>& cannot) {
  if (layout.pipeline == 1) return;
  if (layout.schedule == "gpipe" || layout.schedule == "zero_bubble")
    cannot.push_back("the schedule " + layout.schedule);
  if (layout.schedule == "1f1b" && layout.chunks > 1)
    cannot.emplace_back("several chunks of a device in the schedule 1f1b");
  const bool even = layout.stages.empty() && model.layers % (layout.pipeline * layout.chunks) == 0;
  if (even) {
    if (layout.chunks > 1) l.chunks = layout.chunks;
    return;
  }
  const std::vector<std::int32_t> stages = layers_of(layout, model.layers);
  l.stages = stage_notation(stages, model.mtp.layers);
}

}  // namespace hyperrun::frameworks
