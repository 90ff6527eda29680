// Nothing is allocated during a step: once warm, not one call of operator new on any device's thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/samples.h"

namespace {

thread_local bool counting = false;
std::atomic<int> allocations{0};

}  // namespace

// This must not be inlined: the compiler would warn that free() meets the result of operator new. The nothrow
// version is replaced as well: the sanitizers' own does not call this one, and its result is no malloc's to
// them.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(bytes != 0 ? bytes : 1);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* p = operator new(bytes, std::nothrow)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace hyperrun::testing {
namespace {

int allocations_from(std::int64_t first_step, int hosts, const std::string& parallel = "dp:2 tp:2 sp") {
  RunOptions options;
  options.hosts = hosts;
  options.steps = 6;
  options.before_step = [=](int, std::int64_t step) { counting = step >= first_step; };
  options.after_step = [](int, std::int64_t) { counting = false; };
  allocations = 0;
  run_in_process(small_job(parallel), options);
  return allocations;
}

int allocations_of_a_policy() {
  Job job = small_job("dp:2 tp:2 sp");
  job.training.policy = {.clip = 0.2, .kl = 0.1};
  RunOptions options;
  options.steps = 6;
  options.samples = [&](std::int64_t step) { return made_up_samples(job, step); };
  options.before_step = [](int, std::int64_t step) { counting = step >= 2; };
  options.after_step = [](int, std::int64_t) { counting = false; };
  allocations = 0;
  run_in_process(job, options);
  return allocations;
}

TEST(Allocation, NoneInAWarmStep) { EXPECT_EQ(allocations_from(2, 1), 0); }
TEST(Allocation, NoneInAWarmStepOfARing) { EXPECT_EQ(allocations_from(2, 1, "ring:4"), 0); }
TEST(Allocation, NoneInAWarmStepInBfloat16) {
  EXPECT_EQ(allocations_from(2, 1, "dp:2 tp:2 sp zero3 bf16"), 0);
}
TEST(Allocation, NoneInAWarmStepOfAPolicy) { EXPECT_EQ(allocations_of_a_policy(), 0); }
TEST(Allocation, TheFirstStepIsSeenToAllocate) { EXPECT_GT(allocations_from(0, 1), 0); }

}  // namespace
}  // namespace hyperrun::testing
