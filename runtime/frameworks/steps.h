// The part of an import that all frameworks share: devices, the batch, the optimizer, and the machine.
#pragma once

#include <string>
#include <string_view>

#include "runtime/frameworks/launch.h"
#include "runtime/frameworks/parallelism.h"
#include "runtime/frameworks/reading.h"
#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

// The number of devices: --devices, else what the launcher says. 0: neither says it.
std::int32_t devices_of(const Reading& reading);
// The same; throws kMissingField if nobody says it.
std::int32_t required_devices(const Reading& reading);

// The devices that are left for data parallelism. Throws kBadLayout with the places of the sizes if the
// others do not divide the devices.
std::int32_t left_for_data(const Reading& reading, const Parallelism& layout, std::int32_t devices);

// Sets the batch and the micro-batches from the sequences of a micro-batch of one replica; `batch` 0: one
// micro-batch. Throws kBadValue if the batch does not divide.
void take_batch(Reading& reading, std::int32_t batch, std::int32_t micro_batch, std::int32_t replicas);

// Defaults of a framework where a configuration is silent.
struct TrainingDefaults {
  std::string_view framework;
  double beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, clip_norm = 1, init_std = 0.02;
  double min_lr_share = 0;
  std::string_view precision = "float32";
  double lr = 0;  // 0: there is none
};
void take_training(Reading& reading, const TrainingDefaults& defaults);
// The inverse.
void put_training(const TrainingSpec& training, Launch& launch);

// The machine: --profile, else `usual`, which is told; and the framework that runs on it, if there is a
// software profile of it. A profile that has its software keeps it.
void take_machine(Reading& reading, std::int32_t devices, const std::string& usual,
                  const std::string& software = "");

// Moves tensors of these categories to the pool, or to flash.
void take_offload(Reading& reading, std::vector<std::string> tensors, const std::string& tier = "pool");

std::int32_t micro_batch_size(const Job& job, const Parallelism& layout);

}  // namespace hyperrun::frameworks
