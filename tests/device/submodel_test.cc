// Parts of a model: together they give the results of the whole, for any layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sim/simulate.h"
#include "tests/device/submodel_training.h"
#include "tests/support/errors.h"
#include "tests/support/jobs.h"
#include "tests/support/samples.h"

namespace hyperrun::testing {
namespace {

// The same products run in the same order, in float32 with weights that are a power of two: the same bits.
// A gradient of -0 becomes 0 where it is added to zero, which changes nothing.
TEST(Submodel, ATextModelByItselfDoesWhatTheWholeDoes) {
  for (const int micro_batches : {1, 4}) {
    const Job job = text_job("dp:1", micro_batches);
    expect_alike(trained_whole(job), trained_in_parts(job, parts_of(job, {}, 1)), 1e-6, 0,
                 std::to_string(micro_batches) + " micro-batches");
  }
}

TEST(Submodel, CutIntoPartsItDoesTheSame) {
  const Job job = text_job("dp:1", 4);
  const RunResult whole = trained_whole(job);
  for (const std::vector<int>& cuts : {std::vector<int>{1}, std::vector<int>{1, 2}})
    for (const std::int64_t slots : {1, 2, 3})
      expect_alike(whole, trained_in_parts(job, parts_of(job, cuts, slots)), 1e-6, 0,
                   std::to_string(cuts.size()) + " cuts, " + std::to_string(slots) + " slots");
}

TEST(Submodel, UnderEveryLayout) {
  for (const std::string layout :
       {"dp:2", "tp:2", "dp:2 tp:2 sp zero1", "dp:2 zero2", "dp:2 zero3", "cp:2", "tpx:2 tpy:2"}) {
    const Job job = text_job(layout, 2);
    const RunResult whole = trained_whole(job);
    for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{2}})
      expect_alike(whole, trained_in_parts(job, parts_of(job, cuts, 2)), 1e-5, 1e-4,
                   layout + ", " + std::to_string(cuts.size()) + " cuts");
  }
}

// Values are rounded to bfloat16 at the same places.
TEST(Submodel, InBfloat16) {
  for (const std::string layout : {"dp:1 bf16", "dp:2 tp:2 sp zero1 bf16"}) {
    const Job job = text_job(layout, 2);
    const RunResult whole = trained_whole(job);
    for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{1, 2}})
      expect_alike(whole, trained_in_parts(job, parts_of(job, cuts, 2)), 1e-3, 2e-3,
                   layout + ", " + std::to_string(cuts.size()) + " cuts");
  }
}

TEST(Submodel, PartsMayLieOtherwise) {
  const Job job = text_job("dp:1", 2);
  std::vector<SubmodelSpec> parts = parts_of(job, {1, 2}, 1);
  parts[0].job = text_job("dp:2 zero1", 2);
  parts[1].job = text_job("tp:2 sp", 2);
  parts[2].job = text_job("dp:2 tp:2", 2);
  expect_alike(trained_whole(job), trained_in_parts(job, parts), 1e-5, 1e-4, "three layouts");
}

TEST(Submodel, OfOtherModels) {
  for (const bool gpt2 : {true, false}) {
    Job job = text_job("dp:2", 2);
    gpt2 ? become_gpt2(job) : become_deepseek(job);
    job.model.mtp = {};
    job.model.tied_head = false;
    if (!gpt2) job.model.experts.aux_loss = 0.01;
    expect_alike(trained_whole(job), trained_in_parts(job, parts_of(job, {2}, 2)), 1e-5, 1e-4,
                 gpt2 ? "gpt2" : "deepseek");
  }
}

TEST(Submodel, RecomputesWhatTheJobDoesNotKeep) {
  Job job = text_job("tp:2 sp", 2);
  job.training.recompute = {{"full", 0, 1}, {"selective", 2, 2}};
  expect_alike(trained_whole(job), trained_in_parts(job, parts_of(job, {1}, 1)), 1e-5, 1e-4, "recomputed");
}

TEST(Submodel, ScoresAsItsLossSays) {
  const Job job = text_job("dp:2 tp:2 sp", 2);
  for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{1}}) {
    Text text(parts_of(job, cuts, 1));
    Samples samples = made_up_samples(job, 0);
    samples.advantage.clear(), samples.behaviour.clear(), samples.reference.clear();
    for (const Samples& part : micro_batches_of(job, samples)) {
      const std::vector<float> logp = text.score(part);
      double loss = 0;
      for (std::size_t i = 0; i < logp.size(); ++i) {
        EXPECT_EQ(logp[i] == 0, part.targets[i] < 0) << i;
        loss -= static_cast<double>(part.weight[i]) * static_cast<double>(logp[i]);
      }
      EXPECT_NEAR(text.passes({part}), loss, 1e-5 * loss);
    }
  }
}

// --- encoders -----------------------------------------------------------------------------------------

TEST(Encoder, LearnsUnderEveryLayoutWhatOneDeviceLearns) {
  const Trained one = Omni(encoder_spec("dp:1", 2), reader_spec("dp:1", 2)).train();
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const auto& [encoder, text] : {std::pair{"dp:2", "dp:1"},
                                      {"dp:4", "dp:2"},
                                      {"tp:2", "tp:2 sp"},
                                      {"dp:2 tp:2", "dp:2 tp:2 sp zero1"},
                                      {"dp:2 zero1", "cp:2"},
                                      {"dp:2 tp:2 sp zero3", "dp:2 zero3"},
                                      {"tpx:2 tpy:2", "tpx:2 tpy:2"},
                                      {"dp:1", "ring:2"}})
    expect_alike(one, Omni(encoder_spec(encoder, 2), reader_spec(text, 2)).train(), 1e-5, 1e-4,
                 std::string(encoder) + " and " + text);
}

// Each rounding loses up to 2^-8, at random.
TEST(Encoder, InBfloat16) {
  const Trained one = Omni(encoder_spec("dp:1", 2), reader_spec("dp:1", 2)).train();
  for (const std::string layout : {"dp:1 bf16", "dp:2 tp:2 zero1 bf16"}) {
    const Trained rounded = Omni(encoder_spec(layout, 2), reader_spec(layout, 2)).train();
    expect_alike(RunResult{.losses = one.losses}, rounded, 0x1p-8, 0, layout);
    for (std::size_t i = 0; i < one.grad_norms.size(); ++i)
      EXPECT_NEAR(rounded.grad_norms[i], one.grad_norms[i], 0x1p-4 * one.grad_norms[i]) << layout << " " << i;
  }
}

TEST(Encoder, EveryTokenSeesTheOthersOfItsItem) {
  SubmodelDevices encoder(encoder_spec("dp:1"));
  InputVectors vectors = made_up_vectors(1);
  const auto first_tokens = [&] {
    encoder.run("forward", {.vectors = &vectors});
    const std::vector<float> out = encoder.read("port.out");
    const std::int64_t each = std::ssize(out) / kItems, width = each / kTokens;
    return std::pair(std::vector(out.begin(), out.begin() + width),
                     std::vector(out.begin() + each, out.begin() + each + width));
  };
  const auto before = first_tokens();
  vectors.values[static_cast<std::size_t>(kTokens * kWidth - 1)] += 1;  // of the first item's last token
  const auto after = first_tokens();
  EXPECT_NE(before.first, after.first);
  EXPECT_EQ(before.second, after.second);
}

// A derivative along the gradient is its norm. In float32 the loss, of some units, has some 1e-7 of itself as
// noise, of which the difference of 5e-4 makes 1e-3; a longer step would leave where the loss is straight.
void expect_derivative(const std::string& what, std::vector<float> at, const std::vector<float>& gradient,
                       const std::function<double(const std::vector<float>&)>& loss) {
  ASSERT_EQ(at.size(), gradient.size()) << what;
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(squares), step = 2.5e-4 / norm;
  ASSERT_GT(norm, 1e-5) << what;
  const auto moved = [&](double by) {
    std::vector<float> there = at;
    for (std::size_t i = 0; i < at.size(); ++i)
      there[i] += static_cast<float>(by / norm * static_cast<double>(gradient[i]));
    return loss(there);
  };
  EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step), norm, 1e-2 * norm) << what;
}

TEST(Encoder, GradientsAreTheDerivativesOfTheTextsLoss) {
  SubmodelSpec encoder = encoder_spec("dp:1");
  encoder.job.training.init_std = 0.3;  // else attention is nearly the same for all
  Omni omni(encoder, reader_spec("dp:1"));
  const Samples samples =
      with_features(micro_batches_of(text_job("dp:1", 2), plain_text(text_job("dp:1", 2), 0))[0]);
  const InputVectors vectors = made_up_vectors(3);
  omni.pass(samples, vectors);
  std::map<std::string, std::vector<float>> gradients;
  const std::vector<std::string> weights{
      "patches", "positions", "layers.0.attention.wq", "layers.1.ffn.up.bias", "final_norm.bias", "features"};
  for (const std::string& name : weights) gradients[name] = omni.encoder().sum(name + ".grad");
  const std::vector<float> of_port = omni.text().read_slot("port.pictures.grad", 0);
  const std::vector<float> port = omni.text().read_slot("port.pictures", 0);
  expect_derivative("port", port, of_port, [&](const std::vector<float>& there) {
    omni.text().write_slot("port.pictures", 0, there);
    return omni.text().run("backward", {.samples = &samples}).scalars.at("loss");
  });
  for (const std::string& name : weights) {
    const std::vector<float> at = omni.encoder().read(name);
    expect_derivative(name, at, gradients.at(name), [&](const std::vector<float>& there) {
      omni.encoder().write(name, there);
      return omni.pass(samples, vectors);
    });
    omni.encoder().write(name, at);
  }
  // A feature in no text has no gradient.
  for (std::size_t i = of_port.size() - 64; i < of_port.size(); ++i) EXPECT_EQ(of_port[i], 0) << i;
}

std::int64_t collectives(const Program& program) {
  return std::ranges::count_if(
      program.instrs, [](const Instr& i) { return std::holds_alternative<instr::Collective>(i.op); });
}

TEST(Encoder, ReplicasTakeTheirItemsAlone) {
  Omni omni(encoder_spec("dp:4", 2), reader_spec("dp:1", 2));
  const Plan& plan = omni.encoder().plan();
  for (const char* program : {"forward", "backward"})
    EXPECT_EQ(collectives(plan.roles[0].program(program)), 0) << program;
  EXPECT_EQ(replicas(plan, {"forward", "backward"}), 4);
  EXPECT_EQ(replicas(plan, {"forward", "backward", "update"}), 1);
  EXPECT_EQ(replicas(omni.text().plan(), {"backward"}), 1);

  const Trained at_once = Omni(encoder_spec("dp:4", 2), reader_spec("dp:1", 2)).train();
  expect_alike(at_once, omni.train({{2}, {0}, {3}, {1}}), 0, 0, "one by one");
}

TEST(Encoder, ReplicasOfSeveralDevices) {
  const auto spec = [] { return encoder_spec("dp:2 tp:2", 2); };
  Omni omni(spec(), reader_spec("dp:1", 2));
  const Plan& plan = omni.encoder().plan();
  EXPECT_EQ(axes_of_replicas(plan, {"forward", "backward"}), AxisList{plan.mesh.find("dp")});
  EXPECT_EQ(replicas(Omni(encoder_spec("dp:2 zero2"), reader_spec("dp:1")).encoder().plan(), {"backward"}),
            1);
  const Trained at_once = Omni(spec(), reader_spec("dp:1", 2)).train();
  expect_alike(at_once, omni.train({{2, 3}, {0, 1}}), 0, 0, "one by one");
}

TEST(Encoder, ItemsThatAreNotThereAreZeros) {
  SubmodelDevices encoder(encoder_spec("dp:2"));
  InputVectors few = made_up_vectors(1, 3), full = made_up_vectors(1, 3);
  full.items = kItems;
  full.values.resize(static_cast<std::size_t>(kItems * kTokens * kWidth));
  encoder.run("forward", {.vectors = &full});
  const std::vector<float> expected = encoder.read("port.out");
  encoder.write("port.out", std::vector<float>(expected.size(), 9));
  encoder.run("forward", {.vectors = &few});
  EXPECT_EQ(encoder.read("port.out"), expected);
}

// Buffers beyond HBM are transferred, and change nothing. No pass needs the optimizer's state, half of all.
TEST(Submodel, WithStateBeyondHbm) {
  for (const Job& job : {text_job("dp:1", 2), clipped(text_job("dp:1", 2))}) {
    const RunResult whole = trained_whole(job);
    std::vector<SubmodelSpec> parts = parts_of(job, {1}, 1);
    for (SubmodelSpec& spec : parts) {
      spec.job.supernode.hbm = compile_submodel(spec).plan.peak() / 5 * 3;
      spec.job.supernode.pool = Bytes(std::int64_t{64} << 20);
      EXPECT_ERROR(check_fits(compile_submodel(spec).plan, spec.job.supernode), Code::kDoesNotFit, "", "");
      spec.job.memory = {"hyperoffload", "pool", {}};
      EXPECT_GT(compile_submodel(spec).plan.peak(Tier::kPool).value, 0);
    }
    expect_alike(whole, trained_in_parts(job, parts), 1e-6, job.training.clip_norm > 0 ? 1e-5 : 0,
                 "offloaded");
  }
}

// --- plans ------------------------------------------------------------------------------------------

TEST(SubmodelPlan, ListsItsPortsAsTheyLie) {
  const auto layout_of = [](const SubmodelSpec& spec, const std::string& port) {
    const Plan plan = compile_submodel(spec).plan;
    for (const StateTensor& t : plan.roles[0].state)
      if (t.name == port) return to_string(t.layout, plan.mesh);
    return std::string("absent");
  };
  for (const char* port : {"port.in", "port.in.grad", "port.out", "port.out.grad"}) {
    const auto middle = [](const std::string& layout) { return parts_of(text_job(layout, 1), {1, 2}, 2)[1]; };
    EXPECT_EQ(layout_of(middle("dp:2 tp:2 sp"), port), "[-, dp, tp, -]") << port;
    EXPECT_EQ(layout_of(middle("dp:2 cp:2 bf16"), port), "[-, dp, cp, -]") << port;
    EXPECT_EQ(layout_of(middle("tpx:2 tpy:2"), port), "[-, -, tpx, tpy]") << port;
  }
  for (const char* port : {"port.out", "port.out.grad"})
    EXPECT_EQ(layout_of(encoder_spec("dp:2 tp:2 sp"), port), "[-, dp, -, -]") << port;
  for (const char* port : {"port.pictures", "port.pictures.grad"})
    EXPECT_EQ(layout_of(reader_spec("dp:2 tp:2 sp"), port), "[-, -, -, -]") << port;
}

TEST(SubmodelPlan, IsSimulated) {
  for (const SubmodelSpec& spec : {encoder_spec("dp:2 tp:2"), reader_spec("dp:2 tp:2 sp zero1 bf16"),
                                   parts_of(text_job("dp:2", 2), {1, 2}, 2)[1]}) {
    const Plan plan = compile_submodel(spec).plan;
    const Topology topology = Topology::one_host(spec.job.supernode.devices);
    for (const Program& program : plan.roles[0].programs) {
      const SimResult r = simulate(plan, program.name, spec.job.supernode, topology);
      EXPECT_GT(r.stats(0).end, 0) << program.name;
      EXPECT_EQ(durations(plan, program.name, spec.job.supernode, topology, 0).size(), program.instrs.size());
    }
  }
}

// A part has some of the tensors that the model's rules name; a whole model all.
TEST(SubmodelPlan, RulesMayNameWhatAnotherPartHas) {
  Job job = text_job("dp:2", 2);
  job.parallel.rules = {{.tensor = "head", .dims = {{"hidden", {"dp"}}}, .origin = "job:7"}};
  for (const SubmodelSpec& part : parts_of(job, {1}, 1)) compile_submodel(part);
  job.parallel.rules[0].tensor = "heads";
  EXPECT_ERROR(compile_submodel({.job = job}), Code::kBadLayout, "job:7", "names no tensor");
  job.parallel.rules[0] = {.tensor = "layers.*.ffn.up", .dims = {{"experts", {"dp"}}}, .origin = "job:8"};
  EXPECT_ERROR(compile_submodel({.job = job}), Code::kBadLayout, "job:8", "no dimension");
}

TEST(SubmodelPlan, RefusesWhatHasNoParts) {
  SubmodelSpec spec = parts_of(text_job("dp:1", 1), {1}, 1)[0];
  const auto with = [&](auto change) {
    SubmodelSpec other = spec;
    change(other);
    return other;
  };
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job.model.tied_head = true; })), Code::kBadValue,
               "model.tied_head", "one matrix");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job.model.mtp.layers = 1; })), Code::kBadValue,
               "model.mtp", "one token");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.end_layer = 0; })), Code::kBadValue, "first_layer",
               "no layers");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job = text_job("pp:2", 1); })), Code::kBadValue,
               "parallel.pipeline", "stages");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job = text_job("ring:2", 1); })), Code::kBadLayout,
               "parallel.presets", "another order");
  EXPECT_ERROR(compile_submodel(with([](auto& s) {
                 s.job.supernode.hbm = Bytes(100'000);
                 check_fits(compile_submodel(s).plan, s.job.supernode);
               })),
               Code::kDoesNotFit, "supernode.hbm", "");
}

}  // namespace
}  // namespace hyperrun::testing
