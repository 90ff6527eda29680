#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "launcher/commands.h"
#include "launcher/plan_job_file.h"
#include "runtime/base/error.h"
#include "runtime/frameworks/import.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/llama2c.h"
#include "runtime/model/text/llama2c_tokenizer.h"
#include "runtime/report/writable.h"
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

constexpr std::string_view kImportMark = "# Imported from ";

// An existing file is overwritten only if it was imported, so that a script named by mistake stays.
void require_place_for_job(const std::string& out, const std::string& run) {
  require_writable(out, "--out");
  std::error_code unseen;
  const auto refused = [&](const std::string& why) {
    return Error(Code::kUsage, why)
        .at("--out " + out)
        .legal(fmt::format("a new file, or one with \"{}\", as imported jobs have", kImportMark))
        .fix("name another file");
  };
  if (fs::equivalent(out, run, unseen)) throw refused("is the file that is imported");
  if (!fs::exists(out, unseen) || fs::file_size(out, unseen) == 0) return;
  std::ifstream file(out);
  std::string line;
  for (int n = 0; n < 4 && std::getline(file, line); ++n)
    if (line.starts_with(kImportMark)) return;
  throw refused("is there already, and no imported job");
}

std::map<std::string, std::string> variables_of(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> variables;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(Code::kUsage, fmt::format("\"{}\" sets no variable", pair))
          .at("--set")
          .legal("NAME=VALUE")
          .fix("write it as --set NNODES=8");
    variables[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return variables;
}

frameworks::RunImport options_of(const ImportArguments& a) {
  frameworks::RunImport options{.from = a.from, .model = a.model, .profile = a.profile, .recipe = a.recipe};
  if (a.devices > 0) options.devices = a.devices;
  if (a.vocab > 0) options.vocab = a.vocab;
  options.variables = variables_of(a.variables);
  if (a.arguments) {
    std::istringstream in(*a.arguments);
    options.arguments.emplace(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>());
  }
  return options;
}

}  // namespace

bool names_model(const ImportArguments& arguments) {
  return !arguments.tokenizer.empty() || arguments.file.ends_with(".bin");
}

int import_job(const ImportArguments& arguments) {
  const frameworks::RunImport options = options_of(arguments);
  const frameworks::ImportedRun run = frameworks::import_run(arguments.file, options);
  require_place_for_job(arguments.out, arguments.file);
  write_whole(arguments.out, "--out", run.text);
  std::printf("%s\n%s has the job: hyperrun check %s\n",
              frameworks::import_report(run, arguments.file).c_str(), arguments.out.c_str(),
              arguments.out.c_str());
  return 0;
}

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
