#include "runtime/mpmd/row_chains.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "runtime/base/overloaded.h"
#include "runtime/ir/row_blocks.h"

namespace hyperrun {
namespace {

using instr::CollectiveKind;

// The number of rows of an instruction's operands; 0: used whole.
struct RowsOf {
  std::vector<std::int64_t> in, out;
  std::int64_t most = 0;  // the rows of a block must divide it
};

// One operand of an instruction.
struct Place {
  std::int32_t instr = 0;
  std::size_t operand = 0;
  bool output = false;

  std::int64_t of(const RowsOf& rows) const { return (output ? rows.out : rows.in)[operand]; }
};

// The instruction mixes rows, or others must not move past it.
bool ends_chains(const Instr& instr) {
  if (instr.stream == StreamKind::kSend || instr.stream == StreamKind::kRecv || loads_tokens(instr.op))
    return true;
  return std::visit(Overloaded{
                        [](const instr::Attention&) { return true; },
                        [](const instr::AttentionGrad&) { return true; },
                        [](const instr::AttentionStep&) { return true; },
                        [](const instr::AttentionStepGrad&) { return true; },
                        [](const instr::Dispatch&) { return true; },
                        [](const instr::Combine&) { return true; },
                        [](const instr::CombineGrad&) { return true; },
                        [](const auto&) { return false; },
                    },
                    instr.op);
}

bool divides(std::int64_t rows, const Operand& o) { return rows > 0 && o.bytes.value % rows == 0; }

// The rows of a computing instruction, one of whose operands has `rows`.
std::optional<RowsOf> rows_of(const Instr& instr, const ByRows& by, std::int64_t rows) {
  if (by.rows > 0 && by.rows != rows) return std::nullopt;
  RowsOf all{{}, {}, by.table > 0 ? by.table : rows};
  for (std::size_t i = 0; i < instr.in.size(); ++i)
    all.in.push_back(i == 1 && by.table > 0 ? by.table : by.of_in(i) ? rows : 0);
  for (std::size_t i = 0; i < instr.out.size(); ++i) all.out.push_back(by.of_out(i) ? rows : 0);
  for (std::size_t i = 0; i < instr.in.size(); ++i)
    if (all.in[i] > 0 && !divides(all.in[i], instr.in[i])) return std::nullopt;
  for (std::size_t i = 0; i < instr.out.size(); ++i)
    if (all.out[i] > 0 && !divides(all.out[i], instr.out[i])) return std::nullopt;
  return all;
}

bool gathers_rows(const instr::Collective& c) {
  return c.kind == CollectiveKind::kAllGather || (c.kind == CollectiveKind::kAllToAll && c.gather_first);
}

// The rows of a collective over p devices, one of whose operands has `rows`. Rows stay whole, except that in
// an exchange a device keeps its part of each row.
std::optional<RowsOf> rows_of(const Instr& instr, const instr::Collective& c, std::int64_t p, bool of_output,
                              std::int64_t rows) {
  if (!divides(rows, of_output ? instr.out[0] : instr.in[0])) return std::nullopt;
  if (c.kind == CollectiveKind::kAllReduce) return RowsOf{{rows}, {rows}, rows};
  const bool exchanges = c.kind == CollectiveKind::kAllToAll;
  if (!exchanges && c.kind != CollectiveKind::kAllGather && c.kind != CollectiveKind::kReduceScatter)
    return std::nullopt;
  const bool gathers = gathers_rows(c);
  if (gathers == of_output && rows % p != 0) return std::nullopt;
  const std::int64_t own = gathers == of_output ? rows / p : rows, inner = own / c.outer;
  if (own % c.outer != 0 || inner == 1) return std::nullopt;
  if (exchanges && inner != (gathers ? c.from : c.to)) return std::nullopt;
  if (!divides(own, gathers ? instr.in[0] : instr.out[0])) return std::nullopt;
  return gathers ? RowsOf{{own}, {own * p}, inner} : RowsOf{{own * p}, {own}, inner};
}

bool is_product(const Instr& instr) { return std::holds_alternative<instr::Gemm>(instr.op); }
bool reduces_all(const Instr& instr) {
  const auto* c = std::get_if<instr::Collective>(&instr.op);
  return c != nullptr && c->kind == CollectiveKind::kAllReduce;
}
bool has_table(const Instr& instr) { return std::holds_alternative<instr::Rope>(instr.op); }

// Finds all chains of a Program.
class Chains {
 public:
  explicit Chains(const Program& program)
      : program_(program), excluded_(program.instrs.size()), neighbours_(program.instrs.size()) {
    find_neighbours();
  }

  std::vector<RowChain> run() {
    std::vector<RowChain> list;
    known_.resize(size());
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(size()); ++i) {
      if (!is_product(at(i)) || known_[index(i)]) continue;
      if (std::optional<RowChain> chain = chain_of(i)) list.push_back(std::move(*chain));
    }
    return merged(std::move(list));
  }

 private:
  // Two operands that share a buffer: written by one instruction, read by another.
  struct Neighbour {
    Place own, other;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::size_t size() const { return program_.instrs.size(); }
  const Instr& at(std::int32_t i) const { return program_.instrs[index(i)]; }
  const Operand& at(const Place& p) const { return (p.output ? at(p.instr).out : at(p.instr).in)[p.operand]; }

  // Links the last writer of each buffer with its later readers, within a stretch.
  void find_neighbours() {
    std::vector<Place> written(program_.buffers.size(), Place{-1});
    std::int32_t begin = 0;
    const auto meet = [&](const Place& reader) {
      const Place& writer = written[at(reader).buffer.index()];
      if (writer.instr < begin || !is_same(at(writer), at(reader))) return;
      neighbours_[index(writer.instr)].push_back({writer, reader});
      neighbours_[index(reader.instr)].push_back({reader, writer});
    };
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(size()); ++i) {
      const Instr& instr = at(i);
      if (ends_chains(instr)) begin = i + 1;
      if (instr.pass != Pass::kUpdate) {
        for (std::size_t k = 0; k < instr.in.size(); ++k) meet({i, k, false});
        if (const int sum = accumulating_output(instr.op); sum >= 0)
          meet({i, static_cast<std::size_t>(sum), true});
      }
      for (std::size_t k = 0; k < instr.out.size(); ++k) written[instr.out[k].buffer.index()] = {i, k, true};
    }
  }

  static bool is_same(const Operand& a, const Operand& b) {
    return a.offset == b.offset && a.bytes == b.bytes && a.tile.whole() && b.tile.whole();
  }

  std::optional<RowsOf> rows_at(const Place& place, std::int64_t rows) const {
    const Instr& instr = at(place.instr);
    if (excluded_[index(place.instr)]) return std::nullopt;
    if (const auto* c = std::get_if<instr::Collective>(&instr.op)) {
      if (!tile_of(instr).whole()) return std::nullopt;
      return rows_of(instr, *c, program_.mesh.size(c->axes), place.output, rows);
    }
    const std::optional<ByRows> by = by_rows(instr);
    if (!by) return std::nullopt;
    std::optional<RowsOf> all = rows_of(instr, *by, rows);
    if (all && place.of(*all) != rows) return std::nullopt;  // this operand is used whole
    return all;
  }

  // The chain of all instructions that the product's rows reach. Instructions that would prevent it are
  // excluded, and the search is repeated.
  std::optional<RowChain> chain_of(std::int32_t product) {
    for (;;) {
      const std::vector<std::int32_t> members = reach(product);
      std::int64_t rows = 0;
      for (const std::int32_t m : members) {
        const RowsOf& of = *known_[index(m)];
        rows = std::gcd(rows, of.most);
        for (const auto* list : {&of.in, &of.out})
          for (const std::int64_t n : *list) rows = std::gcd(rows, n);
      }
      if (!exclude(members, rows)) return chain(members, rows);
      for (const std::int32_t m : members) known_[index(m)].reset();
    }
  }

  std::vector<std::int32_t> reach(std::int32_t product) {
    std::vector<std::int32_t> members{product};
    known_[index(product)] = rows_at({product, 0, false}, std::get<instr::Gemm>(at(product).op).m);
    if (!known_[index(product)]) return {};
    for (std::size_t n = 0; n < members.size(); ++n)
      for (const Neighbour& neighbour : neighbours_[index(members[n])]) {
        const std::int64_t rows = neighbour.own.of(*known_[index(members[n])]);
        if (rows == 0 || known_[index(neighbour.other.instr)]) continue;
        if (std::optional<RowsOf> all = rows_at(neighbour.other, rows)) {
          known_[index(neighbour.other.instr)] = std::move(all);
          members.push_back(neighbour.other.instr);
        }
      }
    std::ranges::sort(members);
    return members;
  }

  // An all-reduce needs its rows in one block. If some have several, excludes the table operands (Rope) that
  // forced that, else the all-reduces, and returns true.
  bool exclude(const std::vector<std::int32_t>& members, std::int64_t rows) {
    const auto cannot = [&](std::int32_t m) { return reduces_all(at(m)) && known_[index(m)]->in[0] != rows; };
    if (std::ranges::none_of(members, cannot)) return false;
    const auto to_blame = [&](std::int32_t m) {
      return has_table(at(m)) && known_[index(m)]->most < known_[index(m)]->in[0];
    };
    const bool tables = std::ranges::any_of(members, to_blame);
    for (const std::int32_t m : members)
      if (tables ? to_blame(m) : cannot(m)) excluded_[index(m)] = true;
    return true;
  }

  std::optional<RowChain> chain(const std::vector<std::int32_t>& members, std::int64_t rows) const {
    const auto exchanges = [&](std::int32_t m) { return at(m).stream == StreamKind::kComm; };
    if (rows < 2 || std::ranges::none_of(members, exchanges)) return std::nullopt;
    RowChain chain{members.front(), members.back() + 1, {}, {}};
    for (const std::int32_t m : members) {
      RowChain::Link& link =
          chain.links.emplace_back(RowChain::Link{m, known_[index(m)]->in, known_[index(m)]->out});
      for (auto* list : {&link.in, &link.out})
        for (std::int64_t& n : *list) n /= rows;
      chain.rows.push_back(rows);
    }
    return chain;
  }

  // Merges chains that overlap.
  std::vector<RowChain> merged(std::vector<RowChain> list) const {
    std::ranges::sort(list, {}, &RowChain::begin);
    std::vector<RowChain> merged;
    for (RowChain& chain : list) {
      if (merged.empty() || merged.back().end <= chain.begin) {
        merged.push_back(std::move(chain));
        continue;
      }
      RowChain& last = merged.back();
      last.end = std::max(last.end, chain.end);
      last.links.insert(last.links.end(), chain.links.begin(), chain.links.end());
      last.rows.insert(last.rows.end(), chain.rows.begin(), chain.rows.end());
    }
    for (std::size_t c = 0; c < merged.size(); ++c) {
      sort_links(merged[c]);
      add_followers(merged[c],
                    c + 1 < merged.size() ? merged[c + 1].begin : static_cast<std::int32_t>(size()));
    }
    return merged;
  }

  // Extends a chain to the next one: gradients of weights there may overlap with its collectives.
  void add_followers(RowChain& chain, std::int32_t end) const {
    const auto follows = [&](const Instr& i) {
      return !ends_chains(i) && (i.pass != Pass::kUpdate || i.stream == StreamKind::kComm);
    };
    while (chain.end < end && follows(at(chain.end))) ++chain.end;
  }

  static void sort_links(RowChain& chain) {
    std::vector<std::size_t> order(chain.links.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::size_t l) { return chain.links[l].instr; });
    RowChain sorted{chain.begin, chain.end, {}, {}};
    for (const std::size_t l : order) {
      sorted.links.push_back(std::move(chain.links[l]));
      sorted.rows.push_back(chain.rows[l]);
    }
    chain = std::move(sorted);
  }

  const Program& program_;
  std::vector<bool> excluded_;
  std::vector<std::vector<Neighbour>> neighbours_;  // by instruction
  std::vector<std::optional<RowsOf>> known_;        // by instruction, once a chain has reached it
};

void set_sizes(instr::Collective& c, std::int64_t part, std::int64_t whole) {
  std::int64_t& n = c.kind != CollectiveKind::kAllToAll ? c.inner : c.gather_first ? c.from : c.to;
  n = n * part / whole;
}

}  // namespace

std::vector<RowChain> row_chains(const Program& program) { return Chains(program).run(); }

Instr one_tile(Instr instr, const RowChain::Link& link, std::int64_t rows, const RowTile& tile) {
  const auto mark = [&](std::vector<Operand>& operands, const std::vector<std::int64_t>& blocks) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (blocks[i] > 0) operands[i].tile = {tile.index, tile.count, blocks[i], rows};
  };
  mark(instr.in, link.in);
  mark(instr.out, link.out);
  const std::int64_t part = tile_of(instr).row_count();
  if (auto* c = std::get_if<instr::Collective>(&instr.op))
    set_sizes(*c, part, rows);
  else
    take_rows(instr.op, part, rows);
  if (tile.index > 0) add_to_sums_over_rows(instr.op);
  return instr;
}

}  // namespace hyperrun
