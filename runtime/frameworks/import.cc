#include "runtime/frameworks/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/frameworks/config_file.h"
#include "runtime/frameworks/job_text.h"
#include "runtime/frameworks/launch_command.h"
#include "runtime/frameworks/python_recipe.h"
#include "runtime/frameworks/tables.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun::frameworks {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The first characters that are no blank and no comment.
std::string_view beginning(std::string_view text) {
  while (true) {
    const std::size_t at = text.find_first_not_of(" \t\r\n");
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at);
    if (text[0] != '#') return text;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

bool has_line_beginning(std::string_view text, std::string_view start) {
  return text.starts_with(start) || has(text, "\n" + std::string(start));
}

bool is_mindspeed(std::string_view content) {
  for (const std::string_view word : {"mindspeed", "NPUS_PER_NODE", "ASCEND", "HCCL_", "--use-fused-rmsnorm",
                                      "multi-head-latent-attention", "context-parallel-algo"})
    if (has(content, word)) return true;
  return false;
}

const Framework* recognise_yaml(std::string_view content) {
  using enum FrameworkKind;
  if (has_line_beginning(content, "MODEL_ARGS:"))
    return &framework_of(is_mindspeed(content) ? kMindspeed : kMegatron);
  if (has_line_beginning(content, "accelerator:") || has_line_beginning(content, "fsdp_config:"))
    return &framework_of(kHyperParallel);
  if (has_line_beginning(content, "parallel_config:") || has_line_beginning(content, "runner_config:"))
    return &framework_of(kMindformers);
  if (has_line_beginning(content, "model_name_or_path:") || has_line_beginning(content, "finetuning_type:"))
    return &framework_of(kLlamaFactory);
  if (has(content, "tensor_model_parallel_size:") || has(content, "pipeline_model_parallel_size:") ||
      has_line_beginning(content, "train:"))
    return &framework_of(kMegatronBridge);
  return nullptr;
}

bool looks_like_toml(std::string_view content) {
  for (const std::string_view table :
       {"[parallelism]", "[training]", "[model]", "[job]", "[experimental]", "[optimizer]"})
    if (has_line_beginning(content, table)) return true;
  return false;
}

bool looks_like_python(std::string_view content) {
  return (has_line_beginning(content, "def ") || has_line_beginning(content, "import ") ||
          has_line_beginning(content, "from ")) &&
         (has(content, "cfg.") || has(content, "ConfigContainer") || has(content, "megatron.bridge") ||
          has(content, "parallel"));
}

bool looks_like_shell(std::string_view content) {
  if (content.starts_with("#!") && has(content.substr(0, 64), "sh")) return true;
  for (const std::string_view word : {"torchrun", "python", "deepspeed ", "srun", "mpirun", "export ", " --"})
    if (has(content, word)) return true;
  return false;
}

bool is_arguments(std::string_view content) { return beginning(content).starts_with("--"); }

struct Settings {
  std::vector<Setting> settings;
  std::vector<Assumption> notes;
  std::string recipe;
};

// Bridge's fields have the names of Megatron-LM's arguments, behind a block and with underscores.
void name_as_arguments(std::vector<Setting>& settings) {
  for (Setting& s : settings) {
    s.name = s.name.substr(s.name.rfind('.') + 1);
    while (s.name.starts_with('-')) s.name.erase(0, 1);
    std::ranges::replace(s.name, '_', '-');
    if (s.name == "hf-model-id") s.name = "hf-path";
    if (s.value == "float32") s.value = "fp32";
    if (s.value == "bfloat16") s.value = "bf16";
  }
}

// The arguments of a YAML file that lists them below MODEL_ARGS.
void keep_arguments(std::vector<Setting>& settings) {
  std::erase_if(settings, [](const Setting& s) {
    return !s.name.starts_with("MODEL_ARGS.") && !s.name.starts_with("launcher ");
  });
  for (Setting& s : settings)
    if (s.value == "true") s.value.clear(), s.has_value = false;
  std::erase_if(settings, [](const Setting& s) { return s.value == "false"; });
}

Settings read_settings(const std::filesystem::path& path, std::string_view content,
                       const Framework& framework, const RunImport& options) {
  const std::string place = path.string();
  const shell::ScriptOptions script{options.variables, options.arguments};
  switch (framework.kind) {
    case FrameworkKind::kMegatron:
    case FrameworkKind::kMindspeed: {
      if (has_line_beginning(content, "MODEL_ARGS:")) {
        Settings s{read_yaml(place, content), {}, ""};
        keep_arguments(s.settings);
        name_as_arguments(s.settings);
        return s;
      }
      ScriptSettings s = is_arguments(content) ? settings_of_arguments(path, content, script)
                                               : settings_of_script(path, content, script);
      return {std::move(s.settings), std::move(s.notes), ""};
    }
    case FrameworkKind::kMegatronBridge: {
      Settings s;
      if (looks_like_python(content)) {
        RecipeSettings recipe = read_python_recipe(place, content, options.recipe);
        s = {std::move(recipe.settings), std::move(recipe.notes), recipe.name};
      } else {
        s.settings = read_yaml(place, content);
      }
      name_as_arguments(s.settings);
      return s;
    }
    case FrameworkKind::kTorchtitan: return {read_toml(place, content), {}, ""};
    case FrameworkKind::kDeepspeed: return {read_json_config(place, content), {}, ""};
    default: return {read_yaml(place, content), {}, ""};
  }
}

// "deepseek_v3_pretrain_1024gpu_h100_config" names its devices.
void take_devices_of_name(const std::string& name, Launch& launch) {
  const std::size_t at = name.find("gpu");
  if (at == std::string::npos) return;
  std::size_t begin = at;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  if (begin < at && at - begin < 7) launch.devices = std::stoi(name.substr(begin, at - begin));
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code none;
  if (!in || std::filesystem::is_directory(path, none))
    throw Error(Code::kMissingFile, "cannot be read")
        .at(path.string())
        .legal("a launch script or a configuration")
        .fix("name an existing file");
  return {std::istreambuf_iterator<char>(in), {}};
}

// The file that LLaMA-Factory's "deepspeed" names, beside the configuration or in a folder above.
void take_deepspeed_file(const std::filesystem::path& path, Reading& r, std::vector<Assumption>& notes) {
  if (!r.launch.deepspeed_file) return;
  const std::filesystem::path named = *r.launch.deepspeed_file;
  std::error_code none;
  std::filesystem::path folder = std::filesystem::absolute(path, none).parent_path();
  for (int up = 0; up < 8; ++up, folder = folder.parent_path())
    for (const std::filesystem::path& candidate :
         {folder / named, folder / named.filename(), folder / "deepspeed" / named.filename()})
      if (std::filesystem::is_regular_file(candidate, none)) {
        const std::vector<Finding> more =
            deepspeed_table().read(read_json_config(candidate.string(), read_file(candidate)), r.launch);
        r.findings.insert(r.findings.end(), more.begin(), more.end());
        return;
      }
  const std::string name = named.filename().string();
  for (const char stage : {'0', '1', '2', '3'})
    for (const std::string& form :
         {std::string("z") + stage, std::string("zero") + stage, std::string("stage") + stage})
      if (has(name, form) && !r.launch.zero) r.launch.zero = stage - '0';
  notes.push_back({r.place("the fields of that file"),
                   fmt::format("{} is not beside the configuration; its name says ZeRO {}", named.string(),
                               r.launch.zero.value_or(0))});
}

// Wrappers of attention say by their names how the context is divided.
void take_wrapper_names(const std::vector<Setting>& settings, Launch& launch) {
  if (launch.context_kind) return;
  for (const Setting& s : settings)
    if (has(s.name, "inner_wrapper"))
      for (const auto& [word, kind] : {std::pair("hybrid", "hybrid"), std::pair("ulysses", "ulysses"),
                                       std::pair("colossal", "ring"), std::pair("ring", "ring")})
        if (has(s.value, word)) {
          launch.context_kind = kind;
          return;
        }
}

// With --devices the launcher's own words for them, such as "gpu" or "1:4", need not be numbers.
void set_aside_launcher(std::vector<Setting>& settings) {
  for (Setting& s : settings)
    if ((s.name == "launcher nnodes" || s.name == "launcher per-node" || s.name == "launcher world") &&
        s.value.find_first_not_of("0123456789") != std::string::npos)
      s.name += ", as --devices says";
}

Error not_recognised(const std::filesystem::path& path) {
  std::vector<std::string_view> names;
  for (const Framework& f : frameworks()) names.push_back(f.name);
  return Error(Code::kSyntax, "no framework has such a configuration, as far as its content says")
      .at(path.string())
      .legal(joined(names))
      .fix("say which by --from");
}

std::string heading(const Framework& framework, const std::filesystem::path& path) {
  return fmt::format(
      "# proto-file: proto/job.proto\n# proto-message: hyperrun.proto.Job\n# Imported from {} ({}). hyperrun "
      "import "
      "tells what came of each setting.\n",
      path.filename().string(), framework.title);
}

// Frameworks that drop no token allocate what arrives. A job plans its memory before it runs: for an even
// load, unless the run says otherwise.
void assume_even_load(Reading& r) {
  ExpertsSpec& experts = r.job.model.experts;
  if (experts.count == 0 || experts.capacity.factor > 0) return;
  experts.capacity = {.factor = 1, .drop = false};
  r.assume("model.experts.capacity", "memory for an even load of the experts; none is dropped");
}

// A job that breaks a rule of jobs is told at the setting that the field came from.
Error at_setting(const Error& e, const Reading& r) {
  std::string cause = e.cause();
  std::string where;
  for (const Finding& f : r.findings) {
    const std::string field = f.meaning.substr(f.meaning.rfind('.') + 1);
    if (f.verdict != Verdict::kTaken || field.empty() || !has(cause, field + " ")) continue;
    where = f.setting.place;
    cause += fmt::format("; see {} {}", f.setting.name, f.setting.value);
    break;
  }
  if (where.empty() && !r.findings.empty())
    where = r.findings.front().setting.place.substr(0, r.findings.front().setting.place.find(':'));
  return Error(e.code(), "no job can be of this: " + cause)
      .at(where)
      .legal(e.legal())
      .fix("change the setting, or the option that gives it");
}

}  // namespace

const Framework* recognise(const std::filesystem::path& path, std::string_view content) {
  using enum FrameworkKind;
  const std::string extension = path.extension().string();
  const std::string_view start = beginning(content);
  if (start.starts_with("{") && (extension == ".json" || has(content, "\"")))
    return &framework_of(kDeepspeed);
  if (extension == ".py") return &framework_of(kMegatronBridge);
  if (extension == ".toml") return &framework_of(kTorchtitan);
  if (extension == ".yaml" || extension == ".yml") return recognise_yaml(content);
  if (is_arguments(content)) return &framework_of(is_mindspeed(content) ? kMindspeed : kMegatron);
  if (extension != ".sh" && looks_like_toml(content)) return &framework_of(kTorchtitan);
  if (extension != ".sh" && looks_like_python(content)) return &framework_of(kMegatronBridge);
  if (const Framework* yaml = extension == ".sh" ? nullptr : recognise_yaml(content)) return yaml;
  if (looks_like_shell(content)) return &framework_of(is_mindspeed(content) ? kMindspeed : kMegatron);
  return nullptr;
}

ImportedRun import_run(const std::filesystem::path& path, const RunImport& options) {
  return import_run(path, read_file(path), options);
}

ImportedRun import_run(const std::filesystem::path& path, std::string_view content,
                       const RunImport& options) {
  // A file that is binary has no settings in any framework.
  shell::Sources().add(path.string(), content);
  const Framework* framework =
      options.from.empty() ? recognise(path, content) : &framework_named(options.from, "--from", false);
  if (framework == nullptr) throw not_recognised(path);
  if (framework->kind == FrameworkKind::kDeepspeed && has(content, "\"architectures\""))
    throw Error(Code::kSyntax, "a model's config.json, which says nothing of a run")
        .at(path.string())
        .legal("a launch script, or a configuration of a run")
        .fix("give it by --model, beside a script or a configuration");

  ImportOptions given;
  given.devices = options.devices, given.profile = options.profile, given.vocab = options.vocab;
  if (!options.model.empty())
    given.model = read_config(options.model).model, given.model_path = options.model;

  Settings settings = read_settings(path, content, *framework, options);
  if (settings.settings.empty())
    throw Error(Code::kMissingField, "the file has no setting")
        .at(path.string())
        .legal(fmt::format("a configuration of {}", framework->title))
        .fix("name the file that has the settings, or its kind by --from");
  if (options.devices) set_aside_launcher(settings.settings);
  Launch launch;
  std::vector<Finding> findings = framework->table().read(settings.settings, launch);
  if (framework->kind == FrameworkKind::kHyperParallel) take_wrapper_names(settings.settings, launch);
  take_devices_of_name(settings.recipe, launch);
  Reading reading(std::move(launch), std::move(findings), given);
  if (framework->kind == FrameworkKind::kLlamaFactory) take_deepspeed_file(path, reading, settings.notes);
  framework->to_job(reading);
  assume_even_load(reading);

  ImportedRun run;
  run.framework = framework;
  const bool flags =
      framework->kind == FrameworkKind::kMegatron || framework->kind == FrameworkKind::kMindspeed;
  run.text = job_text(reading, heading(*framework, path), flags);
  try {
    const std::filesystem::path beside = path.parent_path() / "imported.textproto";
    run.job = parse_job(run.text, beside.string(), JobUse::kToBeForeseen).job;
  } catch (const JobError& e) {
    throw at_setting(e.all().front(), reading);
  }
  run.findings = std::move(reading.findings);
  run.assumptions = std::move(reading.assumptions);
  run.left_out = std::move(reading.left_out);
  run.notes = std::move(settings.notes);
  return run;
}

}  // namespace hyperrun::frameworks
