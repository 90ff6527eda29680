#include "runtime/model/checkpoint/llama2c.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::uint32_t kMagic = 0x616b3432;  // "ak42"
constexpr std::int64_t kHeader0 = 7 * sizeof(std::int32_t), kHeader1 = 256;
constexpr const char* kFix = "export the model with llama2.c's export.py, --version 0 or 1";

struct Field {
  const char* name;
  std::int32_t ModelSpec::*value;
  std::int32_t most;  // the limit of jobs, so that sizes of files cannot overflow
};
constexpr std::array kFields{
    Field{"dim", &ModelSpec::hidden, 1 << 20},          Field{"hidden_dim", &ModelSpec::ffn, 1 << 22},
    Field{"n_layers", &ModelSpec::layers, 1 << 12},     Field{"n_heads", &ModelSpec::heads, 1 << 12},
    Field{"n_kv_heads", &ModelSpec::kv_heads, 1 << 12}, Field{"vocab_size", &ModelSpec::vocab, 1 << 22},
    Field{"seq_len", &ModelSpec::sequence, 1 << 24}};

template <class T>
T value_at(std::span<const std::byte> bytes, std::int64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Error bad(const std::string& place, std::string cause) {
  return Error(Code::kBadCheckpoint, std::move(cause)).at(place).fix(kFix);
}

void require_bytes(std::span<const std::byte> file, std::int64_t bytes, const std::string& place) {
  if (std::ssize(file) < bytes)
    throw bad(place,
              fmt::format("truncated: the header alone has {} bytes, the file {}", bytes, file.size()));
}

void check_fields(const ModelSpec& model, const std::string& place) {
  for (const Field& f : kFields)
    if (const std::int32_t value = model.*f.value; value < 1 || value > f.most)
      throw bad(place + ": " + f.name,
                fmt::format("is {}: this is no model of llama2.c, or it is damaged", value))
          .legal(fmt::format("1 to {}", f.most));
  if (model.hidden % model.heads != 0 || model.hidden / model.heads % 2 != 0)
    throw bad(place + ": n_heads",
              fmt::format("{} heads do not divide dim {} into even widths", model.heads, model.hidden));
  if (model.heads % model.kv_heads != 0)
    throw bad(place + ": n_kv_heads",
              fmt::format("{} does not divide the {} heads", model.kv_heads, model.heads));
}

// The row in the file. Rows i and i + head_dim / 2 of a head are neighbours there.
std::int64_t row_in_file(std::int64_t row, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2, in_head = row % head_dim;
  return row - in_head + 2 * (in_head % half) + in_head / half;
}

}  // namespace

Llama2cFile::Llama2cFile(const std::filesystem::path& path) : file_(path) {
  const std::string place = path.string();
  read_header(place);
  version_ == 0 ? lay_out_version_0() : lay_out_version_1();
  check_size(place);
}

void Llama2cFile::read_header(const std::string& place) {
  const std::span<const std::byte> bytes = file_.bytes();
  require_bytes(bytes, kHeader0, place);
  std::int64_t at = 0;
  if (value_at<std::uint32_t>(bytes, 0) == kMagic) {
    version_ = value_at<std::int32_t>(bytes, 4);
    if (version_ == 2)
      throw bad(place, "version 2: its weights are quantized to int8, in which nothing is trained")
          .legal("version 0, 1");
    if (version_ != 1) throw bad(place, fmt::format("version {}", version_)).legal("version 0, 1");
    require_bytes(bytes, kHeader1, place);
    at = 8;
  }
  for (const Field& f : kFields) model_.*f.value = value_at<std::int32_t>(bytes, std::exchange(at, at + 4));
  if (version_ == 1) {
    model_.tied_head = std::to_integer<int>(bytes[static_cast<std::size_t>(at)]) != 0;
  } else if (model_.tied_head = model_.vocab > 0; model_.vocab < 0) {
    // The least int32 cannot be negated; 0 is refused later.
    model_.vocab = model_.vocab < -(1 << 30) ? 0 : -model_.vocab;
  }
  check_fields(model_, place);
  model_.head_dim = model_.hidden / model_.heads;
  end_ = version_ == 0 ? kHeader0 : kHeader1;
}

void Llama2cFile::add(std::string name, std::vector<std::int64_t> shape, bool rotary) {
  tensors_.push_back({{std::move(name), DType::kF32, std::move(shape)}, end_, rotary});
  end_ += tensors_.back().info.bytes();
}

void Llama2cFile::add_layers(const char* name, const std::vector<std::int64_t>& shape, bool rotary) {
  for (int l = 0; l < model_.layers; ++l)
    add(fmt::format("model.layers.{}.{}.weight", l, name), shape, rotary);
}

void Llama2cFile::add_attention() {
  const std::int64_t dim = model_.hidden, kv = std::int64_t{model_.kv_heads} * model_.head_dim;
  add_layers("self_attn.q_proj", {dim, dim}, true);
  add_layers("self_attn.k_proj", {kv, dim}, true);
  add_layers("self_attn.v_proj", {kv, dim});
  add_layers("self_attn.o_proj", {dim, dim});
}

void Llama2cFile::add_feed_forward() {
  add_layers("mlp.gate_proj", {model_.ffn, model_.hidden});
  add_layers("mlp.down_proj", {model_.hidden, model_.ffn});
  add_layers("mlp.up_proj", {model_.ffn, model_.hidden});
}

void Llama2cFile::lay_out_version_0() {
  const std::int64_t dim = model_.hidden;
  add("model.embed_tokens.weight", {model_.vocab, dim});
  add_layers("input_layernorm", {dim});
  add_attention();
  add_layers("post_attention_layernorm", {dim});
  add_feed_forward();
  add("model.norm.weight", {dim});
  end_ += std::int64_t{model_.sequence} * model_.head_dim * size_of(DType::kF32);  // cosines and sines
  if (!model_.tied_head) add("lm_head.weight", {model_.vocab, dim});
}

void Llama2cFile::lay_out_version_1() {
  const std::int64_t dim = model_.hidden;
  add_layers("input_layernorm", {dim});
  add_layers("post_attention_layernorm", {dim});
  add("model.norm.weight", {dim});
  add("model.embed_tokens.weight", {model_.vocab, dim});
  add_attention();
  add_feed_forward();
  if (!model_.tied_head) add("lm_head.weight", {model_.vocab, dim});
}

void Llama2cFile::check_size(const std::string& place) const {
  const std::int64_t have = std::ssize(file_.bytes());
  if (have == end_) return;
  throw bad(place, fmt::format("{}a model of its header has {} bytes, the file {}",
                               have < end_ ? "truncated: " : "", end_, have))
      .legal(fmt::format("{} bytes", end_));
}

void Llama2cFile::write_safetensors(const std::filesystem::path& path) const {
  std::vector<TensorInfo> infos;
  for (const Tensor& t : tensors_) infos.push_back(t.info);
  SafetensorsWriter writer(path, infos);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& t = tensors_[i];
    const auto bytes = static_cast<std::size_t>(t.info.bytes());
    const std::span<const std::byte> data = file_.bytes().subspan(static_cast<std::size_t>(t.begin), bytes);
    if (!t.rotary) {
      writer.write(i, 0, data);
      continue;
    }
    const std::size_t row_bytes = bytes / static_cast<std::size_t>(t.info.shape[0]);
    std::vector<std::byte> rows(bytes);
    for (std::int64_t row = 0; row < t.info.shape[0]; ++row)
      std::memcpy(&rows[static_cast<std::size_t>(row) * row_bytes],
                  &data[static_cast<std::size_t>(row_in_file(row, model_.head_dim)) * row_bytes], row_bytes);
    writer.write(i, 0, rows);
  }
  writer.commit();
}

}  // namespace hyperrun
