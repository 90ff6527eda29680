// A folder of Hugging Face: shards of weights, their index, and config.json (folder.h has the form of an
// input).
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/weights.h"
#include "tests/fuzz/folder.h"

using namespace hyperrun;

namespace {

// Reads every tensor as numbers, and each of its bytes.
void read_all(const WeightsReader& weights) {
  std::vector<WantedTensor> wanted;
  for (const auto& entry : weights.tensors().tensors()) {
    wanted.push_back({entry.first, entry.second.info.shape});
    fuzz::take_or_refuse_at([&] {
      const Weight weight = weights.read(wanted.back().name, wanted.back().shape);
      volatile unsigned sum = 0;
      for (const std::byte b : weight.view.data) sum = sum + static_cast<unsigned>(b);
    });
  }
  weights.check(wanted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Folder folder;
  folder.fill(fuzz::files_of(fuzz::text_of(data, size)),
              {"config.json", "model.safetensors", "model.safetensors.index.json", "a.safetensors",
               "b.safetensors", "pytorch_model.bin"});
  fuzz::take_or_refuse_at([&] { read_config(folder.path()); });
  fuzz::take_or_refuse_at([&] { read_all(WeightsReader(folder.path())); });
  return 0;
}
