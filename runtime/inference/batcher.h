// Continuous batching (Yu et al. 2022, Orca): sequences of different lengths grow together, each leaves when
// it is done, and the next takes its slot and its pages at once. Prompts are taken chunk by chunk, and
// between two chunks those that are growing take a step (Agrawal et al. 2023, Sarathi), so that a long prompt
// holds nobody up.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ir/requests.h"

namespace hyperrun {

struct Prompt {
  std::int32_t id = 0;  // what is drawn depends on it
  std::vector<std::int32_t> tokens;
  std::int64_t grow = 0;  // by so many tokens, at most
};

// One invocation of "prefill" or of "decode".
struct GenerationPass {
  bool prefill = false;
  Requests requests;
};

// A token that a sequence has grown by, and its log probability when it was drawn.
struct Grown {
  std::int32_t id = 0, token = 0;
  bool last = false;
  float logp = 0;
  bool operator==(const Grown&) const = default;
};

class Batcher {
 public:
  // A sequence ends before its time when it draws one of `ends`. With `patience` what counts is how soon all
  // are done, and not each: prompts that fill a pass are taken before anything grows; others wait until they
  // do, or until their slots have lost as much meanwhile as so many passes of decode. (To wait for as long as
  // the pass itself costs is never more than twice as dear as to know what comes: Karlin et al. 1988,
  // competitive snoopy caching.)
  explicit Batcher(const GenerationShape& shape, std::vector<std::int32_t> ends = {}, double patience = 0);

  // Throws kBadValue when it is empty, or longer than a sequence may become.
  void add(Prompt prompt);

  // A slot is free and nobody waits for one.
  bool has_room() const;
  // None: nothing is left, or a pass is under way.
  std::optional<GenerationPass> next();
  // Of the pass under way: what was drawn in each of its rows, and its log probability. Throws kNotFinite
  // where that is no token.
  std::vector<Grown> done(std::span<const std::int32_t> drawn, std::span<const float> logp);

 private:
  struct Sequence {
    Prompt prompt;
    std::vector<std::int32_t> pages;
    std::int64_t cached = 0;  // positions
    std::int64_t grown = 0;
    std::int32_t last = 0;  // that was drawn
    bool in_prompt() const { return cached < static_cast<std::int64_t>(prompt.tokens.size()); }
  };
  struct Group {
    std::vector<std::int32_t> free;  // pages, the next at the end
    std::int64_t turn = 0;           // of its slots, whose prompt is taken next
  };

  void admit();
  bool admit(std::size_t slot);
  GenerationPass empty_pass(bool prefill) const;
  void put(GenerationPass& pass, std::int64_t row, const Sequence& sequence) const;
  bool prefill(GenerationPass& pass);
  bool prefill_is_next();
  bool prompts_wait();
  bool decode(GenerationPass& pass);
  void free(std::size_t slot);
  std::int64_t pages_for(const Prompt& prompt) const;
  std::int64_t slots_of_a_group() const { return shape_.slots / shape_.groups; }
  Group& group_of(std::size_t slot) { return groups_[slot / static_cast<std::size_t>(slots_of_a_group())]; }

  GenerationShape shape_;
  std::vector<std::int32_t> ends_;
  double patience_, lost_ = 0;  // passes of decode; lost: since the last prefill
  std::deque<Prompt> waiting_;
  std::vector<std::optional<Sequence>> slots_;
  std::vector<Group> groups_;
  std::vector<std::int64_t> under_way_;  // of each row of the pass: its slot; -1: nobody
  bool prefilled_ = false;               // last
};

}  // namespace hyperrun
