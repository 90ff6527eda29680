// What is to be learned: prompts, each with its answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

struct Task {
  std::string prompt, answer;
  bool operator==(const Task&) const = default;
};

// A line each: {"prompt": "12+7=", "answer": "19"}; further fields are left alone. Throws kMissingFile or
// kBadCorpus with the line.
std::vector<Task> read_tasks(const std::filesystem::path& path);
std::vector<Task> parse_tasks(std::string_view text, const std::string& place);

// Those that are trained on, and those that are not. A prompt is held back by its text, so that the same
// prompt is never in both, and stays where it is when tasks are added.
struct TaskSplit {
  std::vector<Task> train, held_back;
};
// `one_of`: of so many tasks one is held back; 0: none. Throws kBadCorpus where nothing is left to train on,
// or nothing is held back that should be.
TaskSplit split_tasks(std::vector<Task> tasks, std::int32_t one_of, const std::string& place);

// The tasks of a step: a function of seed and step. All are taken once in an order, then again in another.
std::vector<std::size_t> tasks_of_step(std::size_t tasks, std::size_t each_step, std::int64_t step,
                                       std::uint64_t seed);

}  // namespace hyperrun
