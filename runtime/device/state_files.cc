#include "runtime/device/state_files.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/device/saved_runs.h"
#include "runtime/device/state_image.h"
#include "runtime/device/state_transfer.h"
#include "runtime/device/tensor_parts.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/numbers.h"
#include "runtime/model/checkpoint/weights.h"

namespace hyperrun {
namespace {

// Returns room for bytes of this device's part; `settle` brings them to their place.
std::byte* place(const StateContext& c, const StateTensor& t, std::int64_t at, std::int64_t n,
                 const Staging& stage) {
  return t.tier == Tier::kHbm ? c.memory.hbm.view(t.offset + Bytes(at), Bytes(n)).data() : stage.data;
}

void settle(const StateContext& c, const StateTensor& t, std::int64_t at, std::int64_t n,
            const Staging& stage) {
  if (t.tier != Tier::kHbm)
    c.memory.beyond(t.tier).write(t.offset + Bytes(at), {stage.data, static_cast<std::size_t>(n)});
}

// Gathers the whole tensor on device 0; `whole` is empty on the others.
void gather(const StateContext& c, const HeldTensor& held, std::vector<std::byte>& whole) {
  const StateTensor& t = *held.tensor;
  const bool root = c.world.device() == 0;
  const Staging stage = staging(c);
  for (int device : owners(t, c.plan, held.role)) {
    const bool mine = c.world.device() == device;
    for (std::int64_t at = 0; at < t.bytes.value; at += stage.bytes) {
      const std::int64_t n = std::min(stage.bytes, t.bytes.value - at);
      std::byte* part = mine ? fetch(c, t, at, n, stage) : stage.data;
      if (mine && !root) transfer(c, Collective::kSend, part, n, 0);
      if (root && !mine) transfer(c, Collective::kRecv, part, n, device);
      if (root) copy_part(t, c.plan.mesh, device, at, n, whole.data(), part, PartCopy::kIntoWhole);
    }
  }
}

void scatter(const StateContext& c, const HeldTensor& held, std::byte* whole) {
  const StateTensor& t = *held.tensor;
  const bool root = c.world.device() == 0;
  const Staging stage = staging(c);
  for (int device = 0; device < c.world.devices(); ++device) {
    if (c.plan.role_of(device) != held.role) continue;
    const bool mine = c.world.device() == device;
    for (std::int64_t at = 0; at < t.bytes.value; at += stage.bytes) {
      const std::int64_t n = std::min(stage.bytes, t.bytes.value - at);
      std::byte* part = mine ? place(c, t, at, n, stage) : stage.data;
      if (root) copy_part(t, c.plan.mesh, device, at, n, whole, part, PartCopy::kOutOfWhole);
      if (root && !mine) transfer(c, Collective::kSend, part, n, device);
      if (mine && !root) transfer(c, Collective::kRecv, part, n, 0);
      if (mine) settle(c, t, at, n, stage);
    }
  }
}

std::int64_t whole_bytes(const StateTensor& t) {
  std::int64_t n = size_of(t.dtype);
  for (std::int64_t size : t.shape) n *= size;
  return n;
}

// Writes on device 0. After a failure nothing more is written, but the device goes on taking part: the others
// send it their parts.
class Attempt {
 public:
  template <class Write>
  void operator()(Write write) {
    if (failure_) return;
    try {
      write();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

void save_class(const StateContext& c, TensorClass cls, const std::filesystem::path& file, Attempt& attempt) {
  const std::vector<HeldTensor> tensors = held_tensors(c.plan, cls, false);
  const StateFile content = state_file(tensors);
  const bool root = c.world.device() == 0;
  std::unique_ptr<SafetensorsWriter> writer;
  if (root) attempt([&] { writer = std::make_unique<SafetensorsWriter>(file, content.tensors); });
  for (const HeldTensor& h : tensors) {
    std::vector<std::byte> whole(root ? static_cast<std::size_t>(whole_bytes(*h.tensor)) : 0);
    gather(c, h, whole);
    if (!root) continue;
    const std::vector<std::string> names = saved_names(h.tensor->saved);
    attempt([&] {
      for (const SavedRun& run : saved_runs(*h.tensor))
        writer->write(content.number.at(names[run.slice]), run.there,
                      std::span(whole).subspan(run.ours, static_cast<std::size_t>(run.bytes)));
    });
  }
  if (root) attempt([&] { writer->commit(); });
}

// The file's tensor that has elements of `t`.
Weight weight_of(const StateTensor& t, const std::string& saved, const WeightsReader& reader) {
  Weight weight = reader.read(saved, t.saved.shape);
  if (const DType there = weight.view.info.dtype; (there == DType::kI32) != (t.dtype == DType::kI32))
    throw Error(Code::kBadCheckpoint,
                "is " + std::string(name(there)) + ", the job holds it as " + std::string(name(t.dtype)))
        .at(reader.tensors().path().string() + ": " + saved);
  return weight;
}

// Copies a run of one tensor's elements; other formats are rounded or widened.
void copy_run(const SavedRun& run, DType to, const TensorView& from, std::byte* whole) {
  const DType there = from.info.dtype;
  if (there == to) {
    std::memcpy(whole + run.ours, from.data.data() + run.there, static_cast<std::size_t>(run.bytes));
    return;
  }
  const std::int64_t n = run.bytes / size_of(to);
  const std::byte* source = from.data.data() + run.there / size_of(to) * size_of(there);
  for (std::int64_t i = 0; i < n; ++i) {
    const float wide = number_at(source + i * size_of(there), there);
    if (to == DType::kF32) {
      std::memcpy(whole + run.ours + i * 4, &wide, 4);
    } else {
      const std::uint16_t narrow = f32_to_bf16(wide);
      std::memcpy(whole + run.ours + i * 2, &narrow, 2);
    }
  }
}

// The bits of a float's exponent, all of which are set if it is infinite or no number.
template <class Word>
bool all_finite(std::span<const std::byte> data, Word exponent) {
  bool finite = true;
  for (std::size_t at = 0; at + sizeof(Word) <= data.size(); at += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, data.data() + at, sizeof word);
    finite &= (word & exponent) != exponent;
  }
  return finite;
}

// Throws if a value is not finite. Such values spread, so they are reported here, where the tensor's name is
// known.
void check_finite(const TensorView& view, const std::filesystem::path& checkpoint) {
  const DType dtype = view.info.dtype;
  const bool finite = dtype == DType::kF32    ? all_finite<std::uint32_t>(view.data, 0x7f800000)
                      : dtype == DType::kBF16 ? all_finite<std::uint16_t>(view.data, 0x7f80)
                      : dtype == DType::kF16  ? all_finite<std::uint16_t>(view.data, 0x7c00)
                                              : true;
  if (!finite)
    throw Error(Code::kNotFinite, "has a number that is infinite or not a number")
        .at(checkpoint.string() + ": " + view.info.name)
        .legal("finite numbers")
        .fix("take an earlier checkpoint, or a file that is whole");
}

// The elements of `t`, from the tensors that have them in the file.
std::vector<std::byte> read_whole(const StateTensor& t, const WeightsReader& reader) {
  std::vector<std::byte> whole(static_cast<std::size_t>(whole_bytes(t)));
  const std::vector<std::string> names = saved_names(t.saved);
  std::optional<Weight> weight;
  std::size_t slice = 0;
  for (const SavedRun& run : saved_runs(t)) {  // the runs of a slice follow each other
    if (!weight || slice != run.slice) {
      slice = run.slice;
      weight.emplace(weight_of(t, names[slice], reader));
      check_finite(weight->view, reader.tensors().path());
    }
    copy_run(run, t.dtype, weight->view, whole.data());
  }
  return whole;
}

void load_class(const StateContext& c, TensorClass cls, const WeightsReader* reader) {
  for (const HeldTensor& h : held_tensors(c.plan, cls, true)) {
    std::vector<std::byte> whole;
    if (reader != nullptr) whole = read_whole(*h.tensor, *reader);
    scatter(c, h, whole.data());
  }
}

void check_class(const Plan& plan, TensorClass cls, const WeightsReader& reader) {
  std::vector<WantedTensor> wanted;
  for (const auto& [t, role] : held_tensors(plan, cls, false))
    for (const std::string& saved : saved_names(t->saved)) wanted.push_back({saved, t->saved.shape});
  reader.check(wanted);
}

// Writes all files of a state. `directory` exists on device 0, and is not looked at on the others.
void write_files(const StateContext& c, const std::filesystem::path& directory, const Unsplit& unsplit,
                 Attempt& attempt) {
  save_class(c, TensorClass::kWeight, directory / kWeightsFile, attempt);
  if (!held_tensors(c.plan, TensorClass::kOptimizer, false).empty())
    save_class(c, TensorClass::kOptimizer, directory / kMomentsFile, attempt);
  if (c.world.device() == 0) attempt([&] { write_unsplit(directory, unsplit); });
}

}  // namespace

void save_state(const StateContext& c, const std::filesystem::path& directory, const Unsplit& unsplit) {
  std::unique_ptr<AtomicDirectory> target;
  std::filesystem::path path;
  Attempt attempt;
  if (c.world.device() == 0)
    attempt([&] {
      target = std::make_unique<AtomicDirectory>(directory);
      path = target->path();
    });
  write_files(c, path, unsplit, attempt);
  if (target) attempt([&] { target->commit(); });
  attempt.rethrow();
}

void save_part(const StateContext& c, const std::filesystem::path& directory, const Unsplit& unsplit) {
  Attempt attempt;
  if (c.world.device() == 0) attempt([&] { std::filesystem::create_directories(directory); });
  write_files(c, directory, unsplit, attempt);
  attempt.rethrow();
}

void write_unsplit(const std::filesystem::path& directory, const Unsplit& unsplit) {
  write_file(directory / kTrainerStateFile, to_json(unsplit.trainer));
  for (const auto& [file, content] : unsplit.files) write_file(directory / file, content);
}

bool has_moments(const Plan& plan, const std::filesystem::path& directory) {
  return !held_tensors(plan, TensorClass::kOptimizer, false).empty() &&
         std::filesystem::exists(directory / kMomentsFile);
}

void load_weights(const StateContext& c, const std::filesystem::path& directory) {
  std::unique_ptr<WeightsReader> weights;
  if (c.world.device() == 0) {
    recover_directory(directory);
    check_weights(c.plan, directory);
    weights = std::make_unique<WeightsReader>(directory);
  }
  load_class(c, TensorClass::kWeight, weights.get());
}

void load_state(const StateContext& c, const std::filesystem::path& directory) {
  std::unique_ptr<WeightsReader> weights, moments;
  if (c.world.device() == 0) {
    recover_directory(directory);
    check_state(c.plan, directory);
    weights = std::make_unique<WeightsReader>(directory);
    if (has_moments(c.plan, directory)) moments = std::make_unique<WeightsReader>(directory / kMomentsFile);
  }
  load_class(c, TensorClass::kWeight, weights.get());
  if (agree(c, moments != nullptr)) load_class(c, TensorClass::kOptimizer, moments.get());
}

void check_weights(const Plan& plan, const std::filesystem::path& directory) {
  check_class(plan, TensorClass::kWeight, WeightsReader(directory));
}

void check_state(const Plan& plan, const std::filesystem::path& directory) {
  check_weights(plan, directory);
  if (has_moments(plan, directory))
    check_class(plan, TensorClass::kOptimizer, WeightsReader(directory / kMomentsFile));
}

}  // namespace hyperrun
