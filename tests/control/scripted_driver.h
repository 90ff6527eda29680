// A driver that issues a number of invocations and checks the results.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "runtime/control/controller.h"

namespace hyperrun::control {

// The answer of a test device: a number that depends on its rank and the invocation.
inline double answer(std::int32_t rank, const tasks::Invocation& invocation) {
  return 1000.0 * rank + static_cast<double>(std::get<std::int64_t>(invocation.scalars.at("offset"))) +
         0.5 * std::get<double>(invocation.scalars.at("lr"));
}

class ScriptedDriver : public tasks::Driver {
 public:
  explicit ScriptedDriver(std::int64_t invocations) : invocations_(invocations) {}

  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>& infos) override {
    devices = infos;
    if (!assignments.empty()) return assignments;
    return {{{7, "step", std::string("binary\0program", 14)}, {}}};
  }

  std::optional<tasks::Invocation> next_invocation() override {
    if (issued_ == invocations_ || (lockstep && issued_ > completed)) return std::nullopt;
    const std::int64_t n = issued_++;
    return tasks::Invocation{100 + n, 7, n, {{"offset", n * 3}, {"lr", 0.25 * static_cast<double>(n)}}};
  }

  void on_done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override {
    EXPECT_EQ(invocation.step, completed);
    EXPECT_EQ(results.size(), devices.size());
    for (std::size_t r = 0; r < results.size(); ++r) {
      EXPECT_EQ(results[r].id, invocation.id);
      EXPECT_EQ(results[r].outputs.at("answer"), answer(static_cast<std::int32_t>(r), invocation));
    }
    most_in_flight = std::max(most_in_flight, issued_ - completed);
    ++completed;
    reports.insert(results[0].report);
    if (hook) hook(completed);
  }

  void on_failed(const Error&) override {
    if (fails_in_failure) throw Error(Code::kUnwritable, "cannot write report.json");
  }

  bool fails_in_failure = false;
  std::vector<tasks::DeviceInfo> devices;
  std::vector<Assignment> assignments;
  bool lockstep = false;  // the next invocation depends on the last result
  std::function<void(std::int64_t)> hook;
  std::int64_t completed = 0, most_in_flight = 0;
  std::set<std::string> reports;

 private:
  std::int64_t invocations_, issued_ = 0;
};

}  // namespace hyperrun::control
