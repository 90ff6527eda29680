// Writing and reading back give the same job, as text and as binary.
#include <gmock/gmock.h>

#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/spec/job_texts.h"

namespace hyperrun {
namespace {

// Every field differs from its default and from its neighbours.
Job unusual_job() {
  Job job;
  job.name = "odd_1.x";
  job.supernode = {6,         2,      kKiB * 12345, Bytes(1234567891), Bytes(987654), 1.0 / 3 * 1e15,
                   7e9,       1.1e12, 3.3333e10,    Nanos(1234567),    Nanos(7),      2.5e9,
                   Nanos(17), 1.5e9,  Nanos(170)};
  job.memory = {"reactive", "flash", {"optimizer", "weights"}};
  job.model = {"llama", 3, 100, 6, 3, 10, 77, 1000, 33, 5e5, 1e-6, true};
  job.parallel.mesh = {{"pod_1", 1}, {"dp", 3}, {"tp", 2}};
  job.parallel.presets = {"tp", "zero1", "dp", "sp"};
  job.parallel.rules = {{"layers.*.wq", {{"heads", {"tp", "pod_1"}}, {"hidden", {"dp"}}}, "elsewhere:3:4"},
                        {"whole", {}, "elsewhere:9:1"},
                        {"by_position", {}, "", true, PositionalLayout{{}, {{"tp"}, {}, {"pod_1", "dp"}}}},
                        {"with_mesh", {}, "", false, PositionalLayout{job.parallel.mesh, {{}, {"dp"}}}},
                        {"scalar", {}, "", false, PositionalLayout{}}};
  for (ShardRule& rule : job.parallel.rules)
    if (rule.origin.empty()) rule.origin = "elsewhere:10:1";
  job.data = {"/tmp/Größe \"x\"\n\\.txt", "/tok.json"};
  job.training = {100, 12, 2, 1.0 / 7, 1e-5, 9, 0.8, 0.99, 1e-9, 0.0, 0.5, 0.03};
  job.run.directory = "out/{job}-{time}";
  job.run.seed = 18446744073709551615u;
  job.run.checkpoint_every = 10;
  job.run.resume = "/ckpt";
  job.run.restarts = 7, job.run.elastic = false;
  job.run.keep_last = 4, job.run.keep_every = 50, job.run.copy_every = 2;
  job.run.on_divergence = kSkip, job.run.divergence_jump = 2.5;
  job.run.integrity = {20, true};
  job.run.chaos = {9,
                   3,
                   {"kill", "cut"},
                   {{.kind = "slow", .device = 1, .step = 4, .saving = true, .seconds = 0.25}},
                   "/faults"};
  job.run.trace_first = 4;
  job.run.trace_steps = 5;
  job.run.streams = StreamThreads::kPerStream;
  job.run.heartbeat_seconds = 0.123456789;
  job.run.generate = {"Es war einmal\t\"…\"", 17, 0.7, 40};
  return job;
}

// A job with the blocks that not every model has.
Job unusual_model() {
  Job job = unusual_job();
  ModelSpec& m = job.model;
  m.name = "deepseek_v3";
  m.kv_heads = m.heads;
  m.latent = {.q_rank = 31, .kv_rank = 17, .nope_dim = 9, .rope_dim = 6, .value_dim = 11};
  m.head_dim = 15;
  m.mtp = {.layers = 3, .loss_factor = 0.125};
  m.rope_scaling = {.factor = 8, .low_freq_factor = 1.5, .high_freq_factor = 3, .original_sequence = 4096};
  m.experts = {12, 3, 21, 2, 1, "sigmoid", false, 2.5, 0.01, 0.003, 4, 2, {1.75, 11}};
  return job;
}

void expect_round_trip(const Job& job) {
  SCOPED_TRACE(to_textproto(job));
  EXPECT_EQ(parse_job(to_textproto(job), "j.textproto").job, job);
  EXPECT_EQ(parse_job(to_binary(job), "j.pb").job, job);
}

TEST(JobWrite, ReadsBackTheSame) {
  expect_round_trip(parse_job(kJobText, "job.textproto").job);
  expect_round_trip(unusual_job());
  expect_round_trip(unusual_model());
  Job gpt2 = unusual_job();
  gpt2.model.name = "gpt2";
  gpt2.model.kv_heads = gpt2.model.heads;
  gpt2.model.hidden = gpt2.model.heads * gpt2.model.head_dim;
  gpt2.model.rope_theta = 10000;
  gpt2.model.tied_head = false;  // the default of GPT-2 is true
  gpt2.model.positions = gpt2.model.sequence + 3;
  expect_round_trip(gpt2);
}

TEST(JobWrite, ExamplesReadBackTheSame) {
  for (const char* name : {"quickstart", "one_device", "two_hosts", "bench_dim256", "bench_dim512",
                           "deepseek", "gpt2", "offload"}) {
    SCOPED_TRACE(name);
    Job job = read_job(std::string(HYPERRUN_SOURCE_DIR "/examples/") + name + ".textproto");
    EXPECT_EQ(job.name, name);
    expect_round_trip(job);
  }
}

TEST(JobWrite, SpellsOutDefaults) {
  std::string text = to_textproto(parse_job(kJobText, "job.textproto").job);
  for (const char* line :
       {"# proto-message: hyperrun.proto.Job\n", "head_dim: 16\n", "ffn: 192\n", "pool: \"0 B\"\n",
        "cube_flops: \"99.5 TFLOP/s\"\n", "link_bandwidth: \"196 GB/s\"\n", "link_latency: \"1 us\"\n",
        "hbm: \"64 MiB\"\n", "heartbeat: \"2 s\"\n", "streams: AUTO\n"})
    EXPECT_THAT(text, ::testing::HasSubstr(line));
}

Job without_places(Job job) {
  for (ShardRule& rule : job.parallel.rules) rule.origin.clear();
  return job;
}

TEST(JobWrite, ALineReadsBackTheSame) {
  for (const Job& job : {parse_job(kJobText, "job.textproto").job, unusual_job()}) {
    const std::string line = to_line(job);
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_EQ(without_places(parse_job(line, "j.textproto").job), without_places(job)) << line;
  }
}

TEST(JobWrite, ALineSaysOnlyWhatAReaderCannotKnow) {
  EXPECT_EQ(to_line(parse_job(R"(
      supernode { devices: 2 hbm: "16 MiB" link_latency: "1 us" }
      model { layers: 2 hidden: 64 heads: 4 kv_heads: 4 head_dim: 16 ffn: 192 vocab: 320 sequence: 32 }
      parallel { mesh { name: "dp" size: 2 } presets: ["dp"] rules { tensor: "embed" dims { dim: "hidden" } stored: false } }
      data { corpus: "/corpus.txt" }
      training { steps: 6 batch: 8 micro_batches: 1 lr: 3e-3 min_lr: 3e-4 recompute { policy: "full" first_layer: 1 last_layer: 1 } }
      run { streams: AUTO generate { prompt: "" tokens: 0 } })",
                              "some.textproto")
                        .job),
            "name: \"some\" supernode { devices: 2 hbm: \"16 MiB\" } model { layers: 2 hidden: 64 heads: 4 "
            "vocab: 320 "
            "sequence: 32 } parallel { mesh { name: \"dp\" size: 2 } presets: \"dp\" rules { tensor: "
            "\"embed\" dims "
            "{ dim: \"hidden\" } } } data { corpus: \"/corpus.txt\" } training { steps: 6 batch: 8 lr: 0.003 "
            "recompute { first_layer: 1 } }");
}

TEST(JobWrite, TheQuickstartIsShort) {
  std::string text = file_content(HYPERRUN_SOURCE_DIR "/examples/quickstart.textproto");
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40);
}

}  // namespace
}  // namespace hyperrun
