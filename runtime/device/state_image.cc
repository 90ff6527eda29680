#include "runtime/device/state_image.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/device/saved_runs.h"
#include "runtime/device/tensor_parts.h"
#include "runtime/model/checkpoint/safetensors_header.h"

namespace hyperrun {

std::vector<HeldTensor> held_tensors(const Plan& plan, TensorClass cls, bool all) {
  std::vector<HeldTensor> list;
  std::set<std::string_view> known;
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (const StateTensor& t : plan.roles[r].state)
      if (t.cls == cls && (known.insert(t.name).second || all)) list.push_back({&t, r});
  return list;
}

StateFile state_file(const std::vector<HeldTensor>& held) {
  StateFile file;
  for (const auto& [t, role] : held)
    for (const std::string& name : saved_names(t->saved))
      if (file.number.emplace(name, file.tensors.size()).second)
        file.tensors.push_back({name, t->dtype, t->saved.shape});
  return file;
}

StateImage::StateImage(const Plan& plan, const Devices& near, const Devices& wanted) : plan_(plan) {
  add_file(kWeightsFile, TensorClass::kWeight, near, wanted);
  if (!held_tensors(plan, TensorClass::kOptimizer, false).empty())
    add_file(kMomentsFile, TensorClass::kOptimizer, near, wanted);
}

void StateImage::add_file(const char* name, TensorClass cls, const Devices& near, const Devices& wanted) {
  const std::vector<HeldTensor> held = held_tensors(plan_, cls, false);
  for (const HeldTensor& h : held)
    for (const int owner : owners(*h.tensor, plan_, h.role))
      if (const int device = choose_holder(*h.tensor, owner, near); wanted(device))
        parts_.push_back({h.tensor, device, files_.size()});
  const SafetensorsHeader header = lay_out(state_file(held).tensors);
  File file{name, encode_header(header)};
  file.bytes = std::ssize(file.header);
  begin_.emplace_back();
  for (const PlacedTensor& t : header.tensors) {
    begin_.back().emplace(t.info.name, std::ssize(file.header) + t.begin);
    file.bytes += t.info.bytes();
  }
  files_.push_back(std::move(file));
}

// Returns the device that copies a part: of those that hold the same as `owner` and are near the files, the
// one with the least to copy so far. It is the owner if none is near.
int StateImage::choose_holder(const StateTensor& tensor, int owner, const Devices& near) {
  AxisSet others = set_of(plan_.role_axes);
  for (const AxisList& axes : tensor.layout.dims) others = others | set_of(axes);
  AxisSet replicas;
  for (AxisId a = 0; a < plan_.mesh.rank(); ++a)
    if (!others.has(a)) replicas.add(a);
  std::vector<int> holders = plan_.mesh.group(owner, plan_.mesh.list(replicas));
  std::erase_if(holders, [&](int device) { return !near(device); });
  if (holders.empty()) return owner;
  const int chosen = *std::ranges::min_element(holders, {}, [this](int device) { return copies_[device]; });
  copies_[chosen] += tensor.bytes.value;
  return chosen;
}

std::int64_t StateImage::bytes() const {
  std::int64_t sum = 0;
  for (const File& file : files_) sum += file.bytes;
  return sum;
}

std::vector<StateImage::Run> StateImage::runs(const Part& part) const {
  const StateTensor& t = *part.tensor;
  const std::vector<std::string> names = saved_names(t.saved);
  const std::vector<SavedRun> saved = saved_runs(t);  // ascending in our own elements
  std::vector<Run> list;
  for (const PartRun& run : part_runs(t, plan_.mesh, part.device)) {
    const std::int64_t end = run.whole + run.bytes;
    auto s = std::ranges::partition_point(
        saved, [&](const SavedRun& r) { return static_cast<std::int64_t>(r.ours) + r.bytes <= run.whole; });
    for (; s != saved.end() && static_cast<std::int64_t>(s->ours) < end; ++s) {
      const auto ours = static_cast<std::int64_t>(s->ours);
      const std::int64_t from = std::max(ours, run.whole), to = std::min(ours + s->bytes, end);
      const Run next{run.part + from - run.whole,
                     begin_[part.file].at(names[s->slice]) + s->there + from - ours, to - from};
      Run* last = list.empty() ? nullptr : &list.back();
      if (last != nullptr && last->part + last->bytes == next.part && last->there + last->bytes == next.there)
        last->bytes += next.bytes;
      else
        list.push_back(next);
    }
  }
  return list;
}

}  // namespace hyperrun
