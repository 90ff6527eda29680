#include "runtime/spec/plan_io.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>

#include "proto/program.pb.h"
#include "runtime/base/error.h"
#include "runtime/ir/instr_fields.h"

namespace hyperrun {
namespace {

class FieldWriter {
 public:
  explicit FieldWriter(proto::PlanInstr& out) : out_(out) {}
  template <class T>
  void operator()(const char*, const T& value, const auto&...) {
    put(value);
  }

 private:
  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void put(T v) { out_.add_ints(static_cast<std::int64_t>(v)); }
  void put(double v) { out_.add_reals(v); }
  void put(const Coord& c) { put(c.axes), put(c.stride); }
  void put(const Zigzag& z) { put(z.ring), put(z.chunk); }
  void put(const AxisList& list) { put_list(list); }
  template <class T>
  void put(const std::vector<T>& list) {
    put_list(list);
  }
  void put_list(const auto& list) {
    put(static_cast<std::int64_t>(list.size()));
    for (const auto& v : list) put(v);
  }

  proto::PlanInstr& out_;
};

class FieldReader {
 public:
  FieldReader(const proto::PlanInstr& in, int axes) : in_(in), axes_(axes) {}
  template <class T>
  void operator()(const char*, T& value, const auto&...) {
    get(value);
  }
  bool complete() const { return good_ && next_int_ == in_.ints_size() && next_real_ == in_.reals_size(); }

 private:
  std::int64_t take() {
    if (next_int_ < in_.ints_size()) return in_.ints(next_int_++);
    good_ = false;
    return 0;
  }
  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void get(T& v) {
    const std::int64_t raw = take();
    if constexpr (std::is_enum_v<T>) good_ = good_ && raw >= 0 && raw <= kLargestEnum<T>;
    v = static_cast<T>(raw);
  }
  void get(double& v) {
    if (next_real_ < in_.reals_size())
      v = in_.reals(next_real_++);
    else
      good_ = false;
  }
  void get(Coord& c) { get(c.axes), get(c.stride); }
  void get(Zigzag& z) {
    get(z.ring), get(z.chunk);
    good_ = good_ && z.ring >= 1 && (z.ring == 1 || z.chunk >= 1);
  }
  void get(AxisList& list) {
    const std::int64_t n = take();
    good_ = good_ && n >= 0 && n <= axes_;
    for (std::int64_t i = 0; good_ && i < n; ++i) {
      const std::int64_t axis = take();
      good_ = good_ && axis >= 0 && axis < axes_ && std::ranges::find(list, axis) == list.end();
      if (good_) list.push_back(static_cast<AxisId>(axis));
    }
  }
  template <class T>
  void get(std::vector<T>& list) {
    const std::int64_t n = take();
    if (n < 0 || n > in_.ints_size() + in_.reals_size()) {
      good_ = false;
      return;
    }
    list.resize(static_cast<std::size_t>(n));
    for (T& v : list) get(v);
  }

  template <class T>
  static constexpr std::int64_t kLargestEnum = 3;

  const proto::PlanInstr& in_;
  int axes_;
  int next_int_ = 0, next_real_ = 0;
  bool good_ = true;
};

template <>
constexpr std::int64_t FieldReader::kLargestEnum<Reduction> = 1;
template <>
constexpr std::int64_t FieldReader::kLargestEnum<DType> = 2;
template <>
constexpr std::int64_t FieldReader::kLargestEnum<Tier> = 2;
template <>
constexpr std::int64_t FieldReader::kLargestEnum<instr::CollectiveKind> = 7;

// The n-th alternative of InstrOp, default constructed.
template <std::size_t I = 0>
InstrOp nth_op(std::size_t n) {
  if constexpr (I < std::variant_size_v<InstrOpKinds>) {
    if (n == I) return InstrOp(std::in_place_index<I>);
    return nth_op<I + 1>(n);
  } else {
    HR_CHECK(false);
    return {};
  }
}

void write(const Operand& o, proto::PlanOperand& out) {
  out.set_buffer(o.buffer.value);
  out.set_offset(o.offset.value);
  out.set_bytes(o.bytes.value);
  out.set_dtype(static_cast<int>(o.dtype));
  out.set_empty(o.empty.value);
  if (o.tile.whole()) return;
  out.set_tile(o.tile.index);
  out.set_tiles(o.tile.count);
  out.set_blocks(o.tile.blocks);
  out.set_rows(o.tile.rows);
}

void write(const Instr& i, proto::PlanInstr& out) {
  out.set_op(static_cast<int>(i.op.index()));
  std::visit([&](const auto& op) { instr::fields(op, FieldWriter(out)); }, i.op);
  out.set_stream(static_cast<int>(i.stream));
  for (const Operand& o : i.in) write(o, *out.add_in());
  for (const Operand& o : i.out) write(o, *out.add_out());
  if (i.scratch.buffer.valid()) write(i.scratch, *out.mutable_scratch());
  for (const Event& e : i.waits) {
    auto& wait = *out.add_waits();
    wait.set_stream(static_cast<int>(e.stream));
    wait.set_seq(e.seq);
  }
  out.set_seq(i.seq);
  out.set_origin(i.origin);
  out.set_pass(static_cast<int>(i.pass));
}

void write(const Buffer& b, proto::PlanBuffer& out) {
  out.set_name(b.name);
  out.set_bytes(b.bytes.value);
  out.set_tier(static_cast<int>(b.tier));
  out.set_category(static_cast<int>(b.category));
  out.set_state(b.state);
  out.set_offset(b.offset.value);
  out.set_first(b.first);
  out.set_last(b.last);
  out.set_empty(b.empty.value);
}

// Writes a layout without partial axes to a message with a list of axes for each dimension.
template <class Message>
void write(const Layout& layout, Message& out) {
  for (const AxisList& axes : layout.dims) {
    proto::PlanAxes& dim = *out.add_layout();
    for (const AxisId a : axes) dim.add_axes(a);
  }
}

void write(const Program& p, proto::PlanProgram& out) {
  out.set_name(p.name);
  for (const Buffer& b : p.buffers) write(b, *out.add_buffers());
  for (const Instr& i : p.instrs) write(i, *out.add_instrs());
  for (const std::string& origin : p.origins) out.add_origins(origin);
  for (const Output& o : p.outputs) {
    auto& output = *out.add_outputs();
    output.set_name(o.name);
    write(o.operand, *output.mutable_operand());
    output.set_dtype(static_cast<int>(o.dtype));
    for (std::int64_t n : o.shape) output.add_shape(n);
    write(o.layout, output);
    for (std::int64_t ring : o.rings) output.add_rings(ring);
  }
  for (Bytes peak : p.peak) out.add_peak(peak.value);
}

void write(const StateTensor& s, proto::PlanState& out) {
  out.set_name(s.name);
  out.set_cls(static_cast<int>(s.cls));
  out.set_dtype(static_cast<int>(s.dtype));
  for (std::int64_t n : s.shape) out.add_shape(n);
  out.set_saved_name(s.saved.name);
  for (std::int64_t n : s.saved.shape) out.add_saved_shape(n);
  out.set_saved_slices(s.saved.slices);
  out.set_saved_from(s.saved.from);
  out.set_saved_of(s.saved.of);
  write(s.layout, out);
  out.set_offset(s.offset.value);
  out.set_bytes(s.bytes.value);
  out.set_tier(static_cast<int>(s.tier));
}

class PlanReader {
 public:
  PlanReader(const proto::Plan& in, const std::string& place) : in_(in), place_(place) {}

  Plan read() {
    Plan plan;
    check(static_cast<std::size_t>(in_.mesh_size()) <= kMostAxes);
    for (const auto& axis : in_.mesh()) {
      check(axis.size() >= 1);
      plan.mesh.axes.push_back({axis.name(), axis.size()});
    }
    mesh_ = plan.mesh;
    for (const int a : in_.role_axes()) {
      check(a >= 0 && a < mesh_.rank() && std::ranges::find(plan.role_axes, a) == plan.role_axes.end());
      plan.role_axes.push_back(a);
    }
    check(in_.roles_size() == mesh_.size(plan.role_axes));
    for (const auto& r : in_.roles()) {
      Role& role = plan.roles.emplace_back();
      check(r.programs_size() == in_.roles(0).programs_size());
      for (const auto& p : r.programs()) role.programs.push_back(read(p));
      for (const auto& s : r.state()) role.state.push_back(read(s));
    }
    return plan;
  }

 private:
  void check(bool good) const {
    if (!good)
      throw Error(Code::kControl, "not a program of this version of hyperrun")
          .at(place_)
          .fix("run the same build of hyperrun on all hosts");
  }

  Program read(const proto::PlanProgram& in) const {
    Program p;
    p.name = in.name();
    p.mesh = mesh_;
    for (const auto& b : in.buffers()) p.buffers.push_back(read(b));
    p.origins.assign(in.origins().begin(), in.origins().end());
    for (const auto& i : in.instrs()) p.instrs.push_back(read(i, p));
    for (const auto& o : in.outputs()) p.outputs.push_back(read(o, p));
    check(in.peak_size() == static_cast<int>(kTiers));
    for (std::size_t t = 0; t < kTiers; ++t) p.peak[t] = Bytes(in.peak(static_cast<int>(t)));
    return p;
  }

  Buffer read(const proto::PlanBuffer& in) const {
    check(in.bytes() >= 0 && in.offset() >= 0 && is_tier(in.tier()) && in.category() >= 0 &&
          in.category() < static_cast<int>(kCategories) && in.empty() >= 0 && in.empty() <= in.bytes());
    return {in.name(),
            Bytes(in.bytes()),
            static_cast<Tier>(in.tier()),
            static_cast<Category>(in.category()),
            in.state(),
            Bytes(in.offset()),
            in.first(),
            in.last(),
            Bytes(in.empty())};
  }

  Operand read(const proto::PlanOperand& in, const Program& p) const {
    check(in.buffer() >= 0 && in.buffer() < static_cast<int>(p.buffers.size()) && in.offset() >= 0 &&
          in.bytes() >= 0 && in.empty() >= 0 && in.empty() <= in.bytes() && in.dtype() >= 0 &&
          in.dtype() <= static_cast<int>(DType::kI32) &&
          Bytes(in.offset()) + Bytes(in.bytes()) <= p.buffers[static_cast<std::size_t>(in.buffer())].bytes);
    check(in.tiles() == 0 ? in.tile() == 0 : in.tiles() > 1 && in.tile() >= 0 && in.tile() < in.tiles());
    check(in.blocks() == 0
              ? in.rows() == 0
              : in.tiles() > 1 && in.blocks() > 0 && in.rows() > 0 && in.rows() <= in.bytes() &&
                    in.blocks() <= in.bytes() / in.rows() && in.bytes() % (in.blocks() * in.rows()) == 0);
    return {BufferId(in.buffer()),
            Bytes(in.offset()),
            Bytes(in.bytes()),
            static_cast<DType>(in.dtype()),
            RowTile{in.tile(), std::max(1, in.tiles()), in.blocks(), in.rows()},
            Bytes(in.empty())};
  }

  Instr read(const proto::PlanInstr& in, const Program& p) const {
    check(in.op() >= 0 && in.op() < static_cast<int>(std::variant_size_v<InstrOpKinds>) &&
          is_stream(in.stream()) && in.origin() < static_cast<int>(p.origins.size()) && in.pass() >= 0 &&
          in.pass() < static_cast<int>(kPasses));
    Instr i;
    i.op = nth_op(static_cast<std::size_t>(in.op()));
    FieldReader fields(in, mesh_.rank());
    std::visit([&](auto& op) { instr::fields(op, fields); }, i.op);
    check(fields.complete());
    i.stream = static_cast<StreamKind>(in.stream());
    for (const auto& o : in.in()) i.in.push_back(read(o, p));
    for (const auto& o : in.out()) i.out.push_back(read(o, p));
    if (in.has_scratch()) i.scratch = read(in.scratch(), p);
    for (const auto& e : in.waits()) {
      check(is_stream(e.stream()));
      i.waits.push_back({static_cast<StreamKind>(e.stream()), e.seq()});
    }
    i.seq = in.seq();
    i.origin = in.origin();
    i.pass = static_cast<Pass>(in.pass());
    return i;
  }

  Output read(const proto::PlanOutput& in, const Program& p) const {
    check(is_dtype(in.dtype()) && in.layout_size() == in.shape_size() && in.rings_size() == in.shape_size());
    Output o{in.name(),
             read(in.operand(), p),
             static_cast<DType>(in.dtype()),
             {in.shape().begin(), in.shape().end()},
             read_layout(in.layout()),
             {in.rings().begin(), in.rings().end()}};
    std::int64_t parts = 1;
    for (std::size_t d = 0; d < o.shape.size(); ++d) {
      const std::int64_t split = mesh_.size(o.layout.dims[d]);
      check(o.shape[d] >= 1 && o.shape[d] % split == 0 && o.rings[d] >= 1 &&
            (o.rings[d] == 1 || o.shape[d] % (2 * o.rings[d]) == 0));
      parts *= split;
    }
    check(o.operand.bytes.value >= 4 && elements(o.shape) * static_cast<std::uint64_t>(size_of(o.dtype)) ==
                                            static_cast<std::uint64_t>(o.operand.bytes.value * parts));
    return o;
  }

  Layout read_layout(const google::protobuf::RepeatedPtrField<proto::PlanAxes>& in) const {
    Layout layout;
    AxisSet seen;  // an axis may split only one dimension
    for (const proto::PlanAxes& dim : in) {
      AxisList& axes = layout.dims.emplace_back();
      for (const int a : dim.axes()) {
        check(a >= 0 && a < mesh_.rank() && !seen.has(a));
        seen.add(a), axes.push_back(a);
      }
    }
    return layout;
  }

  StateTensor read(const proto::PlanState& in) const {
    StateTensor s;
    check(in.cls() >= 0 && in.cls() <= static_cast<int>(TensorClass::kPort) && in.dtype() >= 0 &&
          in.dtype() <= 2 && in.layout_size() == in.shape_size() && is_tier(in.tier()));
    s.name = in.name();
    s.cls = static_cast<TensorClass>(in.cls());
    s.dtype = static_cast<DType>(in.dtype());
    s.shape.assign(in.shape().begin(), in.shape().end());
    s.saved = {in.saved_name(),
               {in.saved_shape().begin(), in.saved_shape().end()},
               in.saved_slices(),
               in.saved_from(),
               in.saved_of()};
    check(fits(s.saved, s.shape));
    s.layout = read_layout(in.layout());
    s.offset = Bytes(in.offset());
    s.bytes = Bytes(in.bytes());
    s.tier = static_cast<Tier>(in.tier());
    return s;
  }

  // True if a tensor of this shape can have this place in a checkpoint, which lacks rows of padding.
  static bool fits(const SavedAs& saved, const std::vector<std::int64_t>& shape) {
    const auto there = elements(saved.shape), slices = static_cast<std::uint64_t>(saved.slices);
    const std::uint64_t ours = elements(shape);
    if (saved.slices < 1 || ours % slices != 0 || saved.of < 0) return false;
    if (saved.of == 0 && saved.slices == 1 && there < ours)
      return !shape.empty() && shape.size() == saved.shape.size() &&
             std::equal(shape.begin() + 1, shape.end(), saved.shape.begin() + 1);
    if (saved.of == 0) return ours / slices == there;
    const std::uint64_t of = static_cast<std::uint64_t>(saved.of), rows = there / of;
    if (there == 0 || there % of != 0 || ours / slices % rows != 0 || saved.from < 0) return false;
    return static_cast<std::uint64_t>(saved.from) <= of &&
           ours / slices / rows <= of - static_cast<std::uint64_t>(saved.from);
  }

  // The product of a shape, unsigned because that of a damaged one may overflow.
  static std::uint64_t elements(const std::vector<std::int64_t>& shape) {
    std::uint64_t n = 1;
    for (std::int64_t size : shape) n *= static_cast<std::uint64_t>(size);
    return n;
  }
  static bool is_dtype(int t) { return t >= 0 && t <= static_cast<int>(DType::kI32); }
  static bool is_tier(int t) { return t >= 0 && t < static_cast<int>(kTiers); }
  static bool is_stream(int s) { return s >= 0 && s < static_cast<int>(kStreams); }

  const proto::Plan& in_;
  const std::string& place_;
  Mesh mesh_;
};

}  // namespace

std::string to_bytes(const Plan& plan) {
  proto::Plan out;
  for (const MeshAxis& axis : plan.mesh.axes) {
    auto& a = *out.add_mesh();
    a.set_name(axis.name);
    a.set_size(axis.size);
  }
  for (AxisId a : plan.role_axes) out.add_role_axes(a);
  for (const Role& r : plan.roles) {
    auto& role = *out.add_roles();
    for (const Program& p : r.programs) write(p, *role.add_programs());
    for (const StateTensor& s : r.state) write(s, *role.add_state());
  }
  return out.SerializeAsString();
}

Plan plan_from_bytes(std::string_view bytes, const std::string& place) {
  proto::Plan in;
  const google::protobuf::LogSilencer quiet;  // protobuf logs names that are not UTF-8
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw Error(Code::kControl, "a program did not arrive whole")
        .at(place)
        .fix("run the same build of hyperrun on all hosts");
  return PlanReader(in, place).read();
}

}  // namespace hyperrun
