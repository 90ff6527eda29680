// The traffic of each strategy along each mesh axis, executed, against its formula: the share of one more
// layer in a step.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using Bytes64 = std::map<std::string, std::int64_t>;  // "all-gather tpx"

// The proportions of Llama-405B's layer (feed-forward 3.25 h, keys and values h / 16), scaled down. It has
// sixteen heads of keys and values, so that sixteen devices can have one each.
Job layer_of_405b(const std::string& parallel, int layers) {
  Job job = small_job(parallel);
  job.supernode.hbm = Bytes(std::int64_t{160} << 20);
  job.model = {.layers = layers,
               .hidden = 512,
               .heads = 256,
               .kv_heads = 16,
               .head_dim = 2,
               .ffn = 1664,
               .vocab = 320,
               .sequence = 64};
  job.training.batch = 1;
  job.training.steps = 1;
  return job;
}

Bytes64 traffic(const Job& job) {
  Bytes64 bytes;
  const RunResult run = run_in_process(job, {.steps = 1});
  for (const Traffic& t : run.stats[0].traffic) bytes[t.kind.collective + " " + t.kind.axes] += t.bytes.value;
  return bytes;
}

const Bytes64& of_a_layer(const std::string& parallel) {
  static std::map<std::string, Bytes64> known;
  const auto [entry, fresh] = known.try_emplace(parallel);
  if (fresh) {
    entry->second = traffic(layer_of_405b(parallel, 2));
    for (const auto& [kind, bytes] : traffic(layer_of_405b(parallel, 1))) entry->second[kind] -= bytes;
  }
  return entry->second;
}

std::int64_t sum(const Bytes64& all) {
  std::int64_t total = 0;
  for (const auto& [kind, bytes] : all) total += bytes;
  return total;
}

// The units are b s h. E is the feed-forward's width, q and kv those of queries and of keys, all in units of
// h.
constexpr double kE = 3.25, kQ = 1, kKv = 1.0 / 16;
constexpr double kBsh = 64 * 512 * 4;

using Formula = std::map<std::string, double>;

void expect(const std::string& parallel, const Bytes64& bytes, const Formula& formula) {
  for (const auto& [kind, volume] : formula)
    EXPECT_EQ(static_cast<double>(bytes.at(kind)), volume * kBsh) << parallel << " " << kind;
  // Besides these only a norm's statistics and its weight's gradient are exchanged.
  for (const auto& [kind, volume] : bytes)
    EXPECT_TRUE(volume == 0 || formula.contains(kind) || kind.starts_with("all-reduce"))
        << parallel << " " << kind;
}
void expect(const std::string& parallel, const Formula& formula) {
  expect(parallel, of_a_layer(parallel), formula);
}

// Korthikanti et al. 2022: 4 (t-1)/t forwards; 6 (t-1)/t backwards, where each product's input is gathered
// again for the weight's gradient.
TEST(StrategyTraffic, TensorAndSequenceParallel) {
  for (const int t : {8, 16}) {
    const double part = (t - 1.0) / t;
    expect("tp:" + std::to_string(t) + " sp", {{"all-gather tp", 6 * part}, {"reduce-scatter tp", 4 * part}});
  }
}

// The published form is, forwards, 4 (x-1)/(xy) over x and ((y-1)/y) (2E + E + (1 + 2kv) + q) / x over y, and
// an all-to-all of queries, keys and values. Its way back is not needed: the heads are gathered in place.
TEST(StrategyTraffic, TensorParallelInTwoDimensions) {
  for (const auto& [x, y] : {std::pair{4, 2}, {8, 2}, {4, 4}}) {
    const double of_x = (x - 1.0) / (x * y), of_y = (y - 1.0) / y / x;
    const double gathered_forward = kE + kQ, gathered_backward = 3 * kE + 2 * kQ + 2 * kKv;
    const double scattered_forward = 2 * kE + kQ + 2 * kKv, scattered_backward = kE + kQ;
    expect("tpx:" + std::to_string(x) + " tpy:" + std::to_string(y),
           {{"all-gather tpx", 6 * of_x},
            {"reduce-scatter tpx", 4 * of_x},
            {"all-gather tpy", (gathered_forward + gathered_backward) * of_y},
            {"reduce-scatter tpy", (scattered_forward + scattered_backward) * of_y},
            {"all-to-all tpy", (kQ + 2 * kKv) * of_y / y}});
  }
}

// The reason for two dimensions: less to move, where x is large enough.
TEST(StrategyTraffic, TwoDimensionsMoveAThirdLessOnSixteen) {
  const std::int64_t one = sum(of_a_layer("tp:16 sp")), two = sum(of_a_layer("tpx:8 tpy:2"));
  EXPECT_LT(static_cast<double>(two), 0.7 * static_cast<double>(one));
  RecordProperty("tp2d_8x2_over_tp16", std::to_string(static_cast<double>(two) / static_cast<double>(one)));
}

// Jacobs et al. 2023: each of q, k, v and o changes between sequence and heads, and so do their gradients.
TEST(StrategyTraffic, Ulysses) {
  for (const int c : {4, 16})
    expect("cp:" + std::to_string(c), {{"all-to-all cp", 4 * (kQ + kKv) * (c - 1.0) / c / c}});
}

// Liu et al. 2023: keys and values of a part go to all other members, forwards and backwards, and so do their
// gradients, which find the way home at the end.
TEST(StrategyTraffic, Ring) {
  for (const int c : {2, 4, 16}) {
    const double moved = (c - 1.0) / c;
    expect("ring:" + std::to_string(c), {{"shift ring", (2 + 4) * kKv * moved}});
  }
}

// A GPT-2's layer has as many keys as queries, and of two products the feed-forward's; biases and norms add
// vectors and statistics to what is reduced, nothing that has both tokens and width.
TEST(StrategyTraffic, Gpt2) {
  constexpr double kWide = 4;
  const auto job = [](const std::string& parallel, int layers) {
    Job job = layer_of_405b(parallel, layers);
    job.model = {.name = "gpt2",
                 .layers = layers,
                 .hidden = 512,
                 .heads = 16,
                 .kv_heads = 16,
                 .head_dim = 32,
                 .ffn = 2048,
                 .vocab = 320,
                 .sequence = 64,
                 .tied_head = true};
    return job;
  };
  const auto expect_of = [&](const std::string& parallel, const Formula& formula) {
    Bytes64 bytes = traffic(job(parallel, 2));
    for (const auto& [kind, of_one] : traffic(job(parallel, 1))) bytes[kind] -= of_one;
    expect(parallel, bytes, formula);
  };
  // With a split sequence, gradients of tensors h wide are partial: of two norms' weights and biases, and of
  // two products' biases. Each device reads those of the 7 others.
  expect_of(
      "tp:8 sp",
      {{"all-gather tp", 6 * 7.0 / 8}, {"reduce-scatter tp", 4 * 7.0 / 8}, {"all-reduce tp", 6 * 7.0 / 64}});
  expect_of("cp:4", {{"all-to-all cp", 4 * 2 * 3.0 / 4 / 4}});
  expect_of("ring:4", {{"shift ring", (2 + 4) * 3.0 / 4}});
  expect_of("tpx:4 tpy:2", {{"all-gather tpx", 6 * 3.0 / 8},
                            {"reduce-scatter tpx", 4 * 3.0 / 8},
                            {"all-gather tpy", (kWide + 1 + 2 * kWide + 2 + 2) / 2 / 4},
                            {"reduce-scatter tpy", (kWide + 1 + 2 + kWide + 1) / 2 / 4},
                            {"all-to-all tpy", 3.0 / 2 / 4 / 2}});
}

// A recomputed layer repeats the forward pass' messages, and adds no others.
TEST(StrategyTraffic, RingForwards) {
  Bytes64 bytes;
  for (const int layers : {2, 1}) {
    Job job = layer_of_405b("ring:4", layers);
    job.training.recompute = {{"full", 0, layers - 1}};
    for (const auto& [kind, b] : traffic(job)) bytes[kind] += layers == 2 ? b : -b;
  }
  EXPECT_EQ(static_cast<double>(bytes.at("shift ring") - of_a_layer("ring:4").at("shift ring")),
            2 * kKv * 3 / 4 * kBsh);
}

// The sequence in r parts that go round, each in u parts that change to heads.
TEST(StrategyTraffic, RingOfUlysses) {
  for (const auto& [r, u] : {std::pair{2, 4}, {4, 2}, {2, 8}}) {
    const double all_to_all = (u - 1.0) / u / u / r;
    expect(
        "ring:" + std::to_string(r) + " cp:" + std::to_string(u),
        {{"shift ring", (2 + 4) * kKv * (r - 1.0) / r / u}, {"all-to-all cp", 4 * (kQ + kKv) * all_to_all}});
  }
}

// Rajbhandari et al. 2020, psi elements of a layer's weights, m micro-batches: ZeRO-1 scatters gradients and
// gathers weights once a step; ZeRO-2 scatters in every micro-batch; ZeRO-3 gathers weights for each pass of
// each.
TEST(StrategyTraffic, Zero) {
  const double psi = 512 * 512 * 2 + 2 * 512 * 32 + 3 * 512 * 1664 + 2 * 512;
  const auto bytes = [](const std::string& parallel, int m) {
    Bytes64 more;
    for (const int layers : {2, 1}) {
      Job job = layer_of_405b(parallel, layers);
      job.training.batch = 4 * m;
      job.training.micro_batches = m;
      for (const auto& [kind, b] : traffic(job)) more[kind] += layers == 2 ? b : -b;
    }
    return more;
  };
  const double one = psi * 4 * 3 / 4;
  for (const int m : {1, 3}) {
    const Bytes64 first = bytes("dp:4 zero1", m), second = bytes("dp:4 zero2", m),
                  third = bytes("dp:4 zero3", m);
    EXPECT_EQ(static_cast<double>(first.at("reduce-scatter dp")), one);
    EXPECT_EQ(static_cast<double>(first.at("all-gather dp")), one);
    EXPECT_EQ(static_cast<double>(second.at("reduce-scatter dp")), m * one);
    EXPECT_EQ(static_cast<double>(second.at("all-gather dp")), one);
    EXPECT_EQ(static_cast<double>(third.at("reduce-scatter dp")), m * one);
    EXPECT_EQ(static_cast<double>(third.at("all-gather dp")), 2 * m * one);
  }
}

// In bfloat16 activations, keys and values, and gathered weights take half the bytes; gradients of weights
// stay float32.
TEST(StrategyTraffic, Bfloat16IsHalfOfActivations) {
  for (const std::string parallel : {"tp:8 sp", "tpx:4 tpy:2", "cp:4", "ring:4"}) {
    const Bytes64 &wide = of_a_layer(parallel), &half = of_a_layer(parallel + " bf16");
    for (const auto& [kind, bytes] : wide) {
      if (kind.starts_with("all-reduce")) continue;  // a norm's statistics and its weight's gradient
      EXPECT_EQ(2 * half.at(kind), bytes) << parallel << " " << kind;
    }
  }
}

TEST(StrategyTraffic, Bfloat16IsHalfOfGatheredWeights) {
  const double psi = 512 * 512 * 2 + 2 * 512 * 32 + 3 * 512 * 1664 + 2 * 512;
  constexpr int kMicroBatches = 2;
  const std::map<std::string, std::pair<int, int>> formulas{
      // gathered and scattered, in units of psi (d-1)/d
      {"dp:4 zero1 bf16", {2, 4}},
      {"dp:4 zero2 bf16", {2, 4 * kMicroBatches}},
      {"dp:4 zero3 bf16", {4 * kMicroBatches, 4 * kMicroBatches}}};
  for (const auto& [parallel, bytes_each] : formulas) {
    Bytes64 more;
    for (const int layers : {2, 1}) {
      Job job = layer_of_405b(parallel, layers);
      job.training.batch = 4 * kMicroBatches;
      job.training.micro_batches = kMicroBatches;
      for (const auto& [kind, b] : traffic(job)) more[kind] += layers == 2 ? b : -b;
    }
    EXPECT_EQ(static_cast<double>(more.at("all-gather dp")), bytes_each.first * psi * 3 / 4) << parallel;
    EXPECT_EQ(static_cast<double>(more.at("reduce-scatter dp")), bytes_each.second * psi * 3 / 4) << parallel;
  }
}

}  // namespace
}  // namespace hyperrun::testing
