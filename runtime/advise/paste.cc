#include "runtime/advise/paste.h"

#include <fmt/core.h>

#include <utility>

#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string in_quotes(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(in_quotes(name));
  return joined(quoted);
}

std::string mesh_lines(const std::vector<MeshAxis>& mesh) {
  std::vector<std::string> lines;
  for (const MeshAxis& axis : mesh)
    lines.push_back(fmt::format("mesh {{ name: {} size: {} }}", in_quotes(axis.name), axis.size));
  return joined(lines, " ");
}

std::string recompute_line(const RecomputeSpec& spec, std::int32_t layers) {
  std::string line = "recompute { policy: " + in_quotes(spec.policy);
  if (spec.first_layer != 0) line += fmt::format(" first_layer: {}", spec.first_layer);
  if (spec.last_layer != layers - 1) line += fmt::format(" last_layer: {}", spec.last_layer);
  return line + " }";
}

std::string rule_line(const ShardRule& rule) {
  std::string line = "rules { tensor: " + in_quotes(rule.tensor);
  for (const ShardRule::Dim& dim : rule.dims)
    line += " dims { dim: " + in_quotes(dim.dim) + " axes: [" + in_quotes(dim.axes) + "] }";
  return line + " }";
}

std::string memory_lines(const MemorySpec& memory) {
  std::string lines = "policy: " + in_quotes(memory.policy);
  if (memory.tier != MemorySpec{}.tier) lines += " tier: " + in_quotes(memory.tier);
  for (const std::string& tensors : memory.tensors) lines += " tensors: " + in_quotes(tensors);
  return lines;
}

// The lines of one block, separated by blanks, and the fields that they replace.
class Block {
 public:
  Block(std::string_view name, const JobSource& source) : name_(name), source_(&source) {}

  // Adds a line without replacing a field.
  void line(const std::string& text) { lines_ += (lines_.empty() ? "" : " ") + text; }
  void replace(std::string_view field) {
    if (source_->has(std::string(name_) + "." + std::string(field))) replaced_.emplace_back(field);
  }
  void line(std::string_view field, const std::string& text) {
    replace(field);
    line(text);
  }
  void number(const char* field, std::int64_t from, std::int64_t to) {
    if (from != to) line(field, fmt::format("{}: {}", field, to));
  }
  void bytes(const char* field, Bytes from, Bytes to) {
    if (from != to) line(field, fmt::format("{}: \"{} B\"", field, to.value));
  }
  void add_to(std::string& text) const {
    if (!lines_.empty()) text += (text.empty() ? "" : "; ") + paste(name_, lines_, replaced_);
  }

 private:
  std::string_view name_;
  const JobSource* source_;
  std::string lines_;
  std::vector<std::string> replaced_;
};

Block of_supernode(const JobSource& source, const SupernodeSpec& from, const SupernodeSpec& to) {
  Block block("supernode", source);
  block.bytes("hbm", from.hbm, to.hbm);
  block.bytes("pool", from.pool, to.pool);
  block.bytes("flash", from.flash, to.flash);
  return block;
}

// The last rule for a tensor holds, so new rules are appended.
Block of_parallel(const JobSource& source, const ParallelSpec& from, const ParallelSpec& to) {
  Block block("parallel", source);
  if (from.mesh != to.mesh) block.line("mesh", mesh_lines(to.mesh));
  if (from.presets != to.presets) block.line("presets", presets_line(to.presets));
  for (std::size_t i = from.rules.size(); i < to.rules.size(); ++i) block.line(rule_line(to.rules[i]));
  if (from.pipeline.axis != to.pipeline.axis)
    block.line("pipeline", "pipeline { axis: " + in_quotes(to.pipeline.axis) + " }");
  if (from.paired_passes != to.paired_passes)
    block.line("paired_passes", std::string("paired_passes: ") + (to.paired_passes ? "true" : "false"));
  return block;
}

Block of_memory(const JobSource& source, const MemorySpec& from, const MemorySpec& to) {
  Block block("memory", source);
  if (from == to) return block;
  for (const char* field : {"policy", "tier", "tensors"}) block.replace(field);
  block.line(memory_lines(to));
  return block;
}

// The last block for a layer holds, so new blocks are appended.
Block of_training(const JobSource& source, const Job& from, const Job& to) {
  Block block("training", source);
  block.number("batch", from.training.batch, to.training.batch);
  block.number("micro_batches", from.training.micro_batches, to.training.micro_batches);
  for (std::size_t i = from.training.recompute.size(); i < to.training.recompute.size(); ++i)
    block.line(recompute_line(to.training.recompute[i], to.model.layers));
  return block;
}

Block of_inference(const JobSource& source, const InferenceSpec& from, const InferenceSpec& to) {
  Block block("inference", source);
  block.number("slots", from.slots, to.slots);
  block.number("context", from.context, to.context);
  block.number("pages", from.pages, to.pages);
  block.number("prompts", from.prompts, to.prompts);
  return block;
}

}  // namespace

std::string paste(std::string_view block, std::string_view lines, const std::vector<std::string>& replaced) {
  std::string instead;
  for (const std::string& field : replaced) instead += (instead.empty() ? ", replacing " : " and ") + field;
  return "in " + std::string(block) + instead + ": " + std::string(lines);
}

std::string presets_line(const std::vector<std::string>& presets) {
  return "presets: [" + in_quotes(presets) + "]";
}

std::string lines_to_paste(const JobSource& source, const Job& from, const Job& to) {
  std::string text;
  for (const Block& block :
       {of_supernode(source, from.supernode, to.supernode), of_parallel(source, from.parallel, to.parallel),
        of_memory(source, from.memory, to.memory), of_training(source, from, to),
        of_inference(source, from.inference, to.inference)})
    block.add_to(text);
  return text;
}

}  // namespace hyperrun
