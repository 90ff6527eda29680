// Rules that judge a completion: programs of the job that need no device.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/reinforce/tasks.h"

namespace hyperrun {

// 0 to 1. `rule`: reinforcement.reward (proto/job.proto). Blanks around a completion do not count.
double reward(std::string_view rule, const Task& task, std::string_view completion);

// Of rewards in groups of `samples` that follow one another, how much better each is than its group: less the
// group's mean, divided by its standard deviation (GRPO, Shao et al. 2024, equation of outcome supervision);
// 0 where all are alike.
std::vector<float> advantages(const std::vector<double>& rewards, std::size_t samples);

}  // namespace hyperrun
