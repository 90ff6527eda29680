#include <iomanip>
#include <sstream>

#include "runtime/ir/describe_instr.h"
#include "runtime/ir/instr_fields.h"
#include "runtime/ir/program.h"

namespace hyperrun {
namespace {

class FieldPrinter {
 public:
  FieldPrinter(std::ostream& out, const Mesh& mesh) : out_(out), mesh_(mesh) {}

  template <class T>
  void operator()(const char* label, const T& value, const T& usual = T{}) {
    if (value == usual) return;
    out_ << ' ' << label << '=';
    put(value);
  }

 private:
  void put(bool v) { out_ << (v ? "yes" : "no"); }
  void put(std::int32_t v) { out_ << v; }
  void put(std::int64_t v) { out_ << v; }
  void put(std::uint64_t v) { out_ << v; }
  void put(double v) { out_ << v; }
  void put(DType v) { out_ << hyperrun::name(v); }
  void put(Tier v) { out_ << hyperrun::name(v); }
  void put(Reduction v) { out_ << (v == Reduction::kSum ? "sum" : "max"); }
  void put(instr::CollectiveKind v) { out_ << hyperrun::name(v); }
  void put(const AxisList& axes) { out_ << mesh_.to_string(axes); }
  void put(const Coord& c) { out_ << c.stride << '*' << mesh_.to_string(c.axes); }
  void put(const Zigzag& z) { out_ << "zigzag:" << z.ring << '*' << z.chunk; }
  void put(const std::vector<std::int64_t>& list) { put_list(list); }
  void put(const std::vector<Coord>& list) { put_list(list); }
  void put(const std::vector<double>& list) { put_list(list); }
  template <class T>
  void put_list(const std::vector<T>& list) {
    out_ << '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i != 0) out_ << ' ';
      put(list[i]);
    }
    out_ << ']';
  }

  std::ostream& out_;
  const Mesh& mesh_;
};

void print_operand(std::ostream& out, const Program& program, const Operand& operand) {
  out << ' ' << program[operand.buffer].name;
  if (operand.offset.value != 0) out << '+' << operand.offset.value;
  if (operand.dtype == DType::kBF16) out << ":bf16";
  if (operand.tile.whole()) return;
  out << "[tile " << operand.tile.index << '/' << operand.tile.count;
  if (operand.tile.blocks > 0) out << " of " << operand.tile.blocks << '*' << operand.tile.rows;
  out << ']';
}

void print_instr(std::ostream& out, const Program& program, const Instr& instr, std::size_t index) {
  out << std::setw(5) << index << ' ' << std::left << std::setw(7) << name(instr.stream) << std::right
      << std::setw(4) << instr.seq << "  " << describe(instr.op, program.mesh) << " :";
  for (const Operand& operand : instr.in) print_operand(out, program, operand);
  out << " ->";
  for (const Operand& operand : instr.out) print_operand(out, program, operand);
  for (const Event& e : instr.waits) out << " after(" << name(e.stream) << ' ' << e.seq << ')';
  if (instr.origin >= 0) out << "  # " << program.origins[static_cast<std::size_t>(instr.origin)];
  out << '\n';
}

}  // namespace

std::string describe(const InstrOp& op, const Mesh& mesh) {
  std::ostringstream out;
  out << name(op);
  std::visit([&](const auto& o) { instr::fields(o, FieldPrinter(out, mesh)); }, op);
  return out.str();
}

std::string print(const Program& program) {
  std::ostringstream out;
  out << "program " << program.name << ": " << program.instrs.size() << " instructions, hbm peak "
      << program.peak[0].value << " bytes\n";
  for (const Buffer& b : program.buffers)
    out << "buffer " << b.name << ' ' << name(b.category) << ' ' << name(b.tier) << ' ' << b.offset.value
        << "+" << b.bytes.value << (b.state ? " state" : "") << " live " << b.first << ".." << b.last << '\n';
  for (std::size_t i = 0; i < program.instrs.size(); ++i) print_instr(out, program, program.instrs[i], i);
  return out.str();
}

}  // namespace hyperrun
