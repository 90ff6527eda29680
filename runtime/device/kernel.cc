#include "runtime/device/kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/device/kernels/attention.h"
#include "runtime/device/kernels/cached_attention.h"
#include "runtime/device/kernels/cross_entropy.h"
#include "runtime/device/kernels/elementwise.h"
#include "runtime/device/kernels/embedding.h"
#include "runtime/device/kernels/experts.h"
#include "runtime/device/kernels/gelu.h"
#include "runtime/device/kernels/gemm.h"
#include "runtime/device/kernels/join.h"
#include "runtime/device/kernels/merge_parts.h"
#include "runtime/device/kernels/norm.h"
#include "runtime/device/kernels/optimizer.h"
#include "runtime/device/kernels/policy.h"
#include "runtime/device/kernels/random.h"
#include "runtime/device/kernels/rope.h"
#include "runtime/device/kernels/sampling.h"
#include "runtime/device/kernels/strided_copy.h"
#include "runtime/device/kernels/swiglu.h"
#include "runtime/device/kernels/zigzag_attention.h"
#include "runtime/ir/token.h"

namespace hyperrun {
namespace {

class Kernel {
 public:
  Kernel(const Instr& instr, const Addresses& at, const Scalars& scalars, const KernelContext& context)
      : instr_(instr), at_(at), scalars_(scalars), c_(context) {}

  void operator()(const instr::Gemm& o) const {
    kernels::gemm(kernels::Trans(o.trans_a), kernels::Trans(o.trans_b), o.m, o.n, o.k, in(0),
                  o.trans_a ? o.m : o.k, in(1), o.trans_b ? o.k : o.n, o.accumulate ? 1.0F : 0.0F, out(0),
                  o.n);
  }
  void operator()(const instr::Positions& o) const {
    if (o.request > 0) return positions_of_requests(o);
    each_run(o.order, at(o.first), o.length, [&](auto i, auto position, auto n) {
      for (std::int64_t s = 0; s < o.sequences; ++s)
        std::iota(tokens_out(0) + s * o.length + i, tokens_out(0) + s * o.length + i + n,
                  static_cast<std::int32_t>(position));
    });
  }
  void operator()(const instr::Embedding& o) const {
    kernels::embedding(o.rows, o.width, tokens(0), in(1), o.vocab, at(o.first), out(0));
  }
  void operator()(const instr::EmbeddingGrad& o) const {
    kernels::embedding_backward(o.rows, o.width, tokens(0), in(1), o.vocab, at(o.first), o.accumulate,
                                floats_out(0));
  }
  void operator()(const instr::RowSums& o) const { kernels::row_sums(o.rows, o.width, in(0), floats_out(0)); }
  void operator()(const instr::RowSquares& o) const {
    kernels::row_squares(norm_shape(o), in(0), o.centered ? floats(1) : nullptr, floats_out(0));
  }
  void operator()(const instr::NormDots& o) const {
    kernels::norm_dots(norm_shape(o), in(0), in(1), in(2), o.centered ? floats(3) : nullptr, floats_out(0),
                       o.centered ? floats_out(1) : nullptr);
  }
  void operator()(const instr::Norm& o) const {
    kernels::norm(norm_shape(o), in(0), in(1), floats(2), o.centered ? floats(3) : nullptr,
                  o.centered ? in(4) : nullptr, out(0));
  }
  void operator()(const instr::NormGrad& o) const {
    kernels::norm_backward(norm_shape(o), in(0), in(1), in(2), {floats(3), floats(4)},
                           o.centered ? kernels::NormMeans{floats(5), floats(6)} : kernels::NormMeans{},
                           o.addend ? in(o.centered ? 7 : 5) : nullptr, out(0), floats_out(1), o.accumulate);
  }
  void operator()(const instr::RopeTable& o) const {
    const std::vector<double> frequencies =
        o.frequencies.empty() ? rope_frequencies(o.head_dim, o.theta, {}) : o.frequencies;
    if (!at_.in.empty()) {
      for (std::int64_t i = 0; i < o.positions; ++i)
        kernels::rope_table(tokens(0)[i], 1, frequencies, floats_out(0) + i * o.head_dim, o.magnitude);
      return;
    }
    each_run(o.order, at(o.first), o.positions, [&](auto i, auto position, auto n) {
      kernels::rope_table(position, n, frequencies, floats_out(0) + i * o.head_dim, o.magnitude);
    });
  }
  void operator()(const instr::Rope& o) const {
    const std::int64_t width = o.heads * o.head_dim, lines = o.each ? o.batch * o.seq : o.seq;
    kernels::rope(kernels::Rotate(o.inverse), o.batch * o.seq, lines, o.heads, o.head_dim, in(0), width,
                  floats(1), out(0), width, o.turned, kernels::Pairs(o.neighbours), o.at_front);
  }
  void operator()(const instr::Join& o) const {
    kernels::join(o.rows, o.repeat, o.left, o.right, in(0), in(1), out(0));
  }
  void operator()(const instr::JoinGrad& o) const {
    kernels::join_backward(o.rows, o.repeat, o.left, o.right, in(0), out(0), out(1));
  }
  void operator()(const instr::Attention& o) const {
    if (!o.ring.empty()) return window_step(o, 0);
    kernels::attention(attention_shape(o), in(0), in(1), in(2), out(0), floats_out(1), at_.scratch);
  }
  void operator()(const instr::AttentionGrad& o) const {
    if (!o.ring.empty()) return window_step_grad(o, 0);
    kernels::attention_backward(attention_shape(o), in(0), in(1), in(2), in(3), floats(4), in(5), out(0),
                                out(1), out(2), at_.scratch);
  }
  void operator()(const instr::AttentionStep& o) const {
    for (const std::size_t i : {0, 1}) copy_unless_in_place(3 + i, i);
    if (o.window > 0) return window_step(o, o.step);
    kernels::zigzag_attention(attention_shape(o), keys_of(o), in(0), in(1), in(2), out(0), floats_out(1),
                              at_.scratch);
  }
  void operator()(const instr::AttentionStepGrad& o) const {
    copy_unless_in_place(6, 0);
    if (o.window > 0) return window_step_grad(o, o.step);
    kernels::zigzag_attention_backward(attention_shape(o), keys_of(o), in(0), in(1), in(2), in(3), floats(4),
                                       in(5), out(0), out(1), out(2), at_.scratch);
  }
  void operator()(const instr::Gelu& o) const { kernels::gelu(o.n, in(0), out(0)); }
  void operator()(const instr::GeluGrad& o) const { kernels::gelu_backward(o.n, in(0), in(1), out(0)); }
  void operator()(const instr::SwiGlu& o) const {
    const auto [first, n] = elements(o, 2);
    kernels::swiglu(1, n, in(0) + first, in(1) + first, n, out(0) + first);
  }
  void operator()(const instr::SwiGluGrad& o) const {
    const auto [first, n] = elements(o, 3);
    kernels::swiglu_backward(1, n, in(0) + first, in(1) + first, n, in(2) + first, out(0) + first,
                             out(1) + first);
  }
  void operator()(const instr::GroupedGemm& o) const {
    kernels::grouped_gemm(o.trans_b, o.n, o.k, group_rows(2, o.groups), in(0), in(1), o.accumulate, out(0));
  }
  void operator()(const instr::GroupedOuter& o) const {
    kernels::grouped_outer(o.m, o.n, group_rows(2, o.groups), in(0), in(1), o.accumulate, out(0));
  }
  void operator()(const instr::Route& o) const {
    kernels::Routing how = routing(o);
    how.groups = o.groups, how.group_choices = o.group_choices, how.group_best = o.group_best;
    kernels::route(how, floats(0), at_.in.size() > 1 ? floats(1) : nullptr, floats_out(0), tokens_out(1),
                   floats_out(2), scratch());
    if (o.capacity > 0) admit(o, how);
  }
  void operator()(const instr::RouteGrad& o) const {
    kernels::Routing how = routing(o);
    how.aux = static_cast<float>(o.aux);
    const float* load = at_.in.size() > 3 ? floats(3) : nullptr;
    kernels::route_backward(how, floats(0), tokens(1), load, floats(2), floats_out(0));
  }
  void operator()(const instr::Dispatch& o) const {
    kernels::dispatch(rows_of(o), o.width, in(0), tokens(1), out(0), tokens_out(1), next_rows());
  }
  void operator()(const instr::Combine& o) const {
    kernels::combine(rows_of(o), o.width, in(0), tokens(1), at_.in.size() > 2 ? floats(2) : nullptr, out(0),
                     next_rows());
  }
  void operator()(const instr::CombineGrad& o) const {
    kernels::combine_backward(rows_of(o), o.width, in(0), in(1), tokens(2), floats(3), out(0), floats_out(1),
                              next_rows());
  }
  void operator()(const instr::Balance& o) const {
    HR_CHECK(at_.out[0] == at_.in[0], "the balance works in place");
    kernels::balance(o.experts, static_cast<float>(o.rate), floats(1), floats_out(0));
  }
  void operator()(const instr::SumCounts& o) const {
    for (std::int64_t e = 0; e < o.experts; ++e) {
      tokens_out(0)[e] = 0;
      for (std::int64_t s = 0; s < o.sources; ++s) tokens_out(0)[e] += tokens(0)[s * o.experts + e];
    }
  }
  void operator()(const instr::Regroup& o) const {
    kernels::regroup(group_rows(1, o.experts), o.width, in(0), out(0), o.back);
  }
  void operator()(const instr::Add& o) const {
    for (std::int64_t i = 0; i < o.repeat; ++i) kernels::add(o.n, in(0) + i * o.n, in(1), out(0) + i * o.n);
  }
  void operator()(const instr::SumRows& o) const {
    kernels::sum_rows(o.rows, o.width, in(0), floats_out(0), o.accumulate);
  }
  void operator()(const instr::Accumulate& o) const {
    if (o.accumulate)
      kernels::accumulate(o.n, in(0), floats_out(0));
    else
      kernels::convert(o.n, in(0), out(0));
  }
  void operator()(const instr::Cast& o) const { kernels::convert(o.n, in(0), out(0)); }
  void operator()(const instr::SoftmaxStats& o) const {
    copy_unless_in_place(0, 0);
    if (o.vocab > 0) kernels::mask_columns(o.rows, o.width, o.vocab - at(o.first), out(0));
    kernels::softmax_stats(o.rows, o.width, at(o.first), tokens(1), out(0), floats_out(1), floats_out(2),
                           floats_out(3), static_cast<float>(o.scale));
  }
  void operator()(const instr::RescaleSums& o) const {
    kernels::rescale_sums(o.rows, floats(0), floats(1), floats(2), floats_out(0));
  }
  void operator()(const instr::TokenLoss& o) const {
    auto* part = reinterpret_cast<float*>(at_.scratch);
    kernels::cross_entropy_loss(o.rows, tokens(3), floats(1), floats(0), floats(2), o.scale, part,
                                at_.in.size() > 4 ? floats(4) : nullptr);
    *floats_out(0) = o.accumulate ? *floats_out(0) + *part : *part;
  }
  void operator()(const instr::CrossEntropyGrad& o) const {
    copy_unless_in_place(0, 0);
    kernels::cross_entropy_backward(o.rows, o.width, at(o.first), tokens(4), floats(1), floats(2), floats(3),
                                    static_cast<float>(o.scale), out(0),
                                    at_.in.size() > 5 ? floats(5) : nullptr);
  }
  void operator()(const instr::TokenLogProbs& o) const {
    kernels::log_probs(o.rows, tokens(3), floats(1), floats(0), floats(2), floats_out(0));
  }
  void operator()(const instr::PolicyLoss& o) const {
    const auto sums = kernels::policy_sums({o.rows, o.clip, o.kl}, policy_rows());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto part = static_cast<float>(sums[i]);
      floats_out(0)[i] = o.accumulate ? floats_out(0)[i] + part : part;
    }
  }
  void operator()(const instr::PolicyGrad& o) const {
    kernels::policy_backward({o.rows, o.clip, o.kl}, policy_rows(), floats_out(0));
  }
  void operator()(const instr::Elements&) const {
    for (std::size_t i = 0; i < at_.out.size(); ++i) *floats_out(i) = floats(0)[i];
  }
  void operator()(const instr::SumSquares&) const {
    double total = 0;
    for (std::size_t i = 0; i < at_.in.size(); ++i)
      total += static_cast<double>(kernels::sum_squares(instr_.in[i].bytes.value / 4, floats(i)));
    *floats_out(0) = static_cast<float>(total);
  }
  void operator()(const instr::AddScalars&) const {
    double total = 0;
    for (std::size_t i = 0; i < at_.in.size(); ++i) total += static_cast<double>(*floats(i));
    *floats_out(0) = static_cast<float>(total);
  }
  void operator()(const instr::ClipFactor& o) const {
    const double squares = static_cast<double>(*floats(0)) + scalars_.other_squares;
    const kernels::ClipFactor clip =
        kernels::clip_factor(static_cast<float>(squares), static_cast<float>(o.max_norm));
    *floats_out(0) = clip.factor;
    *floats_out(1) = clip.norm;
  }
  void operator()(const instr::AdamW& o) const {
    const std::int64_t t = scalars_.step + 1;
    const kernels::AdamW how{.lr = static_cast<float>(scalars_.lr),
                             .beta1 = static_cast<float>(o.beta1),
                             .beta2 = static_cast<float>(o.beta2),
                             .eps = static_cast<float>(o.eps),
                             .weight_decay = static_cast<float>(o.weight_decay),
                             .bias1 = kernels::bias_correction(o.beta1, t),
                             .bias2 = kernels::bias_correction(o.beta2, t),
                             .grad_factor = at_.in.size() > 4 ? *floats(4) : 1.0F};
    HR_CHECK(at_.out[0] == at_.in[0] && at_.out[1] == at_.in[2] && at_.out[2] == at_.in[3],
             "AdamW works in place");
    kernels::adamw(o.n, how, floats(1), floats_out(0), floats_out(1), floats_out(2));
  }
  void operator()(const instr::InitNormal& o) const {
    std::array<std::int64_t, 8> first{};
    HR_CHECK(o.first.size() <= first.size());
    for (std::size_t d = 0; d < o.first.size(); ++d) first[d] = at(o.first[d]);
    kernels::fill_normal(c_.seed, o.key, static_cast<float>(o.std),
                         {o.shape, std::span(first).first(o.first.size()), o.local}, floats_out(0));
  }
  void operator()(const instr::Fill& o) const {
    kernels::fill(o.n, static_cast<float>(o.value), floats_out(0));
  }
  void operator()(const instr::Copy& o) const {
    const std::int64_t run = o.inner * o.element_bytes;
    const std::byte* from = at_.in[0] + c_.mesh.index(c_.device, o.part) * run;
    for (std::int64_t i = 0; i < o.outer; ++i)
      std::memcpy(at_.out[0] + i * run, from + i * o.parts * run, static_cast<std::size_t>(run));
  }
  void operator()(const instr::StridedCopy& o) const {
    if (instr_.in[0].dtype == instr_.out[0].dtype)
      kernels::strided_copy(size_of(instr_.in[0].dtype), o.size, at_.in[0], o.from, at_.out[0], o.to);
    else
      kernels::strided_convert(o.size, in(0), o.from, out(0), o.to);
  }
  void operator()(const instr::LoadBatch& o) const {
    const std::int64_t first = o.micro_batch_first + at(o.sequence);
    for (std::size_t further = 1; further + 1 < at_.out.size(); ++further)
      each_run(o.order, at(o.position), o.length,
               [&](auto i, auto position, auto n) { load_further(o, first, i, position, n, further); });
    each_run(o.order, at(o.position), o.length, [&](auto i, auto position, auto n) {
      // A run of all columns covers all sequences at once.
      const std::int64_t rows = n == o.length ? o.sequences : 1;
      for (std::int64_t s = 0; s < o.sequences; s += rows)
        c_.feed.batch(scalars_.step, first + s, rows, position, n, tokens_out(0) + s * o.length + i,
                      tokens_out(1) + s * o.length + i);
    });
  }
  void operator()(const instr::LoadSamples& o) const {
    if (scalars_.samples == nullptr)
      throw Error(Code::kControl, "an invocation brings no samples to a program that takes some");
    const Samples& all = *scalars_.samples;
    const std::int64_t first = o.micro_batch_first + at(o.sequence);
    HR_CHECK(all.tokens == o.whole && first + o.sequences <= all.sequences(), "samples of another shape");
    load_columns(o, first, all.ids, tokens_out(0));
    load_columns(o, first, all.targets, tokens_out(1));
    const auto features = static_cast<std::size_t>(o.features), numbers = at_.out.size() - features;
    const std::array of_positions{&all.weight, &all.advantage, &all.behaviour, &all.reference};
    for (std::size_t i = 2; i < numbers; ++i) load_columns(o, first, *of_positions[i - 2], floats_out(i));
    HR_CHECK(all.features.size() >= features, "samples without the rows of features");
    for (std::size_t i = 0; i < features; ++i)
      load_columns(o, first, all.features[i], tokens_out(numbers + i));
  }
  void operator()(const instr::LoadVectors& o) const {
    if (scalars_.vectors == nullptr)
      throw Error(Code::kControl, "an invocation brings no input vectors to a program that takes some");
    const InputVectors& all = *scalars_.vectors;
    HR_CHECK(all.tokens == o.tokens && all.width == o.width, "input vectors of another shape");
    const std::int64_t each = o.tokens * o.width, first = at(o.item) - all.first;
    HR_CHECK(first >= 0, "input vectors of another replica");
    const std::int64_t there = std::clamp<std::int64_t>(all.items - first, 0, o.items);
    std::copy_n(all.values.data() + (there > 0 ? first : 0) * each, there * each, floats_out(0));
    kernels::clear((o.items - there) * each, out(0) + there * each);
  }
  void operator()(const instr::LoadPort& o) const {
    kernels::convert(o.n, in(0) + slot(o.slots) * o.n, out(0));
  }
  void operator()(const instr::Fetch& o) const {
    kernels::strided_copy(size_of(instr_.out[0].dtype), o.size, at_.in[0] + scalars_.slot * o.slot, o.from,
                          at_.out[0], o.to);
  }
  void operator()(const instr::StorePort& o) const {
    HR_CHECK(at_.out[0] == at_.in[1], "a port is stored to in place");
    kernels::convert(o.n, in(0), out(0) + slot(o.slots) * o.n);
  }
  void operator()(const instr::LoadRequests& o) const {
    const Requests& all = *scalars_.requests;
    HR_CHECK(all.width == o.request, "requests of another width");
    for (std::int64_t s = 0; s < o.sequences; ++s) {
      const std::int64_t sequence = at(o.sequence) + s;
      each_run(o.order, at(o.position), o.length, [&](auto i, auto position, auto n) {
        std::copy_n(all.ids.data() + sequence * all.tokens + position, n, tokens_out(0) + s * o.length + i);
      });
      std::copy_n(all.rows.data() + sequence * o.request, o.request, tokens_out(1) + s * o.request);
    }
  }
  void operator()(const instr::CachedAttention& o) const {
    HR_CHECK(at_.out[1] == at_.in[4] && at_.out[2] == at_.in[5], "pages stay where they are");
    kernels::CachedShape shape = kernels::cached_shape_of(o, rounds(instr_));
    shape.part = at(o.part);
    const std::int64_t heads = o.seq * o.kv_heads;
    for (std::int64_t b = 0; b < o.batch; ++b) {
      const std::int32_t* row = tokens(3) + b * o.request;
      const kernels::CachedSequence sequence{row[kRequestStart], row[kRequestCount], row + kRequestPages};
      const auto q = in(0) + b * heads * o.group * o.head_dim;
      const auto k = in(1) + b * heads * o.head_dim, v = in(2) + b * heads * o.value_dim;
      const auto result = out(0) + b * heads * o.group * o.value_dim;
      if (o.parts > 1)
        kernels::cached_attention_part(shape, sequence, q, k, v, out(1), out(2), result.as<float>(),
                                       floats_out(3) + b * heads * o.group, at_.scratch);
      else
        kernels::cached_attention(shape, sequence, q, k, v, out(1), out(2), result, at_.scratch);
    }
  }
  void operator()(const instr::MergeParts& o) const {
    kernels::merge_parts({o.parts, o.batch, o.seq, o.heads, o.width}, floats(0), floats(1), out(0));
  }
  void operator()(const instr::SelectRow& o) const {
    for (std::int64_t b = 0; b < o.batch; ++b) {
      const std::int64_t last = tokens(1)[b * o.request + kRequestCount] - 1;
      kernels::select_row(1, o.seq, o.width, in(0) + b * o.seq * o.width, at(o.first),
                          last < 0 ? last : o.order.place(last), out(0) + b * o.width);
    }
  }
  void operator()(const instr::Sample& o) const {
    const kernels::Sampling how{.temperature = static_cast<float>(o.temperature),
                                .top_k = o.top_k,
                                .top_p = o.top_p,
                                .seed = c_.seed};
    for (std::int64_t b = 0; b < o.batch; ++b) {
      const std::int32_t* row = tokens(1) + b * o.request;
      const std::int64_t position = row[kRequestStart] + row[kRequestCount] - 1;
      const float* const logits = floats(0) + b * (o.vocab + o.padding);
      tokens_out(0)[b] = kNoToken;
      floats_out(1)[b] = 0;
      if (!kernels::all_finite(o.vocab, logits)) continue;
      tokens_out(0)[b] = kernels::sample_token(o.vocab, logits, how, position, row[kRequestId], at_.scratch);
      floats_out(1)[b] = kernels::log_prob_of(o.vocab, logits, tokens_out(0)[b], o.temperature, scratch());
    }
  }
  void operator()(const instr::Collective&) const { HR_CHECK(false, "collectives are the executor's"); }
  void operator()(const instr::Prefetch&) const { HR_CHECK(false, "transfers are the executor's"); }
  void operator()(const instr::Store&) const { HR_CHECK(false, "transfers are the executor's"); }

 private:
  void positions_of_requests(const instr::Positions& o) const {
    for (std::int64_t s = 0; s < o.sequences; ++s) {
      const std::int32_t start = tokens(1)[s * o.request + kRequestStart];
      each_run(o.order, at(o.first), o.length, [&](auto i, auto position, auto n) {
        std::iota(tokens_out(0) + s * o.length + i, tokens_out(0) + s * o.length + i + n,
                  start + static_cast<std::int32_t>(position));
      });
    }
  }

  // Admits tokens in the order of the text, group by group.
  void admit(const instr::Route& o, const kernels::Routing& how) const {
    std::int32_t* taken = next_rows();
    for (std::int64_t first = 0; first < o.tokens; first += o.seq)
      for (std::int64_t position = 0; position < o.seq; ++position) {
        if (position % o.group == 0) std::fill_n(taken, o.experts, 0);
        kernels::admit(how, first + o.order.place(position), o.capacity, taken, floats_out(0), tokens_out(1));
      }
  }

  // Loads the targets `further` tokens on, for n columns, by way of the buffer of the tokens.
  void load_further(const instr::LoadBatch& o, std::int64_t first, std::int64_t column, std::int64_t position,
                    std::int64_t n, std::size_t further) const {
    const std::int64_t from = position + static_cast<std::int64_t>(further);
    const std::int64_t there = std::clamp<std::int64_t>(o.whole - from, 0, n);
    for (std::int64_t s = 0; s < o.sequences; ++s) {
      std::int32_t* to = tokens_out(1 + further) + s * o.length + column;
      if (there > 0) c_.feed.batch(scalars_.step, first + s, 1, from, there, tokens_out(0), to);
      std::fill(to + there, to + n, -1);
    }
  }

  // Copies the device's columns of the sequences from `first` on.
  template <class T>
  void load_columns(const instr::LoadSamples& o, std::int64_t first, const std::vector<T>& from,
                    T* to) const {
    HR_CHECK(std::ssize(from) >= (first + o.sequences) * o.whole, "samples without what is trained by");
    for (std::int64_t s = 0; s < o.sequences; ++s)
      each_run(o.order, at(o.position), o.length, [&](auto i, auto position, auto n) {
        std::copy_n(from.data() + (first + s) * o.whole + position, n, to + s * o.length + i);
      });
  }

  std::int64_t slot(std::int64_t slots) const {
    HR_CHECK(scalars_.slot >= 0 && scalars_.slot < slots, "a port has no such slot");
    return scalars_.slot;
  }

  kernels::PolicyRows policy_rows() const {
    return {tokens(1), floats(0), floats(2), floats(3), floats(4), floats(5)};
  }

  // The counts in input `counts`, for the instruction's tile.
  kernels::GroupRows group_rows(std::size_t counts, std::int64_t groups) const {
    const std::int64_t n = instr_.in[counts].bytes.value / static_cast<std::int64_t>(sizeof(std::int32_t));
    return {tokens(counts), groups, n / groups, kernel_tile(tile_of(instr_))};
  }

  // The first element and the number of elements of a SwiGlu.
  template <class Op>
  std::pair<std::int64_t, std::int64_t> elements(const Op& o, std::size_t counts) const {
    if (o.groups == 0) return {0, o.n};
    const kernels::RowRange rows = kernels::range_of(group_rows(counts, o.groups));
    return {o.width * rows.first, o.width * rows.count};
  }

  template <class Op>
  static kernels::Routing routing(const Op& o) {
    return {.tokens = o.tokens,
            .experts = o.experts,
            .choices = o.choices,
            .sigmoid = o.sigmoid,
            .normalize = o.normalize,
            .scale = static_cast<float>(o.scale)};
  }
  template <class Op>
  static kernels::Routing rows_of(const Op& o) {
    return {.tokens = o.tokens, .experts = o.experts, .choices = o.choices};
  }
  float* scratch() const { return reinterpret_cast<float*>(at_.scratch); }
  std::int32_t* next_rows() const { return reinterpret_cast<std::int32_t*>(at_.scratch); }

  template <class Op>
  static kernels::NormShape norm_shape(const Op& o) {
    kernels::NormShape shape{.rows = o.rows, .width = o.width, .whole = o.whole};
    if constexpr (requires { o.eps; }) shape.eps = static_cast<float>(o.eps);
    return shape;
  }

  template <class Op>
  kernels::AttentionShape attention_shape(const Op& o) const {
    return {.batch = o.batch,
            .seq = o.seq,
            .heads = o.kv_heads * o.group,
            .kv_heads = o.kv_heads,
            .head_dim = o.head_dim,
            .causal = o.causal,
            .scale = static_cast<float>(o.scale),
            .rounded = rounds(instr_),
            .value_dim = o.value_dim,
            .window = o.window};
  }

  // The positions of the part that the device `back` before this one in the ring holds.
  template <class Op>
  kernels::Stretches stretches(const Op& o, std::int64_t back) const {
    const std::int64_t n = c_.mesh.size(o.ring), r = (c_.mesh.index(c_.device, o.ring) + n - back) % n;
    const Zigzag order{n, o.seq / 2};
    return {order.position(r * o.seq), order.position(r * o.seq + o.seq / 2)};
  }
  template <class Op>
  void window_step(const Op& o, std::int64_t step) const {
    kernels::window_attention(attention_shape(o), stretches(o, 0), stretches(o, step), step > 0, in(0), in(1),
                              in(2), out(0), floats_out(1), at_.scratch);
  }
  template <class Op>
  void window_step_grad(const Op& o, std::int64_t step) const {
    kernels::window_attention_backward(attention_shape(o), stretches(o, 0), stretches(o, step), step > 0,
                                       in(0), in(1), in(2), in(3), floats(4), in(5), out(0), out(1), out(2),
                                       at_.scratch);
  }

  template <class Op>
  kernels::KeysOf keys_of(const Op& o) const {
    return c_.mesh.index(c_.device, o.ring) >= o.step ? kernels::KeysOf::kPartBefore
                                                      : kernels::KeysOf::kPartBehind;
  }

  // Calls f(i, position, n) for places [first + i, first + i + n) that hold positions from `position` on.
  template <class F>
  static void each_run(const Zigzag& order, std::int64_t first, std::int64_t count, F f) {
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t n = order.run(first + i, count - i);
      f(i, order.position(first + i), n);
      i += n;
    }
  }

  void copy_unless_in_place(std::size_t from, std::size_t to) const {
    if (at_.out[to] == at_.in[from]) return;
    kernels::copy(instr_.in[from].bytes.value / size_of(instr_.in[from].dtype), in(from), out(to));
  }

  kernels::ConstArray in(std::size_t i) const { return {at_.in[i], instr_.in[i].dtype}; }
  kernels::Array out(std::size_t i) const { return {at_.out[i], instr_.out[i].dtype}; }
  const float* floats(std::size_t i) const { return in(i).as<float>(); }
  float* floats_out(std::size_t i) const { return out(i).as<float>(); }
  const std::int32_t* tokens(std::size_t i) const { return reinterpret_cast<const std::int32_t*>(at_.in[i]); }
  std::int32_t* tokens_out(std::size_t i) const { return reinterpret_cast<std::int32_t*>(at_.out[i]); }
  std::int64_t at(const Coord& c) const { return c.at(c_.mesh, c_.device); }

  const Instr& instr_;
  const Addresses& at_;
  const Scalars& scalars_;
  const KernelContext& c_;
};

}  // namespace

void run_kernel(const Instr& instr, const Addresses& at, const Scalars& scalars,
                const KernelContext& context) {
  std::visit(Kernel(instr, at, scalars, context), instr.op);
}

}  // namespace hyperrun
