#include "runtime/reinforce/tasks.h"

#include <fmt/core.h>

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/permutation.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/text_lines.h"
#include "runtime/report/json.h"

namespace hyperrun {
namespace {

Error no_task(const std::string& cause, const std::string& place) {
  return Error(Code::kBadCorpus, cause)
      .at(place)
      .legal("{\"prompt\": \"12+7=\", \"answer\": \"19\"}")
      .fix("correct the line");
}

std::string text_of(const Json& object, const char* field, const std::string& place) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_string())
    throw no_task(std::string("the task has no text \"") + field + "\"", place);
  auto text = found->get<std::string>();
  if (text.empty()) throw no_task(std::string("\"") + field + "\" is empty", place);
  return text;
}

Task task_of(std::string_view line, const std::string& place) {
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) throw no_task("the line is no object of JSON", place);
  return {text_of(object, "prompt", place), text_of(object, "answer", place)};
}

// A hash that is the same on every machine: FNV-1a, mixed.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(h);
}

}  // namespace

std::vector<Task> parse_tasks(std::string_view text, const std::string& place) {
  std::vector<Task> tasks;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (!line.empty()) tasks.push_back(task_of(line, fmt::format("{}:{}", place, number)));
  }
  if (tasks.empty()) throw no_task("the file has no task", place);
  return tasks;
}

std::vector<Task> read_tasks(const std::filesystem::path& path) {
  return parse_tasks(read_file(path, Code::kBadCorpus), path.string());
}

TaskSplit split_tasks(std::vector<Task> tasks, std::int32_t one_of, const std::string& place) {
  TaskSplit split;
  for (Task& task : tasks) {
    const bool back = one_of > 0 && hash(task.prompt) % static_cast<std::uint64_t>(one_of) == 0;
    (back ? split.held_back : split.train).push_back(std::move(task));
  }
  if (split.train.empty() || (one_of > 0 && split.held_back.empty()))
    throw Error(Code::kBadCorpus,
                split.train.empty() ? "no task is left to train on" : "no task is held back")
        .at(place)
        .legal(fmt::format("so many tasks that one of {} can be held back", one_of))
        .fix("add tasks, or set reinforcement.held_back to 0");
  return split;
}

std::vector<std::size_t> tasks_of_step(std::size_t tasks, std::size_t each_step, std::int64_t step,
                                       std::uint64_t seed) {
  HR_CHECK(tasks > 0 && step >= 0);
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < each_step; ++i) {
    const std::uint64_t drawn = static_cast<std::uint64_t>(step) * each_step + i;
    list.push_back(permuted(drawn % tasks, tasks, mix(mix(seed) ^ (drawn / tasks))));
  }
  return list;
}

}  // namespace hyperrun
