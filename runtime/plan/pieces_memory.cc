#include "runtime/plan/pieces_memory.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <variant>

#include "runtime/compile/early_updates.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Lists by index, one behind the other.
class Lists {
 public:
  // `each`: calls what it is given with the index and the item of each.
  template <class Each>
  Lists(std::size_t size, const Each& each) : first_(size + 1) {
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

Lists passing_by(const std::vector<Stay>& stays, const Program& program, std::int32_t Buffer::*end) {
  return {program.instrs.size(), [&](const auto& take) {
            for (std::size_t b = 0; b < stays.size(); ++b)
              if (!stays[b].lasts) take(at(program.buffers[b].*end), b);
          }};
}

// Of what is exchanged nothing moves (runtime/compile/materialize_offload.h).
bool stays_here(const Buffer& buffer) { return buffer.category == Category::kCommunication; }

std::int64_t& part_of(StateBytes& state, const Buffer& buffer) {
  switch (buffer.category) {
    case Category::kWeights: return buffer.state ? state.weights : state.copies;
    case Category::kOptimizer: return state.moments;
    case Category::kGradients: return state.gradients;
    default: return state.constants;
  }
}

}  // namespace

PiecesMemory::PiecesMemory(const SizedStep& step, const LayerKinds& kinds, const std::vector<Home>& homes,
                           const std::vector<Stay>& stays)
    : step_(step), program_(step.program()), kinds_(kinds), homes_(homes), stays_(stays) {
  find_lasting();
  find_walk();
  find_put_off();
  find_update();
}

void PiecesMemory::take(Pieces& pieces) const {
  take_buffers(pieces);
  take_put_off(pieces);
  take_update(pieces);
  take_peaks(pieces);
}

void PiecesMemory::find_lasting() {
  lasting_.resize(stays_.size());
  for (std::size_t b = 0; b < stays_.size(); ++b) {
    if (!stays_[b].lasts) continue;
    Lasting& lasting = lasting_[b];
    const TensorId t = step_.tensor_in(b);
    if (lies_over_experts(step_, t))
      lasting.state = &LayerPieces::spread, lasting.own = &OwnGradients::spread;
    else if (has_two_widths(step_, t))
      lasting.state = &LayerPieces::wide, lasting.own = &OwnGradients::wide;
    else if (!has_width(step_, t))
      lasting.state = &LayerPieces::narrow, lasting.own = &OwnGradients::narrow;
    if (t.valid()) lasting.cut_by = cut_by(step_, t);
  }
}

void PiecesMemory::find_walk() {
  const Lists begin = passing_by(stays_, program_, &Buffer::first),
              end = passing_by(stays_, program_, &Buffer::last);
  std::size_t from = 0, to = homes_.size();
  while (!is_middle(from)) ++from;
  while (!is_middle(to - 1)) --to;
  const auto add = [&](std::size_t b, std::int8_t sign) {
    const Buffer& buffer = program_.buffers[b];
    const bool comes_by = at(buffer.last) >= from && at(buffer.first) < to;
    if (!comes_by || (stays_[b].kept && !is_middle(at(buffer.first)))) return;
    walk_.push_back({b, sign, stays_[b].kept, std::clamp(stays_[b].layer, -1, kinds_.layers()), {}});
  };
  for (std::size_t i = 0; i < to; ++i) {
    for (const std::size_t b : begin[i]) add(b, 1);
    const Home& h = homes_[i];
    if (is_middle(i) && kinds_.stands(h.layer)) {
      walk_.push_back({together_.size(), 0, false, h.layer, h.phase});
      together_.push_back(together(i));
    }
    for (const std::size_t b : end[i]) add(b, -1);
  }
}

// What gradients of weights read in the middle micro-batch that does not last and is not made for them.
void PiecesMemory::find_put_off() {
  std::vector<bool> counted(program_.buffers.size(), false);
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    if (!homes_[i].for_weights || !is_middle(i)) continue;
    for (const Operand& o : program_.instrs[i].in) {
      const std::size_t b = o.buffer.index();
      const std::int32_t made = program_.buffers[b].first;
      if (counted[b] || stays_[b].lasts || made < 0 || homes_[at(made)].for_weights) continue;
      counted[b] = true;
      if (kinds_.stands(homes_[i].layer)) put_off_.emplace_back(homes_[i].layer, b);
    }
  }
}

PiecesMemory::Together PiecesMemory::together(std::size_t instr) const {
  Together t{homes_[instr].for_weights, {}};
  each_use(program_.instrs[instr],
           [&](const Operand& o, bool, bool) { t.buffers.push_back(o.buffer.index()); });
  std::ranges::sort(t.buffers);
  const auto twice = std::ranges::unique(t.buffers);
  t.buffers.erase(twice.begin(), twice.end());
  return t;
}

// Where updates wait for the norm of all gradients, what was exchanged of these waits too, and squares are
// summed up of many at once.
void PiecesMemory::find_update() {
  const auto is_update = [](const Instr& i) { return std::holds_alternative<instr::AdamW>(i.op); };
  const auto first =
      static_cast<std::int32_t>(std::ranges::find_if(program_.instrs, is_update) - program_.instrs.begin());
  const Instr* squares = nullptr;  // of most gradients: there is one of each group of axes
  for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
    const Instr& instr = program_.instrs[i];
    const bool sums = std::holds_alternative<instr::SumSquares>(instr.op);
    if (sums && (squares == nullptr || instr.in.size() > squares->in.size())) squares = &instr;
    if (is_update(instr) && kinds_.stands(homes_[i].layer))
      updates_.emplace_back(homes_[i].layer, together(i));
  }
  if (may_come_early(program_)) return;  // which parts the sum of squares as well
  if (squares != nullptr)
    for (const Operand& o : squares->in)
      if (const std::size_t b = o.buffer.index(); kinds_.stands(stays_[b].layer)) squared_.push_back(b);
  for (std::size_t b = 0; b < stays_.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    const bool waits = buffer.first < first && first <= buffer.last && !stays_[b].lasts;
    if (waits && stays_here(buffer) && kinds_.stands(stays_[b].layer)) wait_.push_back(b);
  }
}

void PiecesMemory::take_buffers(Pieces& all) const {
  for (std::size_t b = 0; b < stays_.size(); ++b) {
    if (!kinds_.stands(stays_[b].layer)) continue;
    const Buffer& buffer = program_.buffers[b];
    LayerPieces& pieces = kinds_.pieces_of(all, stays_[b].layer);
    if (stays_[b].lasts) {
      take_lasting(pieces, b);
      pieces.largest_movable = std::max(pieces.largest_movable, buffer.bytes.value);
      take_shared(all, b);
    } else if (stays_[b].kept && buffer.first >= 0 && is_middle(at(buffer.first))) {
      pieces.kept += buffer.bytes.value;
      if (stays_here(buffer)) {
        pieces.kept_here += buffer.bytes.value;
      } else {
        ++pieces.kept_tensors;
        pieces.kept_empty += buffer.empty.value;
        pieces.largest_movable = std::max(pieces.largest_movable, buffer.bytes.value);
      }
    }
  }
}

void PiecesMemory::take_lasting(LayerPieces& pieces, std::size_t b) const {
  const Buffer& buffer = program_.buffers[b];
  const Lasting& lasting = lasting_[b];
  const std::int64_t bytes = buffer.bytes.value;
  part_of(pieces.state, buffer) += bytes;
  part_of(pieces.tensors, buffer) += 1;
  if (lasting.state != nullptr) part_of(pieces.*lasting.state, buffer) += bytes;
  if (buffer.category == Category::kGradients)
    pieces.own_gradients.*lasting.own += bytes / program_.mesh.size(lasting.cut_by);
}

// Whose passes use it has it: weights in the format of products, or those that the optimizer keeps where
// these are it, and sums of gradients.
void PiecesMemory::take_shared(Pieces& pieces, std::size_t b) const {
  const Stay& stay = stays_[b];
  const Buffer& buffer = program_.buffers[b];
  if (stay.layer < 0 && stay.behind) part_of(pieces.last_too, buffer) += buffer.bytes.value;
  if (stay.layer >= kinds_.layers() && stay.before) part_of(pieces.first_too, buffer) += buffer.bytes.value;
}

void PiecesMemory::take_put_off(Pieces& pieces) const {
  for (const auto& [layer, b] : put_off_) {
    const Buffer& buffer = program_.buffers[b];
    kinds_.pieces_of(pieces, layer).put_off += buffer.bytes.value;
    if (stays_here(buffer)) kinds_.pieces_of(pieces, layer).put_off_here += buffer.bytes.value;
  }
}

void PiecesMemory::take_update(Pieces& pieces) const {
  const auto of = [&](std::size_t b) -> LayerPieces& { return kinds_.pieces_of(pieces, stays_[b].layer); };
  for (const std::size_t b : wait_) of(b).gradients_here += program_.buffers[b].bytes.value;
  for (const std::size_t b : squared_) of(b).squared += bytes_that_move(b);
  for (const auto& [layer, t] : updates_) {
    std::int64_t& most = kinds_.pieces_of(pieces, layer).updated_at_once;
    most = std::max(most, bytes_of(t).moves);
  }
}

std::int64_t PiecesMemory::bytes_that_move(std::size_t b) const {
  const Buffer& buffer = program_.buffers[b];
  return stays_here(buffer) ? 0 : buffer.bytes.value;
}

PiecesMemory::Bytes PiecesMemory::bytes_of(const Together& t) const {
  Bytes bytes;
  for (const std::size_t b : t.buffers)
    bytes.all += program_.buffers[b].bytes.value, bytes.moves += bytes_that_move(b);
  return bytes;
}

// What lives at each instruction and is neither state nor kept by another layer or micro-batch; of that what
// no policy moves, with what the instruction uses.
void PiecesMemory::take_peaks(Pieces& all) const {
  struct Lives {
    std::int64_t all = 0, here = 0;
  };
  Lives passing;
  std::vector<Lives> kept(at(kinds_.layers() + 2));  // by layer, of the middle micro-batch
  for (const Walk& w : walk_) {
    if (w.sign != 0) {
      const Buffer& buffer = program_.buffers[w.which];
      Lives& lives = w.kept ? kept[at(w.layer + 1)] : passing;
      lives.all += w.sign * buffer.bytes.value;
      if (stays_here(buffer)) lives.here += w.sign * buffer.bytes.value;
      continue;
    }
    LayerPieces& pieces = kinds_.pieces_of(all, w.layer);
    const Lives& own = kept[at(w.layer + 1)];
    std::int64_t& peak = w.phase == Phase::kForward ? pieces.forward_peak : pieces.backward_peak;
    peak = std::max(peak, passing.all + own.all);
    const Together& t = together_[w.which];
    const Bytes used = bytes_of(t);
    if (!t.for_weights) pieces.at_once = std::max(pieces.at_once, used.all);
    pieces.here_peak = std::max(pieces.here_peak, passing.here + own.here + used.moves);
  }
}

}  // namespace hyperrun
