#include "runtime/model/text/token_model.h"

#include "runtime/model/text/bpe.h"
#include "runtime/model/text/unigram.h"

namespace hyperrun {

namespace {

// Old files do not name the type; a list of pairs that are merged is what only BPE has.
std::string type_of(const PipelineStep& step) {
  if (!step.type().empty()) return step.type();
  return step.fields().find("merges") != nullptr ? "BPE" : "";
}

}  // namespace

ReadModel read_model(const PipelineStep& step) {
  const std::string type = type_of(step);
  if (type == "BPE") return read_bpe(step);
  if (type == "Unigram") return read_unigram(step);
  refuse_type(step, {"BPE", "Unigram"});
}

}  // namespace hyperrun
