// The tasks of reinforcement learning: prompts, each with its answer.
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

// Reads tasks, one on each line: {"prompt": "12+7=", "answer": "19"}; other fields are ignored. Throws
// kMissingFile, or kBadCorpus with the line.
std::vector<Task> read_tasks(const std::filesystem::path& path);
std::vector<Task> parse_tasks(std::string_view text, const std::string& place);

// The tasks to train on, and those held back for evaluation. The hash of a prompt's text decides, so the same
// prompt is never in both, and stays on its side when tasks are added.
struct TaskSplit {
  std::vector<Task> train, held_back;
};
// Holds back one of `one_of` tasks; 0: none. Throws kBadCorpus if no task is left to train on, or none is
// held back although one should be.
TaskSplit split_tasks(std::vector<Task> tasks, std::int32_t one_of, const std::string& place);

// The tasks of a step, as a function of seed and step. All tasks are taken once in a random order, then all
// again in another.
std::vector<std::size_t> tasks_of_step(std::size_t tasks, std::size_t each_step, std::int64_t step,
                                       std::uint64_t seed);

}  // namespace hyperrun
