// Continuous batching (Yu et al. 2022, Orca): sequences of different lengths grow together. Each leaves when
// it is done, and the next one takes its slot and its pages at once. Prompts are taken chunk by chunk, with a
// decode pass of the growing sequences between two chunks (Agrawal et al. 2023, Sarathi), so that a long
// prompt delays nobody.
//
//   pass     prefill    decode   prefill    decode   decode
//   slot 0   A chunk 1  -        A chunk 2  A +1     A +1
//   slot 1   -          B +1     -          B +1     B +1, ends; C takes its slot
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ir/requests.h"

namespace hyperrun {

struct Prompt {
  std::int32_t id = 0;  // key of the random numbers of this sequence
  std::vector<std::int32_t> tokens;
  std::int64_t grow = 0;  // most tokens to generate
};

// One invocation of "prefill" or of "decode".
struct GenerationPass {
  bool prefill = false;
  Requests requests;
};

// A token that was drawn for a sequence, with its log probability.
struct SampledToken {
  std::int32_t id = 0, token = 0;
  bool last = false;
  float logp = 0;
  bool operator==(const SampledToken&) const = default;
};

class Batcher {
 public:
  // A sequence ends early when it draws one of `ends`. `patience` above 0 minimises the time until all
  // sequences are done, not that of each one. Prompts that fill a pass then come before any decode; fewer
  // prompts wait until they fill one, or until their idle slots have cost as much as `patience` decode
  // passes. (To wait for as long as the pass itself costs is at most twice as dear as knowing the future:
  // Karlin et al. 1988, competitive snoopy caching.)
  explicit Batcher(const GenerationShape& shape, std::vector<std::int32_t> ends = {}, double patience = 0);

  // Throws kBadValue when the prompt is empty, or longer than a sequence may become.
  void add(Prompt prompt);

  // True if a slot is free and no prompt waits for one.
  bool has_room() const;
  // The next pass; nullopt if nothing is left, or a pass is under way.
  std::optional<GenerationPass> next();
  // Ends the pass under way, given the token drawn in each of its rows and the log probabilities. Throws
  // kNotFinite for kNoToken.
  std::vector<SampledToken> done(std::span<const std::int32_t> drawn, std::span<const float> logp);

 private:
  struct Sequence {
    Prompt prompt;
    std::vector<std::int32_t> pages;
    std::int64_t cached = 0;  // positions in the cache
    std::int64_t grown = 0;   // tokens drawn so far
    std::int32_t last = 0;    // the last token drawn
    bool in_prompt() const { return cached < static_cast<std::int64_t>(prompt.tokens.size()); }
  };
  struct Group {
    std::vector<std::int32_t> free;  // free pages, the next at the end
    std::int64_t turn = 0;           // the slot whose prompt is taken next
  };

  bool is_idle() const;
  void begin_anew();
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
  double patience_, lost_ = 0;  // in decode passes; lost_: by idle slots since the last prefill
  std::deque<Prompt> waiting_;
  std::vector<std::optional<Sequence>> slots_;
  std::vector<Group> groups_;
  std::vector<std::int64_t> under_way_;  // slot of each row of the pass under way; -1: empty row
  bool prefilled_ = false;               // the last pass was a prefill
};

}  // namespace hyperrun
