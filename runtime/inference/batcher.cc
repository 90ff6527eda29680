#include "runtime/inference/batcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ir/token.h"

namespace hyperrun {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::string count(std::int64_t n, const std::string& what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

Error not_finite(std::int32_t prompt, std::int64_t grown, bool prefill) {
  return Error(Code::kNotFinite, fmt::format("the logits of its token {} are not finite, after {}", grown + 1,
                                             prefill ? "the last pass of its prompt" : "a pass of decode"))
      .at(fmt::format("prompt {}", prompt))
      .legal("finite numbers")
      .fix("look at how the weights were trained, or generate with training.precision: \"float32\"");
}

}  // namespace

Batcher::Batcher(const GenerationShape& shape, std::vector<std::int32_t> ends, double patience)
    : shape_(shape),
      ends_(std::move(ends)),
      patience_(patience),
      slots_(at(shape.slots)),
      groups_(at(shape.groups)) {
  for (Group& group : groups_) {
    group.free.resize(at(shape.pages));
    std::iota(group.free.rbegin(), group.free.rend(), 0);
  }
}

std::int64_t Batcher::pages_for(const Prompt& prompt) const {
  const std::int64_t positions = std::ssize(prompt.tokens) + prompt.grow;
  return (positions + shape_.page - 1) / shape_.page;
}

void Batcher::add(Prompt prompt) {
  const std::int64_t length = std::ssize(prompt.tokens);
  const std::string which = fmt::format("prompt {}", prompt.id);
  if (length == 0)
    throw Error(Code::kBadValue, "it is empty").at(which).legal("a token at least").fix("give it some text");
  if (length + prompt.grow > shape_.context)
    throw Error(Code::kBadValue,
                fmt::format("it has {}, with {} too many for a sequence of {}", count(length, "token"),
                            count(prompt.grow, "new one"), shape_.context))
        .at(which)
        .legal(fmt::format("prompt and new tokens up to {}", shape_.context))
        .fix("ask for fewer tokens, or raise inference.context");
  if (prompt.grow <= 0) return;
  // Passes then depend on the prompts since the last pause alone: a run that goes on from a checkpoint fills
  // them as the undisturbed one.
  if (is_idle()) begin_anew();
  waiting_.push_back(std::move(prompt));
}

bool Batcher::is_idle() const {
  return waiting_.empty() && under_way_.empty() &&
         std::ranges::none_of(slots_, [](const auto& slot) { return slot.has_value(); });
}

void Batcher::begin_anew() {
  for (Group& group : groups_) group.turn = 0;
  lost_ = 0;
  prefilled_ = false;
}

bool Batcher::has_room() const {
  return waiting_.empty() && std::ranges::any_of(slots_, [](const auto& slot) { return !slot; });
}

void Batcher::admit() {
  for (bool found = true; found && !waiting_.empty();) {
    found = false;
    // Takes the group with a free slot and most free pages, so that sequences spread evenly.
    std::int64_t best = -1;
    for (std::size_t s = 0; s < slots_.size(); ++s)
      if (!slots_[s] && (best < 0 || group_of(s).free.size() > group_of(at(best)).free.size()))
        best = static_cast<std::int64_t>(s);
    if (best >= 0) found = admit(at(best));
  }
}

bool Batcher::admit(std::size_t slot) {
  Group& group = group_of(slot);
  const std::int64_t need = pages_for(waiting_.front());
  if (std::ssize(group.free) < need) return false;  // prompts are admitted in order, none overtakes another
  Sequence sequence{std::move(waiting_.front()), {}};
  waiting_.pop_front();
  sequence.pages.assign(group.free.rbegin(), group.free.rbegin() + need);
  group.free.resize(group.free.size() - at(need));
  slots_[slot] = std::move(sequence);
  return true;
}

void Batcher::free(std::size_t slot) {
  std::vector<std::int32_t>& pages = group_of(slot).free;
  pages.insert(pages.end(), slots_[slot]->pages.begin(), slots_[slot]->pages.end());
  std::sort(pages.begin(), pages.end(), std::greater<>());
  slots_[slot].reset();
}

GenerationPass Batcher::empty_pass(bool prefill) const {
  const std::int64_t rows = prefill ? shape_.prompts : shape_.slots;
  GenerationPass pass{prefill, {prefill ? shape_.chunk : 1, shape_.width(), {}, {}}};
  pass.requests.ids.assign(at(rows * pass.requests.tokens), 0);
  pass.requests.rows.assign(at(rows * pass.requests.width), 0);
  return pass;
}

void Batcher::put(GenerationPass& pass, std::int64_t row, const Sequence& sequence) const {
  Requests& r = pass.requests;
  std::int32_t* const ids = r.ids.data() + row * r.tokens;
  std::int64_t count = 1;
  if (pass.prefill) {
    const auto& tokens = sequence.prompt.tokens;
    count = std::min(r.tokens, std::ssize(tokens) - sequence.cached);
    std::copy_n(tokens.begin() + sequence.cached, count, ids);
  } else {
    ids[0] = sequence.last;
  }
  std::int32_t* const numbers = r.rows.data() + row * r.width;
  numbers[kRequestId] = sequence.prompt.id;
  numbers[kRequestStart] = static_cast<std::int32_t>(sequence.cached);
  numbers[kRequestCount] = static_cast<std::int32_t>(count);
  std::ranges::copy(sequence.pages, numbers + kRequestPages);
}

// Fills a prefill pass. The prompts of each group take turns.
bool Batcher::prefill(GenerationPass& pass) {
  const std::int64_t each = slots_of_a_group(), rows = shape_.prompts / shape_.groups;
  bool any = false;
  under_way_.assign(at(shape_.prompts), -1);
  for (std::int64_t g = 0; g < shape_.groups; ++g) {
    const std::int64_t turn = groups_[at(g)].turn;
    std::int64_t row = g * rows;
    for (std::int64_t i = 0; i < each && row < (g + 1) * rows; ++i) {
      const std::int64_t slot = g * each + (turn + i) % each;
      if (!slots_[at(slot)] || !slots_[at(slot)]->in_prompt()) continue;
      under_way_[at(row)] = slot;
      groups_[at(g)].turn = (slot + 1) % each;
      put(pass, row++, *slots_[at(slot)]);
      any = true;
    }
  }
  return any;
}

bool Batcher::prefill_is_next() { return patience_ > 0 ? !prompts_wait() : !prefilled_; }

// True if prompts wait for another decode pass of the growing sequences.
bool Batcher::prompts_wait() {
  const auto in_prompt = [](const auto& slot) { return slot && slot->in_prompt(); };
  const auto grows = [](const auto& slot) { return slot && !slot->in_prompt(); };
  const auto prompts = std::ranges::count_if(slots_, in_prompt);
  if (prompts == 0 || prompts >= shape_.prompts || std::ranges::none_of(slots_, grows)) return false;
  const double loses = static_cast<double>(prompts) / static_cast<double>(shape_.slots);
  if (lost_ + loses > patience_) return false;
  lost_ += loses;
  return true;
}

bool Batcher::decode(GenerationPass& pass) {
  bool any = false;
  under_way_.assign(slots_.size(), -1);
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (!slots_[s] || slots_[s]->in_prompt()) continue;
    under_way_[s] = static_cast<std::int64_t>(s);
    put(pass, static_cast<std::int64_t>(s), *slots_[s]);
    any = true;
  }
  return any;
}

std::optional<GenerationPass> Batcher::next() {
  if (!under_way_.empty()) return std::nullopt;
  admit();
  const bool prefill_first = prefill_is_next();
  for (const bool wants_prefill : {prefill_first, !prefill_first}) {
    GenerationPass pass = empty_pass(wants_prefill);
    if (wants_prefill ? prefill(pass) : decode(pass)) {
      prefilled_ = wants_prefill;
      if (prefilled_) lost_ = 0;
      return pass;
    }
  }
  under_way_.clear();
  return std::nullopt;
}

std::vector<SampledToken> Batcher::done(std::span<const std::int32_t> drawn, std::span<const float> logp) {
  HR_CHECK(drawn.size() == under_way_.size() && logp.size() == drawn.size(),
           "a token for each row of the pass");
  std::vector<SampledToken> list;
  for (std::size_t row = 0; row < drawn.size(); ++row) {
    if (under_way_[row] < 0) continue;
    const std::size_t slot = at(under_way_[row]);
    Sequence& sequence = *slots_[slot];
    const std::int64_t left = std::ssize(sequence.prompt.tokens) - sequence.cached;
    sequence.cached += prefilled_ ? std::min(shape_.chunk, left) : 1;
    if (sequence.in_prompt()) continue;
    sequence.last = drawn[row];
    if (sequence.last == kNoToken) throw not_finite(sequence.prompt.id, sequence.grown, prefilled_);
    const bool last =
        ++sequence.grown == sequence.prompt.grow || std::ranges::count(ends_, sequence.last) > 0;
    list.push_back({sequence.prompt.id, sequence.last, last, logp[row]});
    if (last) free(slot);
  }
  under_way_.clear();
  return list;
}

}  // namespace hyperrun
