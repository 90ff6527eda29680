#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "launcher/commands.h"
#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/llama2c.h"
#include "runtime/model/text/llama2c_tokenizer.h"
#include "runtime/run/text_data.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

// The checkpoint replaces the whole folder, so a folder with files in it is refused.
void require_empty(const fs::path& out) {
  std::error_code error;
  if (!fs::is_directory(out, error) || fs::is_empty(out, error)) return;
  throw Error(Code::kUnwritable, "the folder is not empty").at(out.string()).fix("give --out a new folder");
}

// The model block of a job that goes on from the checkpoint.
std::string model_block(const ModelSpec& m) {
  std::string text = "model {\n";
  const auto line = [&](const char* field, const std::string& value) {
    text += fmt::format("  {}: {}\n", field, value);
  };
  line("layers", std::to_string(m.layers));
  line("hidden", std::to_string(m.hidden));
  line("heads", std::to_string(m.heads));
  line("kv_heads", std::to_string(m.kv_heads));
  line("ffn", std::to_string(m.ffn));
  line("vocab", std::to_string(m.vocab));
  line("sequence", std::to_string(m.sequence));
  if (m.tied_head) line("tied_head", "true");
  return text + "}\n";
}

}  // namespace

int import_model(const ImportArguments& arguments) {
  const Llama2cFile file(arguments.file);
  const ModelSpec& model = file.model();
  std::optional<Tokenizer> tokenizer;
  if (!arguments.tokenizer.empty()) tokenizer = read_llama2c_tokenizer(arguments.tokenizer, model.vocab);
  require_empty(arguments.out);

  AtomicDirectory out(arguments.out);
  file.write_safetensors(out.path() / "model.safetensors");
  // llama2.c uses the ids 1 and 2 for begin and end of a text, whatever the tokenizer.
  const HfConfig config =
      tokenizer ? checkpoint_config(model, *tokenizer) : HfConfig{model, DType::kF32, {{2}}, 1};
  write_file(out.path() / "config.json", to_config_json(config));
  if (tokenizer) write_tokenizer(*tokenizer, out.path() / "tokenizer.json");
  out.commit();

  std::printf("%s is in %s. A job that goes on from it by --resume %s has\n\n%s", arguments.file.c_str(),
              arguments.out.c_str(), arguments.out.c_str(), model_block(model).c_str());
  if (!tokenizer)
    std::printf(
        "\nand data.tokenizer, as no tokenizer was imported: without one a new one would be trained.\n");
  return 0;
}

}  // namespace hyperrun
