#include "runtime/device/trainer_state.h"

#include <fmt/core.h>

#include <limits>

#include "runtime/model/checkpoint/json_file.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedName = "trainer_state.json";
constexpr const char* kForeignSteps = "global_step";  // a field that Hugging Face's Trainer always writes

std::int64_t natural(const JsonFields& fields, const char* field, std::int64_t most) {
  const std::int64_t value = fields.integer(field);
  if (value < 0) throw fields.error(field, fmt::format("is {}", value)).legal("0 or more");
  if (value > most)
    throw fields.error(field, fmt::format("is {}", value)).legal(fmt::format("0 to {}", most));
  return value;
}

std::int32_t small(const JsonFields& fields, const char* field) {
  return static_cast<std::int32_t>(natural(fields, field, std::numeric_limits<std::int32_t>::max()));
}

TrainedWith read_with(const JsonFields& fields) {
  TrainedWith with;
  with.steps = small(fields, "steps");
  with.batch = small(fields, "batch");
  with.warmup_steps = small(fields, "warmup_steps");
  with.lr = fields.number("lr", 0);
  with.min_lr = fields.number("min_lr", 0);
  with.sequence = small(fields, "sequence");
  return with;
}

bool is_foreign(const nlohmann::json& json) {
  return json.is_object() && json.contains(kForeignSteps) && !json.contains("next_step");
}

TrainerState parse_state(const nlohmann::json& json, const std::string& place) {
  const JsonFields fields(json, place);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  TrainerState state{natural(fields, "next_step", kMost)};
  if (fields.find("seed") != nullptr) state.seed = fields.natural("seed");
  if (fields.find("next_sample") != nullptr) state.next_sample = natural(fields, "next_sample", kMost);
  if (const nlohmann::json* with = fields.find("trained_with"); with != nullptr)
    state.with = read_with(JsonFields(*with, place + ": trained_with"));
  return state;
}

}  // namespace

std::string to_json(const TrainerState& state) {
  nlohmann::ordered_json json{{"next_step", state.next_step}, {"seed", state.seed.value_or(0)}};
  if (state.next_sample) json["next_sample"] = *state.next_sample;
  if (state.with)
    json["trained_with"] = {{"steps", state.with->steps},
                            {"batch", state.with->batch},
                            {"lr", state.with->lr},
                            {"min_lr", state.with->min_lr},
                            {"warmup_steps", state.with->warmup_steps},
                            {"sequence", state.with->sequence}};
  return json.dump(2) + "\n";
}

TrainerState read_trainer_state(const fs::path& directory) {
  if (const fs::path own = directory / kTrainerStateFile; fs::exists(own))
    return parse_state(read_json(own), own.string());
  const fs::path shared = directory / kSharedName;
  if (!fs::exists(shared)) return {};
  const nlohmann::json json = read_json(shared);
  return is_foreign(json) ? TrainerState{} : parse_state(json, shared.string());
}

std::optional<std::int64_t> steps_of_foreign_trainer(const fs::path& directory) {
  if (fs::exists(directory / kTrainerStateFile) || !fs::exists(directory / kSharedName)) return std::nullopt;
  const nlohmann::json json = read_json(directory / kSharedName);
  if (!is_foreign(json)) return std::nullopt;
  return JsonFields(json, (directory / kSharedName).string()).integer(kForeignSteps);
}

}  // namespace hyperrun
