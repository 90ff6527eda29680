#include "launcher/paste.h"

#include <utility>

namespace hyperrun {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string mesh_lines(const std::vector<MeshAxis>& mesh) {
  std::string lines;
  for (const MeshAxis& axis : mesh)
    lines += (lines.empty() ? "" : " ") +
             ("mesh { name: " + quoted(axis.name) + " size: " + std::to_string(axis.size) + " }");
  return lines;
}

std::string recompute_line(const RecomputeSpec& spec, std::int32_t layers) {
  std::string line = "recompute { policy: " + quoted(spec.policy);
  if (spec.first_layer != 0) line += " first_layer: " + std::to_string(spec.first_layer);
  if (spec.last_layer != layers - 1) line += " last_layer: " + std::to_string(spec.last_layer);
  return line + " }";
}

std::string memory_lines(const MemorySpec& memory) {
  std::string lines = "policy: " + quoted(memory.policy);
  if (memory.tier != MemorySpec{}.tier) lines += " tier: " + quoted(memory.tier);
  for (const std::string& tensors : memory.tensors) lines += " tensors: " + quoted(tensors);
  return lines;
}

// The lines of one block, with a blank between.
class Block {
 public:
  explicit Block(std::string_view name) : name_(name) {}

  void line(const std::string& text) { lines_ += (lines_.empty() ? "" : " ") + text; }
  void number(const char* field, std::int64_t from, std::int64_t to) {
    if (from != to) line(std::string(field) + ": " + std::to_string(to));
  }
  void bytes(const char* field, Bytes from, Bytes to) {
    if (from != to) line(std::string(field) + ": " + quoted(std::to_string(to.value) + " B"));
  }
  void add_to(std::string& text) const {
    if (!lines_.empty()) text += (text.empty() ? "" : "; ") + paste(name_, lines_);
  }

 private:
  std::string_view name_;
  std::string lines_;
};

Block of_supernode(const SupernodeSpec& from, const SupernodeSpec& to) {
  Block block("supernode");
  block.bytes("hbm", from.hbm, to.hbm);
  block.bytes("pool", from.pool, to.pool);
  block.bytes("flash", from.flash, to.flash);
  return block;
}

Block of_parallel(const ParallelSpec& from, const ParallelSpec& to) {
  Block block("parallel");
  if (from.mesh != to.mesh) block.line(mesh_lines(to.mesh));
  if (from.presets != to.presets) block.line(presets_line(to.presets));
  if (from.paired_passes != to.paired_passes)
    block.line(std::string("paired_passes: ") + (to.paired_passes ? "true" : "false"));
  return block;
}

Block of_memory(const MemorySpec& from, const MemorySpec& to) {
  Block block("memory");
  if (from != to) block.line(memory_lines(to));
  return block;
}

// The last block that names a layer holds, so new blocks stand behind those that are there.
Block of_training(const Job& from, const Job& to) {
  Block block("training");
  block.number("micro_batches", from.training.micro_batches, to.training.micro_batches);
  for (std::size_t i = from.training.recompute.size(); i < to.training.recompute.size(); ++i)
    block.line(recompute_line(to.training.recompute[i], to.model.layers));
  return block;
}

Block of_inference(const InferenceSpec& from, const InferenceSpec& to) {
  Block block("inference");
  block.number("slots", from.slots, to.slots);
  block.number("context", from.context, to.context);
  block.number("pages", from.pages, to.pages);
  block.number("prompts", from.prompts, to.prompts);
  return block;
}

}  // namespace

std::string paste(std::string_view block, std::string_view lines) {
  return "in " + std::string(block) + ": " + std::string(lines);
}

std::string presets_line(const std::vector<std::string>& presets) {
  std::string names;
  for (const std::string& preset : presets) names += (names.empty() ? "" : ", ") + quoted(preset);
  return "presets: [" + names + "]";
}

std::string lines_to_paste(const Job& from, const Job& to) {
  std::string text;
  for (const Block& block :
       {of_supernode(from.supernode, to.supernode), of_parallel(from.parallel, to.parallel),
        of_memory(from.memory, to.memory), of_training(from, to), of_inference(from.inference, to.inference)})
    block.add_to(text);
  return text;
}

}  // namespace hyperrun
