#include "tests/support/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "runtime/base/error.h"
#include "tests/support/attention_sizes.h"
#include "tests/support/token_formulas.h"

namespace hyperrun::testing {

using Ints = std::vector<std::int64_t>;

// Evaluates one node.
class Evaluation {
 public:
  Evaluation(Interpreter& state, const Node& node) : state_(state), graph_(state.graph_), node_(node) {}

  void run() {
    std::visit([this](const auto& op) { (*this)(op); }, node_.op);
  }

 private:
  const Values& in(std::size_t i) { return state_[node_.inputs[i]]; }
  Values& out(std::size_t i) {
    Values& v = state_[node_.outputs[i]];
    v.resize(static_cast<std::size_t>(graph_.elements(node_.outputs[i])));
    return v;
  }
  Ints shape(std::size_t input) const { return graph_.shape(node_.inputs[input]); }
  void set(std::size_t i, Values v) { state_[node_.outputs[i]] = std::move(v); }
  Values addend() { return node_.addend.valid() ? state_[node_.addend] : Values{}; }

  void operator()(const op::LoadBatch&) {}
  void operator()(const op::LoadRequests&) {}
  void operator()(const op::LoadSamples&) {}
  void operator()(const op::LoadVectors&) {}
  // A port has one slot here.
  void operator()(const op::LoadPort&) { set(0, in(0)); }
  void operator()(const op::StorePort&) { set(0, in(0)); }
  void operator()(const op::InitNormal&) {
    HR_CHECK(!state_[node_.outputs[0]].empty(), node_.name + " needs values");
  }
  void operator()(const op::InitFill& op) {
    Values& v = state_[node_.outputs[0]];
    if (v.empty()) v.assign(static_cast<std::size_t>(graph_.elements(node_.outputs[0])), op.value);
  }

  // A product is a sum over all indices of all dimensions that occur, addressed by name.
  void operator()(const op::Matmul&) {
    std::set<DimId> all;
    for (TensorId t : {node_.inputs[0], node_.inputs[1], node_.outputs[0]})
      all.insert(graph_[t].dims.begin(), graph_[t].dims.end());
    const std::vector<DimId> dims(all.begin(), all.end());
    const auto strides_of = [&](TensorId t) {
      Ints strides(dims.size(), 0);
      std::int64_t stride = 1;
      for (auto d = graph_[t].dims.rbegin(); d != graph_[t].dims.rend(); ++d) {
        strides[static_cast<std::size_t>(std::find(dims.begin(), dims.end(), *d) - dims.begin())] = stride;
        stride *= graph_[*d].size;
      }
      return strides;
    };
    const Ints a = strides_of(node_.inputs[0]), b = strides_of(node_.inputs[1]),
               c = strides_of(node_.outputs[0]);
    const Values &x = in(0), &y = in(1);
    Values sum = addend();
    sum.resize(static_cast<std::size_t>(graph_.elements(node_.outputs[0])));
    Ints index(dims.size(), 0);
    for (bool more = true; more;) {
      std::size_t i = 0, j = 0, k = 0;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        i += static_cast<std::size_t>(index[d] * a[d]);
        j += static_cast<std::size_t>(index[d] * b[d]);
        k += static_cast<std::size_t>(index[d] * c[d]);
      }
      sum[k] += x[i] * y[j];
      more = false;
      for (std::size_t d = 0; d < dims.size() && !more; ++d) {
        more = ++index[d] < graph_[dims[d]].size;
        if (!more) index[d] = 0;
      }
    }
    set(0, std::move(sum));
  }

  void operator()(const op::Positions&) {
    Values& places = out(0);
    const auto seq = static_cast<std::size_t>(shape(0)[1]);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<double>(i % seq);
  }
  void operator()(const op::Embedding&) {
    const Values &ids = in(0), &table = in(1);
    const auto width = static_cast<std::size_t>(shape(1).back());
    Values& y = out(0);
    for (std::size_t r = 0; r < ids.size(); ++r)
      for (std::size_t w = 0; w < width; ++w)
        y[r * width + w] = ids[r] < 0 ? 0 : table[static_cast<std::size_t>(ids[r]) * width + w];
  }
  void operator()(const op::EmbeddingGrad&) {
    const Values &ids = in(0), &rows = in(1);
    const std::size_t width = rows.size() / ids.size();
    Values table = addend();
    table.resize(static_cast<std::size_t>(graph_.elements(node_.outputs[0])));
    for (std::size_t r = 0; r < ids.size(); ++r)
      for (std::size_t w = 0; ids[r] >= 0 && w < width; ++w)
        table[static_cast<std::size_t>(ids[r]) * width + w] += rows[r * width + w];
    set(0, std::move(table));
  }

  void operator()(const op::Accumulate&) { set(0, in(0)); }  // there is one micro-batch

  // Rows of experts are dense here: zero where a token has not chosen the expert.
  static double probability(const op::Route& op, const Values& logits, std::size_t first, std::size_t experts,
                            std::size_t e) {
    if (op.sigmoid) return 1 / (1 + std::exp(-logits[first + e]));
    double sum = 0;
    for (std::size_t i = 0; i < experts; ++i) sum += std::exp(logits[first + i]);
    return std::exp(logits[first + e]) / sum;
  }
  void operator()(const op::Route& op) {
    const Values& logits = in(0);
    const auto experts = static_cast<std::size_t>(shape(0).back()), k = static_cast<std::size_t>(op.choices);
    Values gates(logits.size() / experts * k), ids(gates.size()), load(experts);
    for (std::size_t t = 0; t < logits.size() / experts; ++t) {
      std::vector<std::pair<double, std::size_t>> order;
      for (std::size_t e = 0; e < experts; ++e)
        order.emplace_back(
            -probability(op, logits, t * experts, experts, e) - (node_.inputs.size() > 1 ? in(1)[e] : 0), e);
      leave_best_groups(op, order);
      std::sort(order.begin(), order.end());
      double sum = 0;
      for (std::size_t j = 0; j < k; ++j)
        sum += probability(op, logits, t * experts, experts, order[j].second);
      for (std::size_t j = 0; j < k; ++j) {
        ids[t * k + j] = static_cast<double>(order[j].second);
        load[order[j].second] += 1;
        gates[t * k + j] = op.scale * probability(op, logits, t * experts, experts, order[j].second) /
                           (op.normalize ? sum : 1);
      }
    }
    if (op.capacity > 0) drop(op, experts, gates, ids);
    set(0, std::move(gates)), set(1, std::move(ids)), set(2, std::move(load));
  }
  // `order` has the negated score of each expert, and its number.
  static void leave_best_groups(const op::Route& op, std::vector<std::pair<double, std::size_t>>& order) {
    const std::size_t size = order.size() / static_cast<std::size_t>(op.groups);
    std::vector<std::pair<double, std::size_t>> groups;
    for (std::size_t g = 0; g < static_cast<std::size_t>(op.groups); ++g) {
      std::vector<double> scores;
      for (std::size_t e = 0; e < size; ++e) scores.push_back(order[g * size + e].first);
      std::sort(scores.begin(), scores.end());
      groups.emplace_back(scores[0] + (size > 1 && op.group_best > 1 ? scores[1] : 0), g);
    }
    std::sort(groups.begin(), groups.end());
    std::set<std::size_t> best;
    for (std::size_t i = 0; i < static_cast<std::size_t>(op.group_choices); ++i)
      best.insert(groups[i].second);
    std::erase_if(order, [&](const auto& expert) { return !best.contains(expert.second / size); });
  }
  // Drops choices beyond an expert's capacity; their id becomes -1 - expert.
  void drop(const op::Route& op, std::size_t experts, Values& gates, Values& ids) const {
    const auto k = static_cast<std::size_t>(op.choices), group = static_cast<std::size_t>(op.group);
    HR_CHECK(shape(0)[1] % op.group == 0, node_.name);
    for (std::size_t first = 0; first < ids.size(); first += group * k) {
      std::vector<int> taken(experts, 0);
      for (std::size_t i = first; i < first + group * k; ++i)
        if (++taken[static_cast<std::size_t>(ids[i])] > op.capacity) ids[i] = -1 - ids[i], gates[i] = 0;
    }
  }
  static std::size_t expert_of(double id) { return static_cast<std::size_t>(id < 0 ? -1 - id : id); }
  // The gradient is computed by differences: with fixed experts, gates are a function of the token's logits.
  void operator()(const op::RouteGrad& op) {
    const Values &logits = in(0), &ids = in(1), &dgates = in(2);
    const auto experts = static_cast<std::size_t>(shape(0).back()),
               k = static_cast<std::size_t>(op.forward.choices);
    const auto value = [&](const Values& l, std::size_t t) {
      double sum = 0, all = 0, v = 0;
      for (std::size_t j = 0; j < k; ++j)
        sum += probability(op.forward, l, t * experts, experts, expert_of(ids[t * k + j]));
      for (std::size_t e = 0; e < experts; ++e) all += probability(op.forward, l, t * experts, experts, e);
      for (std::size_t j = 0; j < k; ++j)
        v += dgates[t * k + j] * op.forward.scale *
             probability(op.forward, l, t * experts, experts, expert_of(ids[t * k + j])) /
             (op.forward.normalize ? sum : 1);
      for (std::size_t e = 0; e < experts; ++e)
        v += (op.forward.aux == 0 ? 0 : op.forward.aux * in(3)[e]) *
             probability(op.forward, l, t * experts, experts, e) / all;
      return v;
    };
    Values d(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      Values up = logits, down = logits;
      up[i] += 1e-6, down[i] -= 1e-6;
      d[i] = (value(up, i / experts) - value(down, i / experts)) / 2e-6;
    }
    set(0, std::move(d));
  }
  void operator()(const op::Dispatch&) {
    const Values &x = in(0), &ids = in(1);
    const auto width = static_cast<std::size_t>(shape(0).back());
    const std::size_t tokens = x.size() / width, k = ids.size() / tokens;
    Values& rows = out(0);
    std::fill(rows.begin(), rows.end(), 0.0);
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t w = 0; ids[i] >= 0 && w < width; ++w)
        rows[(static_cast<std::size_t>(ids[i]) * tokens + i / k) * width + w] = x[i / k * width + w];
  }
  void operator()(const op::Combine&) {
    const Values &rows = in(0), &ids = in(1);
    Values& y = out(0);
    std::fill(y.begin(), y.end(), 0.0);
    const auto width = static_cast<std::size_t>(shape(0).back());
    const std::size_t tokens = y.size() / width, k = ids.size() / tokens;
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t w = 0; ids[i] >= 0 && w < width; ++w)
        y[i / k * width + w] += (node_.inputs.size() > 2 ? in(2)[i] : 1) *
                                rows[(static_cast<std::size_t>(ids[i]) * tokens + i / k) * width + w];
  }
  void operator()(const op::CombineGrad&) {
    const Values &dy = in(0), &rows = in(1), &ids = in(2), &gates = in(3);
    const auto width = static_cast<std::size_t>(shape(0).back());
    const std::size_t tokens = dy.size() / width, k = ids.size() / tokens;
    Values drows(rows.size()), dgates(gates.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t w = 0; ids[i] >= 0 && w < width; ++w) {
        const std::size_t at = (static_cast<std::size_t>(ids[i]) * tokens + i / k) * width + w;
        drows[at] = gates[i] * dy[i / k * width + w];
        dgates[i] += rows[at] * dy[i / k * width + w];
      }
    set(0, std::move(drows)), set(1, std::move(dgates));
  }

  // The mean of row r of x, from the sums in input `sums`; 0 unless the norm is centered.
  double mean(bool centered, std::size_t sums, std::size_t r, std::size_t width) {
    return centered ? in(sums)[r] / static_cast<double>(width) : 0;
  }
  void operator()(const op::RowSums&) {
    const Values& x = in(0);
    Values& sums = out(0);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) sums[i / (x.size() / sums.size())] += x[i];
  }
  void operator()(const op::RowSquares& op) {
    const Values& x = in(0);
    Values& squares = out(0);
    std::fill(squares.begin(), squares.end(), 0.0);
    const std::size_t width = x.size() / squares.size();
    for (std::size_t i = 0; i < x.size(); ++i)
      squares[i / width] += std::pow(x[i] - mean(op.centered, 1, i / width, width), 2);
  }
  void operator()(const op::Norm& op) {
    const Values &x = in(0), &w = in(1), &squares = in(2);
    Values& y = out(0);
    const std::size_t width = w.size();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double rstd = 1 / std::sqrt(squares[i / width] / static_cast<double>(width) + op.eps);
      y[i] = (x[i] - mean(op.centered, 3, i / width, width)) * rstd * w[i % width] +
             (op.centered ? in(4)[i % width] : 0);
    }
  }
  void operator()(const op::NormDots& op) {
    const Values &dy = in(0), &x = in(1), &w = in(2);
    for (std::size_t o = 0; o < node_.outputs.size(); ++o) {
      Values& sums = out(o);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t i = 0; i < x.size(); ++i)
        sums[i / w.size()] +=
            dy[i] * w[i % w.size()] * (o == 0 ? x[i] - mean(op.centered, 3, i / w.size(), w.size()) : 1);
    }
  }
  // With c = x - mean: y_i = c_i r w_i + b_i and r = (mean c^2 + eps)^(-1/2), so dr/dc_j = -r^3 c_j / width;
  // and dx is dc without its mean, to which the part with c adds nothing.
  void operator()(const op::NormGrad& op) {
    const Values &dy = in(0), &x = in(1), &w = in(2), &squares = in(3), &dots = in(4);
    const std::size_t width = w.size(), addend = op.centered ? 7 : 5;
    Values dx(x.size()), dw(width);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t r = i / width;
      const double rstd = 1 / std::sqrt(squares[r] / static_cast<double>(width) + op.eps);
      const double c = x[i] - mean(op.centered, 5, r, width);
      dw[i % width] += dy[i] * c * rstd;
      dx[i] = rstd * (dy[i] * w[i % width] - mean(op.centered, 6, r, width)) -
              dots[r] * std::pow(rstd, 3) * c / static_cast<double>(width);
      if (node_.inputs.size() > addend) dx[i] += in(addend)[i];
    }
    set(0, std::move(dx));
    set(1, std::move(dw));
  }

  static double turn_of(const RopeScaling& s, double frequency) {
    const double cycles = s.original_sequence * frequency / (2 * std::acos(-1.0));
    if (cycles > s.high_freq_factor) return frequency;
    if (cycles < s.low_freq_factor) return frequency / s.factor;
    const double smooth = (cycles - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1 - smooth) * frequency / s.factor + smooth * frequency;
  }
  // The table has angles here, because only Rope reads it.
  void operator()(const op::RopeTable& op) {
    const Ints size = graph_.shape(node_.outputs[0]);
    Values& table = out(0);
    for (std::int64_t p = 0; p < size[0]; ++p)
      for (std::int64_t i = 0; i < size[1] / 2; ++i)
        table[static_cast<std::size_t>(p * size[1] + i)] =
            static_cast<double>(p) *
            turn_of(op.scaling,
                    std::pow(op.theta, -2.0 * static_cast<double>(i) / static_cast<double>(size[1])));
  }
  void operator()(const op::Rope& op) {
    const Values &x = in(0), &table = in(1);
    const Ints size = shape(0);
    const std::int64_t width = size.back(), turned = shape(1).back(), half = turned / 2;
    std::int64_t heads = 1;
    for (std::size_t d = 2; d + 1 < size.size(); ++d) heads *= size[d];
    Values y = x;
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(x.size()) / width; ++row)
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle =
            table[static_cast<std::size_t>(row / heads % size[1] * turned + i)] * (op.inverse ? -1 : 1);
        const std::int64_t first = op.first ? row * width : (row + 1) * width - turned;
        const auto a = static_cast<std::size_t>(first + (op.neighbours ? 2 * i : i));
        const auto b = a + static_cast<std::size_t>(op.neighbours ? 1 : half);
        y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
        y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
      }
    set(0, std::move(y));
  }

  // The row of b beside `row` of a. b has a's dimensions, or lacks some before the last.
  std::size_t beside(TensorId a, std::size_t row, TensorId b) const {
    const std::vector<DimId>& dims = graph_[a].dims;
    std::size_t at = 0, stride = 1;
    for (std::size_t d = dims.size() - 1; d-- > 0;) {
      const auto size = static_cast<std::size_t>(graph_[dims[d]].size);
      if (graph_.has_dim(b, dims[d])) at += row % size * stride, stride *= size;
      row /= size;
    }
    return at;
  }
  void operator()(const op::Join&) {
    const Values &a = in(0), &b = in(1);
    Values& y = out(0);
    const auto left = static_cast<std::size_t>(shape(0).back()),
               right = static_cast<std::size_t>(shape(1).back());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t row = i / (left + right), column = i % (left + right);
      y[i] = column < left ? a[row * left + column]
                           : b[beside(node_.inputs[0], row, node_.inputs[1]) * right + column - left];
    }
  }
  void operator()(const op::JoinGrad&) {
    const Values& d = in(0);
    Values &a = out(0), &b = out(1);
    std::fill(b.begin(), b.end(), 0.0);
    const auto left = static_cast<std::size_t>(graph_.shape(node_.outputs[0]).back());
    const auto right = static_cast<std::size_t>(graph_.shape(node_.outputs[1]).back());
    for (std::size_t i = 0; i < d.size(); ++i) {
      const std::size_t row = i / (left + right), column = i % (left + right);
      if (column < left)
        a[row * left + column] = d[i];
      else
        b[beside(node_.outputs[0], row, node_.outputs[1]) * right + column - left] += d[i];
    }
  }

  // --- attention: q[batch, seq, kv, group, dim], k[batch, seq, kv, dim], v[batch, seq, kv, value_dim] ---
  AttentionSizes heads() const {
    const Ints q = shape(0);
    return {q[0], q[1], q[2], q[3], q[4], shape(2).back()};
  }

  template <class F>
  static void each_query(const AttentionSizes& n, F f) {
    for (std::int64_t b = 0; b < n.batch; ++b)
      for (std::int64_t h = 0; h < n.kv; ++h)
        for (std::int64_t g = 0; g < n.group; ++g)
          for (std::int64_t s = 0; s < n.seq; ++s) f(b, s, h, g);
  }

  // The probabilities of all keys up to the last that the query at s sees.
  Values probabilities(const AttentionSizes& n, const auto& op, std::int64_t b, std::int64_t s,
                       std::int64_t h, std::int64_t g) {
    const std::int64_t keys = op.causal ? s + 1 : n.seq, unseen = op.window > 0 ? s + 1 - op.window : 0;
    const Values &q = in(0), &k = in(1);
    Values p(static_cast<std::size_t>(keys));
    for (std::int64_t t = 0; t < keys; ++t) {
      double score = 0;
      for (std::int64_t d = 0; d < n.dim; ++d)
        score +=
            q[n.q(b, s, h, g) + static_cast<std::size_t>(d)] * k[n.k(b, t, h) + static_cast<std::size_t>(d)];
      p[static_cast<std::size_t>(t)] =
          t < unseen ? -std::numeric_limits<double>::infinity() : score * scale_of(n, op);
    }
    const double most = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& x : p) sum += x = std::exp(x - most);
    for (double& x : p) x /= sum;
    return p;
  }

  static double scale_of(const AttentionSizes& n, const auto& op) {
    return op.scale > 0 ? op.scale : 1 / std::sqrt(static_cast<double>(n.dim));
  }

  void operator()(const op::Attention& op) {
    const AttentionSizes n = heads();
    Values o(n.o(n.batch, 0, 0, 0));
    each_query(n, [&](auto b, auto s, auto h, auto g) {
      const Values p = probabilities(n, op, b, s, h, g);
      for (std::int64_t t = 0; t < std::ssize(p); ++t)
        for (std::int64_t d = 0; d < n.value_dim; ++d)
          o[n.o(b, s, h, g) + static_cast<std::size_t>(d)] +=
              p[static_cast<std::size_t>(t)] * in(2)[n.v(b, t, h) + static_cast<std::size_t>(d)];
    });
    set(0, std::move(o));
    out(1);  // lse: not needed here, the backward pass computes the probabilities anew
  }
  // The gradient of a score is ds_t = p_t (dp_t - sum_u p_u dp_u), with dp_t = do . v_t.
  void operator()(const op::AttentionGrad& op) {
    const AttentionSizes n = heads();
    const Values &q = in(0), &k = in(1), &v = in(2), &d_o = in(5);
    Values dq(q.size()), dk(k.size()), dv(v.size());
    const double scale = scale_of(n, op);
    each_query(n, [&](auto b, auto s, auto h, auto g) {
      const Values p = probabilities(n, op, b, s, h, g);
      Values dp(p.size());
      double mean = 0;
      for (std::int64_t t = 0; t < std::ssize(p); ++t)
        for (std::int64_t d = 0; d < n.value_dim; ++d) {
          const std::size_t at_o = n.o(b, s, h, g) + static_cast<std::size_t>(d);
          const std::size_t at_v = n.v(b, t, h) + static_cast<std::size_t>(d);
          dp[static_cast<std::size_t>(t)] += d_o[at_o] * v[at_v];
          dv[at_v] += p[static_cast<std::size_t>(t)] * d_o[at_o];
        }
      for (std::size_t t = 0; t < p.size(); ++t) mean += p[t] * dp[t];
      for (std::int64_t t = 0; t < std::ssize(p); ++t) {
        const double ds = scale * p[static_cast<std::size_t>(t)] * (dp[static_cast<std::size_t>(t)] - mean);
        for (std::int64_t d = 0; d < n.dim; ++d) {
          const std::size_t at_q = n.q(b, s, h, g) + static_cast<std::size_t>(d);
          const std::size_t at_k = n.k(b, t, h) + static_cast<std::size_t>(d);
          dq[at_q] += ds * k[at_k];
          dk[at_k] += ds * q[at_q];
        }
      }
    });
    set(0, std::move(dq));
    set(1, std::move(dk));
    set(2, std::move(dv));
  }

  // --- elementwise -------------------------------------------------------------------------------

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  static double gelu(double x) {
    return x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))) / 2;
  }
  void operator()(const op::Gelu&) {
    Values y = in(0);
    for (double& x : y) x = gelu(x);
    set(0, std::move(y));
  }
  void operator()(const op::GeluGrad&) {  // by differences: the slope is a function of x alone
    Values dx = in(1);
    for (std::size_t i = 0; i < dx.size(); ++i)
      dx[i] *= (gelu(in(0)[i] + 1e-5) - gelu(in(0)[i] - 1e-5)) / 2e-5;
    set(0, std::move(dx));
  }

  void operator()(const op::SwiGlu&) {
    const Values &gate = in(0), &up = in(1);
    Values h(gate.size());
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = gate[i] * sigmoid(gate[i]) * up[i];
    set(0, std::move(h));
  }
  void operator()(const op::SwiGluGrad&) {
    const Values &gate = in(0), &up = in(1), &dh = in(2);
    Values dgate(gate.size()), dup(gate.size());
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double s = sigmoid(gate[i]);
      dgate[i] = dh[i] * up[i] * (s + gate[i] * s * (1 - s));
      dup[i] = dh[i] * gate[i] * s;
    }
    set(0, std::move(dgate));
    set(1, std::move(dup));
  }
  void operator()(const op::Cast&) { set(0, in(0)); }
  void operator()(const op::Add&) {  // b may lack the first dimensions of a
    Values sum = in(0);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += in(1)[i % in(1).size()];
    set(0, std::move(sum));
  }
  void operator()(const op::SumRows&) {
    Values sum = addend();
    sum.resize(static_cast<std::size_t>(graph_.elements(node_.outputs[0])));
    for (std::size_t i = 0; i < in(0).size(); ++i) sum[i % sum.size()] += in(0)[i];
    set(0, std::move(sum));
  }

  // --- cross entropy -----------------------------------------------------------------------------

  void operator()(const op::SoftmaxStats& op) {
    SoftmaxRows rows = softmax_rows(in(0), in(1), op.scale);
    set(0, std::move(rows.e)), set(1, std::move(rows.most));
    set(2, std::move(rows.sum)), set(3, std::move(rows.target));
  }
  void operator()(const op::RescaleSums&) {
    Values sum = in(0);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] *= std::exp(in(1)[i] - in(2)[i]);
    set(0, std::move(sum));
  }
  void operator()(const op::TokenLoss& op) {
    double loss = 0;
    for (std::size_t r = 0; r < in(0).size(); ++r)
      if (in(3)[r] >= 0)
        loss += (node_.inputs.size() > 4 ? in(4)[r] : 1) * (std::log(in(0)[r]) + in(1)[r] - in(2)[r]);
    set(0, {loss * op.scale});
  }
  void operator()(const op::CrossEntropyGrad& op) {
    const Values ones(in(4).size(), 1);
    set(0, cross_entropy_gradient({in(0), in(1), in(2), in(3), in(4)}, node_.inputs.size() > 5 ? in(5) : ones,
                                  op.scale));
  }

  // --- a policy's loss ----------------------------------------------------------------------------

  void operator()(const op::TokenLogProbs&) {
    Values& logp = out(0);
    for (std::size_t r = 0; r < logp.size(); ++r)
      logp[r] = in(3)[r] < 0 ? 0 : in(2)[r] - in(1)[r] - std::log(in(0)[r]);
  }
  PolicyRows policy_rows() { return {in(0), in(1), in(2), in(3), in(4), in(5)}; }
  void operator()(const op::PolicyLoss& op) { set(0, policy_sums(policy_rows(), op.clip, op.kl)); }
  void operator()(const op::PolicyGrad& op) { set(0, policy_gradient(policy_rows(), op.clip, op.kl)); }
  void operator()(const op::Elements&) {
    for (std::size_t i = 0; i < in(0).size(); ++i) set(i, {in(0)[i]});
  }

  // --- optimizer ---------------------------------------------------------------------------------

  void operator()(const op::SumSquares&) {
    double total = 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i)
      for (double x : in(i)) total += x * x;
    set(0, {total});
  }
  void operator()(const op::AddScalars&) {
    double total = 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) total += in(i)[0];
    set(0, {total});
  }
  void operator()(const op::ClipFactor& op) {
    const double norm = std::sqrt(in(0)[0]);
    set(0, {op.max_norm > 0 && norm > op.max_norm ? op.max_norm / norm : 1});
    set(1, {norm});
  }
  void operator()(const op::AdamW& op) {
    Values gradient = in(1);
    if (node_.inputs.size() > 4)
      for (double& g : gradient) g *= in(4)[0];
    Moments after =
        adamw(op, {in(0), in(2), in(3)}, gradient, state_.lr, static_cast<double>(state_.step + 1));
    set(0, std::move(after.w));
    set(1, std::move(after.m));
    set(2, std::move(after.v));
  }

  template <class Op>
  void operator()(const Op&) {
    HR_CHECK(false, node_.name + ": the interpreter knows no " + std::string(name(node_.op)));
  }

  Interpreter& state_;
  const Graph& graph_;
  const Node& node_;
};

Values& Interpreter::operator[](const std::string& tensor_name) {
  const TensorId t = graph_.find(tensor_name);
  HR_CHECK(t.valid(), tensor_name);
  return (*this)[t];
}

void Interpreter::run(Phase phase) {
  for (const Node& node : graph_.nodes)
    if (node.phase == phase) Evaluation(*this, node).run();
}

}  // namespace hyperrun::testing
