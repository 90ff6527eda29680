#include "runtime/device/background_task.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace hyperrun {
namespace {

constexpr int kLowestPriority = 19;  // of the nice values: a 68th of the weight of a thread that computes

}  // namespace

void BackgroundTask::begin(std::function<void()> work) {
  wait();
  busy_ = true;
  thread_ = std::thread([this, work = std::move(work)] {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
    work();
    busy_ = false;
  });
}

void BackgroundTask::wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace hyperrun
