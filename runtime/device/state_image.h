// The state of a plan as the files of a checkpoint, byte by byte: which tensors each file has, and where the
// parts of the devices lie in it.
//
//   model.safetensors      header  tensor 0  tensor 1 ...
//                                  ^ device 0's rows, device 1's rows
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/model/checkpoint/safetensors.h"

namespace hyperrun {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kMomentsFile = "optimizer.safetensors";

// A state tensor and a role that holds it.
struct HeldTensor {
  const StateTensor* tensor;
  std::size_t role;
};

// State tensors of one class, in the order of the roles. A tensor that several roles hold is listed once,
// with `all` once for each role.
std::vector<HeldTensor> held_tensors(const Plan& plan, TensorClass cls, bool all);

// The tensors of a file that has those of one class, and the place of each name among them.
struct StateFile {
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::size_t> number;
};
StateFile state_file(const std::vector<HeldTensor>& held);

class StateImage {
 public:
  // `plan` must outlive the image. Of the devices that hold the same part, those that are `near` the files
  // share the work: each part is that of one of them. Only parts of devices that are `wanted` are listed.
  // `near` must be the same on all devices.
  using Devices = std::function<bool(int device)>;
  StateImage(const Plan& plan, const Devices& near, const Devices& wanted);

  struct File {
    std::string name, header;
    std::int64_t bytes = 0;  // of the whole file
  };
  const std::vector<File>& files() const { return files_; }
  std::int64_t bytes() const;  // of all files

  // A device's part of a tensor. The parts of all devices together are the whole state, each byte once.
  struct Part {
    const StateTensor* tensor = nullptr;
    int device = 0;
    std::size_t file = 0;
  };
  // In an order that is the same on all devices.
  const std::vector<Part>& parts() const { return parts_; }

  // A run of bytes that are contiguous both in a part and in the file.
  struct Run {
    std::int64_t part = 0, there = 0, bytes = 0;
  };
  // All runs of a part that the file has, in its order. Rows of padding are in no file.
  std::vector<Run> runs(const Part& part) const;

 private:
  void add_file(const char* name, TensorClass cls, const Devices& near, const Devices& wanted);
  int choose_holder(const StateTensor& tensor, int owner, const Devices& near);

  const Plan& plan_;
  std::map<int, std::int64_t> copies_;  // by device: bytes of its parts
  std::vector<File> files_;
  std::vector<std::map<std::string, std::int64_t>> begin_;  // by file: first byte of each of its tensors
  std::vector<Part> parts_;
};

}  // namespace hyperrun
