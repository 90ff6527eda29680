#include "runtime/model/text/split.h"

#include <array>

#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

// Joins matches and what lies between them as a behavior says.
class Joiner {
 public:
  Joiner(SplitBehavior behavior, FunctionRef<void(TextRange)> out) : behavior_(behavior), out_(out) {}

  void add(TextRange range, bool is_match) {
    switch (behavior_) {
      case SplitBehavior::kIsolated: return out_(range);
      case SplitBehavior::kRemoved:
        if (!is_match) out_(range);
        return;
      case SplitBehavior::kMergedWithPrevious:
        return hold(range, is_match && holds_ && !held_match_, is_match);
      case SplitBehavior::kMergedWithNext: return hold(range, holds_ && held_match_ && !is_match, is_match);
      case SplitBehavior::kContiguous: return hold(range, holds_ && held_match_ == is_match, is_match);
    }
  }

  void finish() {
    if (holds_) out_(held_);
  }

 private:
  // Keeps a range until it is known what follows; `joins`: it goes on with the one that is held.
  void hold(TextRange range, bool joins, bool is_match) {
    if (joins) {
      held_.end = range.end;
    } else {
      finish();
      held_ = range;
    }
    holds_ = true;
    held_match_ = is_match;
  }

  SplitBehavior behavior_;
  FunctionRef<void(TextRange)> out_;
  TextRange held_;
  bool holds_ = false, held_match_ = false;
};

}  // namespace

void SplitPreTokenizer::cut(TextPiece piece, PieceSink out) const {
  const auto emit = [&](TextRange range) {
    if (range.begin < range.end)
      out({piece.text.substr(range.begin, range.end - range.begin), piece.at_start && range.begin == 0});
  };
  Joiner joiner(behavior_, emit);
  pattern_.partition(piece.text,
                     [&](TextRange range, bool is_match) { joiner.add(range, is_match != invert_); });
  joiner.finish();
}

SplitBehavior read_behavior(const PipelineStep& step, const char* otherwise) {
  constexpr std::array<std::string_view, 5> kNames{"Removed", "Isolated", "MergedWithPrevious",
                                                   "MergedWithNext", "Contiguous"};
  const std::string name = step.fields().string("behavior", otherwise);
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<SplitBehavior>(i);
  throw step.fields().error("behavior", "\"" + name + "\" is not supported").legal(joined(kNames));
}

}  // namespace hyperrun
