#include "runtime/plan/layer_profile_memory.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <variant>

#include "runtime/compile/early_updates.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Several lists of numbers in one array, each found by its index.
class IndexLists {
 public:
  // `each`: a function that calls its argument with every pair of list index and item.
  template <class Each>
  IndexLists(std::size_t size, const Each& each) : first_(size + 1) {
    each([&](std::size_t list, std::size_t) { ++first_[list + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    items_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    each([&](std::size_t list, std::size_t item) { items_[next[list]++] = item; });
  }

  std::span<const std::size_t> operator[](std::size_t list) const {
    return std::span(items_).subspan(first_[list], first_[list + 1] - first_[list]);
  }

 private:
  std::vector<std::size_t> first_, items_;
};

IndexLists buffers_by_end(const std::vector<BufferLifetime>& lifetimes, const Program& program,
                          std::int32_t Buffer::*end) {
  return {program.instrs.size(), [&](const auto& take) {
            for (std::size_t b = 0; b < lifetimes.size(); ++b)
              if (!lifetimes[b].whole_step) take(at(program.buffers[b].*end), b);
          }};
}

// Communication buffers are never moved (runtime/compile/materialize_offload.h).
bool is_fixed(const Buffer& buffer) { return buffer.category == Category::kCommunication; }

std::int64_t& part_of(StateBytes& state, const Buffer& buffer) {
  switch (buffer.category) {
    case Category::kWeights: return buffer.state ? state.weights : state.copies;
    case Category::kOptimizer: return state.moments;
    case Category::kGradients: return state.gradients;
    default: return state.constants;
  }
}

}  // namespace

LayerProfileMemory::LayerProfileMemory(const ParametricStep& step, const LayerKinds& kinds,
                                       const std::vector<InstrSite>& sites,
                                       const std::vector<BufferLifetime>& lifetimes)
    : step_(step), program_(step.program()), kinds_(kinds), sites_(sites), lifetimes_(lifetimes) {
  find_step_buffers();
  find_events();
  find_deferred();
  find_update();
}

void LayerProfileMemory::add_to(StepProfile& profile) const {
  add_buffers(profile);
  add_deferred(profile);
  add_update(profile);
  add_peaks(profile);
}

void LayerProfileMemory::find_step_buffers() {
  step_buffers_.resize(lifetimes_.size());
  for (std::size_t b = 0; b < lifetimes_.size(); ++b) {
    if (!lifetimes_[b].whole_step) continue;
    StepBuffer& step_buffer = step_buffers_[b];
    const TensorId t = step_.tensor_in(b);
    if (is_split_over_experts(step_, t))
      step_buffer.state = &LayerProfile::expert, step_buffer.own = &GradientBytes::expert;
    else if (has_both_widths(step_, t))
      step_buffer.state = &LayerProfile::wide, step_buffer.own = &GradientBytes::wide;
    else if (!has_model_width(step_, t))
      step_buffer.state = &LayerProfile::narrow, step_buffer.own = &GradientBytes::narrow;
    if (t.valid()) step_buffer.shared_tensor_axes = shared_tensor_axes(step_, t);
  }
}

void LayerProfileMemory::find_events() {
  const IndexLists begin = buffers_by_end(lifetimes_, program_, &Buffer::first),
                   end = buffers_by_end(lifetimes_, program_, &Buffer::last);
  std::size_t from = 0, to = sites_.size();
  while (!is_middle(from)) ++from;
  while (!is_middle(to - 1)) --to;
  const auto add = [&](std::size_t b, std::int8_t sign) {
    const Buffer& buffer = program_.buffers[b];
    const bool comes_by = at(buffer.last) >= from && at(buffer.first) < to;
    if (!comes_by || (lifetimes_[b].kept && !is_middle(at(buffer.first)))) return;
    events_.push_back(
        {b, sign, lifetimes_[b].kept, std::clamp(lifetimes_[b].layer, -1, kinds_.layers()), {}});
  };
  for (std::size_t i = 0; i < to; ++i) {
    for (const std::size_t b : begin[i]) add(b, 1);
    const InstrSite& h = sites_[i];
    if (is_middle(i) && kinds_.is_representative(h.layer)) {
      events_.push_back({used_.size(), 0, false, h.layer, h.phase});
      used_.push_back(used_by(i));
    }
    for (const std::size_t b : end[i]) add(b, -1);
  }
}

// Finds the inputs of weight gradients in the middle micro-batch, apart from state and from buffers made for
// weight gradients.
void LayerProfileMemory::find_deferred() {
  std::vector<bool> counted(program_.buffers.size(), false);
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (!sites_[i].for_weights || !is_middle(i)) continue;
    for (const Operand& o : program_.instrs[i].in) {
      const std::size_t b = o.buffer.index();
      const std::int32_t made = program_.buffers[b].first;
      if (counted[b] || lifetimes_[b].whole_step || made < 0 || sites_[at(made)].for_weights) continue;
      counted[b] = true;
      if (kinds_.is_representative(sites_[i].layer)) deferred_.emplace_back(sites_[i].layer, b);
    }
  }
}

LayerProfileMemory::UsedBuffers LayerProfileMemory::used_by(std::size_t instr) const {
  UsedBuffers t{sites_[instr].for_weights, {}};
  each_use(program_.instrs[instr],
           [&](const Operand& o, bool, bool) { t.buffers.push_back(o.buffer.index()); });
  std::ranges::sort(t.buffers);
  const auto twice = std::ranges::unique(t.buffers);
  t.buffers.erase(twice.begin(), twice.end());
  return t;
}

// Finds what an update needs. If updates wait for the norm of all gradients, reduced gradients wait as well,
// and one instruction sums the squares of many gradients.
void LayerProfileMemory::find_update() {
  const auto is_update = [](const Instr& i) { return std::holds_alternative<instr::AdamW>(i.op); };
  const auto first =
      static_cast<std::int32_t>(std::ranges::find_if(program_.instrs, is_update) - program_.instrs.begin());
  const Instr* squares = nullptr;  // the one with the most gradients; there is one for each group of axes
  for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
    const Instr& instr = program_.instrs[i];
    const bool sums = std::holds_alternative<instr::SumSquares>(instr.op);
    if (sums && (squares == nullptr || instr.in.size() > squares->in.size())) squares = &instr;
    if (is_update(instr) && kinds_.is_representative(sites_[i].layer))
      updates_.emplace_back(sites_[i].layer, used_by(i));
  }
  if (may_come_early(program_)) return;  // then the sum of squares is cut as well
  if (squares != nullptr)
    for (const Operand& o : squares->in)
      if (const std::size_t b = o.buffer.index(); kinds_.is_representative(lifetimes_[b].layer))
        squared_.push_back(b);
  for (std::size_t b = 0; b < lifetimes_.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    const bool waits = buffer.first < first && first <= buffer.last && !lifetimes_[b].whole_step;
    if (waits && is_fixed(buffer) && kinds_.is_representative(lifetimes_[b].layer)) wait_.push_back(b);
  }
}

void LayerProfileMemory::add_buffers(StepProfile& all) const {
  for (std::size_t b = 0; b < lifetimes_.size(); ++b) {
    if (!kinds_.is_representative(lifetimes_[b].layer)) continue;
    const Buffer& buffer = program_.buffers[b];
    LayerProfile& profile = kinds_.profile_of(all, lifetimes_[b].layer);
    if (lifetimes_[b].whole_step) {
      add_step_buffer(profile, b);
      profile.largest_movable = std::max(profile.largest_movable, buffer.bytes.value);
      add_shared(all, b);
    } else if (lifetimes_[b].kept && buffer.first >= 0 && is_middle(at(buffer.first))) {
      profile.kept += buffer.bytes.value;
      if (is_fixed(buffer)) {
        profile.kept_fixed += buffer.bytes.value;
      } else {
        ++profile.kept_tensors;
        profile.kept_empty += buffer.empty.value;
        profile.largest_movable = std::max(profile.largest_movable, buffer.bytes.value);
      }
    }
  }
}

void LayerProfileMemory::add_step_buffer(LayerProfile& profile, std::size_t b) const {
  const Buffer& buffer = program_.buffers[b];
  const StepBuffer& step_buffer = step_buffers_[b];
  const std::int64_t bytes = buffer.bytes.value;
  part_of(profile.state, buffer) += bytes;
  part_of(profile.tensors, buffer) += 1;
  if (step_buffer.state != nullptr) part_of(profile.*step_buffer.state, buffer) += bytes;
  if (buffer.category == Category::kGradients)
    profile.own_gradients.*step_buffer.own += bytes / program_.mesh.size(step_buffer.shared_tensor_axes);
}

// Records weights of the embedding that the head uses too, and the reverse. The other device holds the weight
// that products read, and its gradient sum.
void LayerProfileMemory::add_shared(StepProfile& profile, std::size_t b) const {
  const BufferLifetime& lifetime = lifetimes_[b];
  const Buffer& buffer = program_.buffers[b];
  if (lifetime.layer < 0 && lifetime.used_behind) part_of(profile.last_too, buffer) += buffer.bytes.value;
  if (lifetime.layer >= kinds_.layers() && lifetime.used_before)
    part_of(profile.first_too, buffer) += buffer.bytes.value;
}

void LayerProfileMemory::add_deferred(StepProfile& profile) const {
  for (const auto& [layer, b] : deferred_) {
    const Buffer& buffer = program_.buffers[b];
    kinds_.profile_of(profile, layer).deferred += buffer.bytes.value;
    if (is_fixed(buffer)) kinds_.profile_of(profile, layer).deferred_fixed += buffer.bytes.value;
  }
}

void LayerProfileMemory::add_update(StepProfile& profile) const {
  const auto of = [&](std::size_t b) -> LayerProfile& {
    return kinds_.profile_of(profile, lifetimes_[b].layer);
  };
  for (const std::size_t b : wait_) of(b).gradients_fixed += program_.buffers[b].bytes.value;
  for (const std::size_t b : squared_) of(b).squared += movable_bytes(b);
  for (const auto& [layer, t] : updates_) {
    std::int64_t& most = kinds_.profile_of(profile, layer).largest_update;
    most = std::max(most, bytes_of(t).moves);
  }
}

std::int64_t LayerProfileMemory::movable_bytes(std::size_t b) const {
  const Buffer& buffer = program_.buffers[b];
  return is_fixed(buffer) ? 0 : buffer.bytes.value;
}

LayerProfileMemory::Bytes LayerProfileMemory::bytes_of(const UsedBuffers& t) const {
  Bytes bytes;
  for (const std::size_t b : t.buffers)
    bytes.all += program_.buffers[b].bytes.value, bytes.moves += movable_bytes(b);
  return bytes;
}

// Peaks of live bytes without state and without what other layers and micro-batches keep. The fixed peak
// counts communication buffers and all that the instruction itself uses.
void LayerProfileMemory::add_peaks(StepProfile& all) const {
  struct Lives {
    std::int64_t all = 0, fixed = 0;
  };
  Lives passing;
  std::vector<Lives> kept(at(kinds_.layers() + 2));  // by layer, in the middle micro-batch
  for (const MemoryEvent& w : events_) {
    if (w.sign != 0) {
      const Buffer& buffer = program_.buffers[w.which];
      Lives& lives = w.kept ? kept[at(w.layer + 1)] : passing;
      lives.all += w.sign * buffer.bytes.value;
      if (is_fixed(buffer)) lives.fixed += w.sign * buffer.bytes.value;
      continue;
    }
    LayerProfile& profile = kinds_.profile_of(all, w.layer);
    const Lives& own = kept[at(w.layer + 1)];
    std::int64_t& peak = w.phase == Phase::kForward ? profile.forward_peak : profile.backward_peak;
    peak = std::max(peak, passing.all + own.all);
    const UsedBuffers& t = used_[w.which];
    const Bytes used = bytes_of(t);
    if (!t.for_weights) profile.largest_instr = std::max(profile.largest_instr, used.all);
    profile.fixed_peak = std::max(profile.fixed_peak, passing.fixed + own.fixed + used.moves);
  }
}

}  // namespace hyperrun
