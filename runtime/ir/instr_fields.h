// The fields of each instruction, listed once: fields(op, visitor) calls visitor("name", field) for each, in
// a fixed order. Text dumps and the wire format both come from here, so no field is printed but not sent.
// Append fields at the end. Dumps leave out a field that is zero; with visitor("name", field, usual) they
// leave it out if it equals `usual`.
#pragma once

#include "runtime/base/any_of.h"
#include "runtime/ir/instr.h"

namespace hyperrun::instr {

void fields(AnyOf<Gemm> auto& o, auto&& v) {
  v("trans_a", o.trans_a), v("trans_b", o.trans_b), v("accumulate", o.accumulate);
  v("m", o.m), v("n", o.n), v("k", o.k);
}
void fields(AnyOf<Embedding> auto& o, auto&& v) {
  v("rows", o.rows), v("width", o.width), v("vocab", o.vocab), v("first", o.first);
}
void fields(AnyOf<EmbeddingGrad> auto& o, auto&& v) {
  v("accumulate", o.accumulate), v("rows", o.rows), v("width", o.width), v("vocab", o.vocab),
      v("first", o.first);
}
void fields(AnyOf<Positions> auto& o, auto&& v) {
  v("sequences", o.sequences), v("length", o.length), v("first", o.first), v("order", o.order);
  v("request", o.request);
}
void fields(AnyOf<RowSums> auto& o, auto&& v) { v("rows", o.rows), v("width", o.width); }
void fields(AnyOf<RowSquares, NormDots> auto& o, auto&& v) {
  v("rows", o.rows), v("width", o.width), v("whole", o.whole), v("centered", o.centered);
}
void fields(AnyOf<Norm> auto& o, auto&& v) {
  v("rows", o.rows), v("width", o.width), v("whole", o.whole), v("eps", o.eps), v("centered", o.centered);
}
void fields(AnyOf<NormGrad> auto& o, auto&& v) {
  v("accumulate", o.accumulate), v("addend", o.addend), v("rows", o.rows), v("width", o.width);
  v("whole", o.whole), v("eps", o.eps), v("centered", o.centered);
}
void fields(AnyOf<RopeTable> auto& o, auto&& v) {
  v("positions", o.positions), v("head_dim", o.head_dim), v("theta", o.theta), v("first", o.first);
  v("order", o.order), v("frequencies", o.frequencies), v("magnitude", o.magnitude, 1.0);
}
void fields(AnyOf<Rope> auto& o, auto&& v) {
  v("inverse", o.inverse), v("batch", o.batch), v("seq", o.seq), v("heads", o.heads),
      v("head_dim", o.head_dim), v("turned", o.turned), v("neighbours", o.neighbours), v("each", o.each);
  v("at_front", o.at_front);
}
void fields(AnyOf<Join, JoinGrad> auto& o, auto&& v) {
  v("rows", o.rows), v("repeat", o.repeat), v("left", o.left), v("right", o.right);
}
void fields(AnyOf<Attention, AttentionGrad> auto& o, auto&& v) {
  v("batch", o.batch), v("seq", o.seq), v("kv_heads", o.kv_heads), v("group", o.group),
      v("head_dim", o.head_dim), v("value_dim", o.value_dim), v("causal", o.causal, true);
  v("window", o.window), v("ring", o.ring), v("scale", o.scale);
}
void fields(AnyOf<CachedAttention> auto& o, auto&& v) {
  v("batch", o.batch), v("seq", o.seq), v("kv_heads", o.kv_heads), v("group", o.group);
  v("head_dim", o.head_dim), v("value_dim", o.value_dim), v("request", o.request);
  v("pages", o.pages), v("page", o.page), v("context", o.context), v("parts", o.parts), v("part", o.part);
  v("window", o.window), v("scale", o.scale);
}
void fields(AnyOf<MergeParts> auto& o, auto&& v) {
  v("parts", o.parts), v("batch", o.batch), v("seq", o.seq), v("heads", o.heads), v("width", o.width);
}
void fields(AnyOf<AttentionStep, AttentionStepGrad> auto& o, auto&& v) {
  v("batch", o.batch), v("seq", o.seq), v("kv_heads", o.kv_heads), v("group", o.group),
      v("head_dim", o.head_dim), v("ring", o.ring), v("step", o.step), v("value_dim", o.value_dim);
  v("causal", o.causal, true), v("window", o.window), v("scale", o.scale);
}
void fields(AnyOf<SwiGlu, SwiGluGrad> auto& o, auto&& v) {
  v("n", o.n), v("groups", o.groups), v("width", o.width);
}
void fields(AnyOf<GroupedGemm> auto& o, auto&& v) {
  v("accumulate", o.accumulate), v("trans_b", o.trans_b), v("groups", o.groups), v("n", o.n), v("k", o.k);
  v("rows", o.rows);
}
void fields(AnyOf<GroupedOuter> auto& o, auto&& v) {
  v("accumulate", o.accumulate), v("groups", o.groups), v("m", o.m), v("n", o.n), v("rows", o.rows);
}
void fields(AnyOf<Route, RouteGrad> auto& o, auto&& v) {
  v("tokens", o.tokens), v("experts", o.experts), v("choices", o.choices), v("sigmoid", o.sigmoid);
  v("normalize", o.normalize), v("scale", o.scale);
  if constexpr (requires { o.aux; }) v("aux", o.aux);
  if constexpr (requires { o.groups; }) {
    v("groups", o.groups), v("group_choices", o.group_choices), v("capacity", o.capacity);
    v("group", o.group), v("seq", o.seq), v("order", o.order);
    v("group_best", o.group_best, std::int64_t{2});
  }
}
void fields(AnyOf<Dispatch, Combine, CombineGrad> auto& o, auto&& v) {
  v("tokens", o.tokens), v("experts", o.experts), v("choices", o.choices), v("width", o.width);
}
void fields(AnyOf<Balance> auto& o, auto&& v) { v("experts", o.experts), v("rate", o.rate); }
void fields(AnyOf<SumCounts> auto& o, auto&& v) { v("sources", o.sources), v("experts", o.experts); }
void fields(AnyOf<Regroup> auto& o, auto&& v) {
  v("back", o.back), v("sources", o.sources), v("experts", o.experts), v("width", o.width), v("rows", o.rows);
}
void fields(AnyOf<Cast, Gelu, GeluGrad> auto& o, auto&& v) { v("n", o.n); }
void fields(AnyOf<Add> auto& o, auto&& v) { v("n", o.n), v("repeat", o.repeat); }
void fields(AnyOf<SumRows> auto& o, auto&& v) {
  v("accumulate", o.accumulate), v("rows", o.rows), v("width", o.width);
}
void fields(AnyOf<Accumulate> auto& o, auto&& v) { v("accumulate", o.accumulate), v("n", o.n); }
void fields(AnyOf<SoftmaxStats> auto& o, auto&& v) {
  v("rows", o.rows), v("width", o.width), v("first", o.first), v("scale", o.scale), v("vocab", o.vocab);
}
void fields(AnyOf<RescaleSums> auto& o, auto&& v) { v("rows", o.rows); }
void fields(AnyOf<TokenLoss> auto& o, auto&& v) {
  v("accumulate", o.accumulate), v("rows", o.rows), v("scale", o.scale);
}
void fields(AnyOf<CrossEntropyGrad> auto& o, auto&& v) {
  v("rows", o.rows), v("width", o.width), v("scale", o.scale), v("first", o.first);
}
void fields(AnyOf<TokenLogProbs> auto& o, auto&& v) { v("rows", o.rows); }
void fields(AnyOf<PolicyLoss> auto& o, auto&& v) {
  v("accumulate", o.accumulate), v("rows", o.rows), v("clip", o.clip), v("kl", o.kl);
}
void fields(AnyOf<PolicyGrad> auto& o, auto&& v) { v("rows", o.rows), v("clip", o.clip), v("kl", o.kl); }
void fields(AnyOf<SumSquares, AddScalars, Elements> auto&, auto&&) {}
void fields(AnyOf<ClipFactor> auto& o, auto&& v) { v("max_norm", o.max_norm); }
void fields(AnyOf<AdamW> auto& o, auto&& v) {
  v("n", o.n), v("beta1", o.beta1), v("beta2", o.beta2), v("eps", o.eps), v("weight_decay", o.weight_decay);
}
void fields(AnyOf<InitNormal> auto& o, auto&& v) {
  v("shape", o.shape), v("local", o.local), v("first", o.first), v("std", o.std), v("key", o.key);
}
void fields(AnyOf<Fill> auto& o, auto&& v) { v("n", o.n), v("value", o.value); }
void fields(AnyOf<Copy> auto& o, auto&& v) {
  v("outer", o.outer), v("parts", o.parts), v("inner", o.inner), v("part", o.part);
  v("element_bytes", o.element_bytes);
}
void fields(AnyOf<StridedCopy> auto& o, auto&& v) { v("size", o.size), v("from", o.from), v("to", o.to); }
void fields(AnyOf<LoadBatch, LoadSamples> auto& o, auto&& v) {
  v("micro_batch_first", o.micro_batch_first), v("sequences", o.sequences), v("length", o.length);
  v("sequence", o.sequence), v("position", o.position), v("order", o.order), v("whole", o.whole);
  if constexpr (requires { o.features; }) v("features", o.features);
}
void fields(AnyOf<LoadVectors> auto& o, auto&& v) {
  v("items", o.items), v("tokens", o.tokens), v("width", o.width), v("item", o.item);
}
void fields(AnyOf<Fetch> auto& o, auto&& v) {
  v("from_rank", o.from_rank), v("to_rank", o.to_rank), v("offset", o.offset), v("slot", o.slot),
      v("size", o.size), v("from", o.from), v("to", o.to);
}
void fields(AnyOf<LoadPort, StorePort> auto& o, auto&& v) { v("slots", o.slots), v("n", o.n); }
void fields(AnyOf<LoadRequests> auto& o, auto&& v) {
  v("sequences", o.sequences), v("length", o.length), v("request", o.request);
  v("sequence", o.sequence), v("position", o.position), v("order", o.order);
}
void fields(AnyOf<SelectRow> auto& o, auto&& v) {
  v("batch", o.batch), v("seq", o.seq), v("width", o.width), v("first", o.first);
  v("order", o.order), v("request", o.request);
}
void fields(AnyOf<Sample> auto& o, auto&& v) {
  v("batch", o.batch), v("vocab", o.vocab), v("request", o.request), v("temperature", o.temperature),
      v("top_k", o.top_k), v("top_p", o.top_p), v("padding", o.padding);
}
void fields(AnyOf<Prefetch> auto& o, auto&& v) { v("from", o.from), v("bytes", o.bytes), v("row", o.row); }
void fields(AnyOf<Store> auto& o, auto&& v) { v("to", o.to), v("bytes", o.bytes), v("row", o.row); }
void fields(AnyOf<Collective> auto& o, auto&& v) {
  v("kind", o.kind), v("axes", o.axes), v("dtype", o.dtype), v("reduction", o.reduction);
  v("outer", o.outer), v("inner", o.inner), v("from", o.from), v("middle", o.middle), v("to", o.to);
  v("gather_first", o.gather_first), v("peer", o.peer), v("experts", o.experts), v("back", o.back);
}

}  // namespace hyperrun::instr
