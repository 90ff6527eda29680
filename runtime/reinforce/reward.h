// The rules that judge completions, which are programs of a job that need no device.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/reinforce/tasks.h"

namespace hyperrun {

// The reward of a completion, 0 to 1. `rule` is reinforcement.reward (proto/job.proto). Blanks around a
// completion do not count.
double reward(std::string_view rule, const Task& task, std::string_view completion);

// The advantage of each reward over its group of `samples` consecutive ones: the reward minus the group's
// mean, divided by the group's standard deviation (GRPO, Shao et al. 2024, equation of outcome supervision).
// 0 where all rewards of a group are equal.
std::vector<float> advantages(const std::vector<double>& rewards, std::size_t samples);

}  // namespace hyperrun
