#include "runtime/run/programs_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/device/trainer_state.h"
#include "runtime/model/checkpoint/json_file.h"

namespace hyperrun {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const QueuedBatch& batch) {
  Json json{{"step", batch.step}, {"version", batch.version}, {"completions", Json::array()}};
  for (const Completion& c : batch.completions)
    json["completions"].push_back({{"prompt", c.prompt}, {"tokens", c.tokens}, {"logp", c.logp}});
  json["reference"] = batch.reference;
  return json;
}

// A list of numbers. Those that a float32 was written as become the same float32 again.
template <class T>
std::vector<T> list(const JsonFields& fields, const char* field) {
  const nlohmann::json& json = fields.required(field);
  const bool whole = std::is_integral_v<T>;
  if (!json.is_array() || !std::ranges::all_of(json, [&](const nlohmann::json& v) {
        return whole ? v.is_number_integer() : v.is_number();
      }))
    throw fields.error(field, "is no list of numbers");
  return json.get<std::vector<T>>();
}

QueuedBatch read_batch(const nlohmann::json& json, const std::string& place) {
  const JsonFields fields(json, place);
  QueuedBatch batch{fields.integer("step"), fields.integer("version"), {}, list<float>(fields, "reference")};
  const nlohmann::json& completions = fields.required("completions");
  if (!completions.is_array()) throw fields.error("completions", "is no list");
  for (const nlohmann::json& c : completions) {
    const JsonFields of(c, fmt::format("{}: completions[{}]", place, batch.completions.size()));
    batch.completions.push_back(
        {list<std::int32_t>(of, "prompt"), list<std::int32_t>(of, "tokens"), list<float>(of, "logp")});
    if (batch.completions.back().tokens.size() != batch.completions.back().logp.size())
      throw of.error("logp", "has another number of elements than tokens");
  }
  return batch;
}

std::vector<std::string> read_parts(const JsonFields& fields) {
  std::vector<std::string> parts;
  const nlohmann::json& json = fields.required("parts");
  if (!json.is_array()) throw fields.error("parts", "is no list");
  for (const nlohmann::json& part : json) {
    if (!part.is_string()) throw fields.error("parts", "has what is no text");
    parts.push_back(part.get<std::string>());
  }
  return parts;
}

Error of_another_job(const Job& job, const std::string& cause) {
  return Error(Code::kBadCheckpoint, cause).at(job.run.resume);
}

// Throws unless the field of the job is that of the checkpoint's run.
template <class T>
void require_same(const char* field, T now, T before, const char* why) {
  if (now == before) return;
  throw Error(Code::kBadValue,
              fmt::format("the run of the checkpoint has {}, the job {}: {}", before, now, why))
      .at(field)
      .legal(fmt::format("{}", before))
      .fix("give the job the checkpoint's value");
}

}  // namespace

std::string to_json(const ProgramsState& s) {
  Json json{{"kind", s.kind},   {"next_step", s.next_step}, {"seed", s.seed},
            {"batch", s.batch}, {"evaluated", s.evaluated}, {"parts", s.parts}};
  if (s.kind == kOfRewards) {
    json["samples"] = s.samples;
    json["queued"] = Json::array();
    for (const QueuedBatch& batch : s.queued) json["queued"].push_back(json_of(batch));
  }
  return json.dump() + "\n";
}

std::optional<ProgramsState> read_programs_state(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kProgramsStateFile;
  if (!std::filesystem::exists(file)) return std::nullopt;
  const nlohmann::json json = read_json(file);
  const JsonFields fields(json, file.string());
  ProgramsState s;
  s.kind = fields.string("kind", "");
  if (s.kind != kOfRewards && s.kind != kOfEncoders)
    throw fields.error("kind", fmt::format("is \"{}\"", s.kind))
        .legal(fmt::format("\"{}\" or \"{}\"", kOfRewards, kOfEncoders));
  s.next_step = fields.integer("next_step");
  s.seed = fields.natural("seed");
  s.batch = fields.integer("batch");
  s.evaluated = fields.integer("evaluated");
  s.parts = read_parts(fields);
  if (s.kind != kOfRewards) return s;
  s.samples = fields.integer("samples");
  const nlohmann::json& queued = fields.required("queued");
  if (!queued.is_array()) throw fields.error("queued", "is no list");
  for (const nlohmann::json& batch : queued) {
    s.queued.push_back(read_batch(batch, fmt::format("{}: queued[{}]", file.string(), s.queued.size())));
    if (s.queued.back().step != s.next_step + std::ssize(s.queued) - 1)
      throw fields.error("queued", "is not in the order of the steps from next_step on");
  }
  return s;
}

std::optional<ProgramsState> state_to_resume(const Job& job, const std::string& kind,
                                             const std::vector<std::string>& parts, bool works_after_steps) {
  if (job.run.resume.empty()) return std::nullopt;
  std::optional<ProgramsState> state = read_programs_state(job.run.resume);
  if (!state && kind == kOfRewards) return std::nullopt;
  if (!state || state->kind != kind)
    throw of_another_job(job, fmt::format("it is no checkpoint of a job {}",
                                          kind == kOfRewards ? "that learns from rewards" : "with encoders"))
        .legal(kind == kOfRewards ? "a checkpoint of such a job, or weights of its model to begin with"
                                  : "a checkpoint of such a job")
        .fix("give a checkpoint of this job, or leave --resume out");
  if (state->parts != parts)
    throw of_another_job(job, fmt::format("it has the programs \"{}\", the job \"{}\"",
                                          joined(state->parts, "\", \""), joined(parts, "\", \"")));
  require_same("run.seed", job.run.seed, state->seed, "its samples would be others");
  require_same("training.batch", std::int64_t{job.training.batch}, state->batch,
               "its samples would be others");
  if (kind == kOfRewards)
    require_same("reinforcement.samples", std::int64_t{job.reinforcement.samples}, state->samples,
                 "its prompts would be others");
  const std::int64_t steps = job.training.steps, done = state->next_step;
  if (steps > 0 && (done > steps || (done == steps && !works_after_steps)))
    throw Error(Code::kBadValue,
                fmt::format("nothing is left to do: the checkpoint has {} steps behind it, the job has {}",
                            done, steps))
        .at("training.steps")
        .legal(fmt::format("more than {}", done))
        .fix("raise training.steps, or resume from an earlier checkpoint");
  return state;
}

std::string describe_resumed(const Job& job, const ProgramsState& state) {
  std::string text = fmt::format("resumed after step {} from {}", state.next_step, job.run.resume);
  if (!state.queued.empty())
    text += fmt::format(", with {} {} that no step has learned from", state.queued.size(),
                        state.queued.size() == 1 ? "batch" : "batches");
  return text + "\n";
}

}  // namespace hyperrun
