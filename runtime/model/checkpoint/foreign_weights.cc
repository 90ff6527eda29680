#include "runtime/model/checkpoint/foreign_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

std::string convert_with_transformers(const std::string& folder) {
  return fmt::format(
      "convert them: python3 -c \"from transformers import AutoModelForCausalLM as M; "
      "M.from_pretrained('{0}', torch_dtype='auto').save_pretrained('{0}-safetensors')\", and copy "
      "tokenizer.json there",
      folder);
}

// A file's first bytes, and what they tell.
struct Magic {
  std::string_view bytes;
  const char* format;
};
constexpr std::array kMagics{Magic{{"PK\x03\x04", 4}, "PyTorch"}, Magic{{"\x80\x02", 2}, "PyTorch"},
                             Magic{{"GGUF", 4}, "GGUF"}};

constexpr const char* kTakeOriginal =
    "take the model's files in safetensors, from which the GGUF file was made; transformers can also convert "
    "it: from_pretrained(FOLDER, gguf_file=NAME)";

// A file or folder that begins with `name`, what it means, and what to do about it.
struct Sign {
  std::string_view name;
  const char* cause;
  std::string (*fix)(const std::string& folder);
};

const Sign kSigns[] = {
    {"pytorch_model.bin", "has PyTorch's weights (pytorch_model.bin), which are not read: they can run code",
     convert_with_transformers},
    {"pytorch_model-", "has PyTorch's weights (pytorch_model-*.bin), which are not read: they can run code",
     convert_with_transformers},
    {"adapter_model.", "has an adapter (LoRA) alone, not a model",
     [](const std::string& folder) {
       return fmt::format(
           "merge it into its model: python3 -c \"from peft import AutoPeftModelForCausalLM as M; "
           "M.from_pretrained('{0}').merge_and_unload().save_pretrained('{0}-merged')\"",
           folder);
     }},
    {"zero_to_fp32.py", "has DeepSpeed's parts of weights",
     [](const std::string& folder) {
       return fmt::format("join them: python3 {0}/zero_to_fp32.py {0} {0}-joined --safe_serialization",
                          folder);
     }},
    {"pytorch_model_fsdp_", "has FSDP's parts of weights",
     [](const std::string& folder) {
       return fmt::format("join them: accelerate merge-weights {0}/pytorch_model_fsdp_0 {0}-joined", folder);
     }},
    {"consolidated.", "has weights as Meta publishes them",
     [](const std::string& folder) {
       return fmt::format(
           "take the model's files for Hugging Face, or convert them: python3 -m "
           "transformers.models.llama.convert_llama_weights_to_hf --input_dir {0} --output_dir {0}-hf",
           folder);
     }},
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (fs::directory_iterator it(folder, unreadable), end; !unreadable && it != end; it.increment(unreadable))
    names.push_back(it->path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

void refuse_foreign_file(std::span<const std::byte> bytes, const fs::path& file) {
  for (const Magic& magic : kMagics) {
    if (bytes.size() < magic.bytes.size() ||
        std::memcmp(bytes.data(), magic.bytes.data(), magic.bytes.size()) != 0)
      continue;
    const bool torch = std::string_view(magic.format) == "PyTorch";
    throw Error(Code::kBadCheckpoint, fmt::format("it is a file of {}, not safetensors", magic.format))
        .at(file.string())
        .legal("safetensors")
        .fix(torch ? convert_with_transformers(file.parent_path().string()) : kTakeOriginal);
  }
}

void refuse_folder(const fs::path& given) {
  // "adapter/" is "adapter": remedies name folders beside it.
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  const std::vector<std::string> names = names_in(folder);
  for (const Sign& sign : kSigns)
    if (std::ranges::any_of(names, [&](const std::string& n) { return n.starts_with(sign.name); }))
      throw Error(Code::kBadCheckpoint, sign.cause)
          .at(folder.string())
          .legal("model.safetensors, or model.safetensors.index.json and its shards")
          .fix(sign.fix(folder.string()));
  for (const std::string& name : names)
    for (const char* end : {".bin", ".pt", ".pth", ".gguf"})
      if (name.ends_with(end) && name != "optimizer.pt" && name != "scheduler.pt" &&
          name != "training_args.bin")
        throw Error(Code::kBadCheckpoint, fmt::format("has {}, and no weights in safetensors", name))
            .at(folder.string())
            .legal("model.safetensors, or model.safetensors.index.json and its shards")
            .fix(name.ends_with(".gguf") ? kTakeOriginal : convert_with_transformers(folder.string()));
  Error missing(Code::kMissingFile, "holds neither model.safetensors nor model.safetensors.index.json");
  for (const std::string& name : names)
    if (name.ends_with(".safetensors"))
      missing.fix(fmt::format("if {} has all the weights, name it model.safetensors", name));
  throw missing.at(folder.string());
}

}  // namespace hyperrun
