// Reading a job gives its values, defaults and places.
#include "runtime/spec/job_check.h"
#include "runtime/spec/job_reader.h"
#include "tests/spec/job_texts.h"

namespace hyperrun {
namespace {

TEST(JobRead, TakesWhatIsWritten) {
  Job job = parse_job(kJobText, "job.textproto").job;
  EXPECT_EQ(job.name, "t");
  EXPECT_EQ(job.supernode.devices, 4);
  EXPECT_EQ(job.supernode.hbm, kMiB * 64);
  EXPECT_EQ(job.model.kv_heads, 2);
  EXPECT_EQ(job.parallel.mesh, (std::vector<MeshAxis>{{"dp", 2}, {"tp", 2}}));
  EXPECT_EQ(job.parallel.presets, (std::vector<std::string>{"dp", "tp"}));
  EXPECT_EQ(job.data.corpus, "/c.txt");
  EXPECT_EQ(job.training.lr, 1e-3);
  EXPECT_EQ(job.run.generate.prompt, "x");
  EXPECT_EQ(job.run.generate.tokens, 4);
  ASSERT_EQ(job.parallel.rules.size(), 1u);
  EXPECT_EQ(job.parallel.rules[0].tensor, "a.*");
  EXPECT_EQ(job.parallel.rules[0].dims, (std::vector<ShardRule::Dim>{{"heads", {"tp"}}}));
  EXPECT_EQ(job.parallel.rules[0].origin, "job.textproto:15:3");
}

TEST(JobRead, FillsInDefaults) {
  Job job = parse_job(with("  kv_heads: 2\n", ""), "job.textproto").job;
  EXPECT_EQ(job.model.kv_heads, 4);
  EXPECT_EQ(job.model.head_dim, 16);
  EXPECT_EQ(job.model.ffn, 192);  // 8/3 of 64 is 170.7
  EXPECT_EQ(job.model.rope_theta, 10000);
  EXPECT_FALSE(job.model.tied_head);
  EXPECT_EQ(job.training.min_lr, 1e-4);
  EXPECT_EQ(job.training.beta2, 0.95);
  EXPECT_EQ(job.supernode.pool, Bytes(0));
  EXPECT_EQ(job.supernode.cube_flops, 99.5e12);
  EXPECT_EQ(job.supernode.link_latency, Nanos(1000));
  EXPECT_EQ(job.run.directory, "runs/{job}");
  EXPECT_EQ(job.run.heartbeat_seconds, 2.0);
}

TEST(JobRead, FillsInWhatAGpt2Has) {
  const ModelSpec model = parse_job(with("kv_heads: 2", "name: \"gpt2\""), "job.textproto").job.model;
  EXPECT_EQ(model.kv_heads, model.heads);
  EXPECT_EQ(model.ffn, 4 * model.hidden);
  EXPECT_TRUE(model.tied_head);
  EXPECT_EQ(model.positions, 0);
}

TEST(JobRead, FfnRoundsUpToAMultipleOf64) {
  const std::pair<const char*, int> widths[] = {{"48", 128}, {"192", 512}, {"256", 704}, {"512", 1408}};
  for (auto [hidden, ffn] : widths) {
    std::string text = with("hidden: 64", std::string("hidden: ") + hidden);
    EXPECT_EQ(parse_job(text, "j").job.model.ffn, ffn) << hidden;
  }
}

TEST(JobRead, UnitsAndNumbers) {
  std::string text = with("devices: 4", R"(devices: 4 pool: "1.5GiB" cube_flops: "2.5 TFLOP/s"
    link_bandwidth: "10 GB/s" link_latency: "2.2 us" launch_latency: "300 ns")");
  SupernodeSpec s = parse_job(text, "j").job.supernode;
  EXPECT_EQ(s.pool, Bytes(1610612736));
  EXPECT_EQ(s.cube_flops, 2.5e12);
  EXPECT_EQ(s.link_bandwidth, 1e10);
  EXPECT_EQ(s.link_latency, Nanos(2200));
  EXPECT_EQ(s.launch_latency, Nanos(300));
}

TEST(JobRead, NameFollowsTheFile) {
  std::string text = with("name: \"t\"", "");
  EXPECT_EQ(parse_job(text, "a/b/my job.textproto").job.name, "my-job");
  EXPECT_EQ(parse_job(text, "/dev/stdin").job.name, "stdin");
  EXPECT_EQ(parse_job(text, ".hidden").job.name, "job");
}

TEST(JobRead, Streams) {
  auto streams = [](const char* value) {
    return parse_job(with("run {", std::string("run { streams: ") + value), "j").job.run.streams;
  };
  EXPECT_EQ(streams("AUTO"), StreamThreads::kAuto);
  EXPECT_EQ(streams("ONE"), StreamThreads::kOne);
  EXPECT_EQ(streams("PER_STREAM"), StreamThreads::kPerStream);
}

TEST(JobRead, ARuleMayKeepADimensionWhole) {
  Job job = parse_job(with("axes: \"tp\"", ""), "j").job;
  EXPECT_EQ(job.parallel.rules[0].dims, (std::vector<ShardRule::Dim>{{"heads", {}}}));
}

TEST(JobRead, OneDeviceNeedsNoMesh) {
  std::string text(kJobText);
  std::size_t from = text.find("parallel {"), to = text.find("data {");
  text.erase(from, to - from).replace(text.find("devices: 4"), 10, "devices: 1");
  EXPECT_TRUE(parse_job(text, "j").job.parallel.mesh.empty());
}

TEST(JobRead, CommentsByteOrderMarkAndWindowsLines) {
  std::string text = "\xEF\xBB\xBF# proto-file: proto/job.proto\r\n# proto-message: hyperrun.proto.Job\r\n";
  for (char c : kJobText) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse_job(text, "j").job.model, parse_job(kJobText, "j").job.model);
}

TEST(JobRead, DataParallelSize) {
  EXPECT_EQ(data_parallel_size({{{"dp", 4}, {"tp", 2}}, {"dp"}, {}}), 4);
  EXPECT_EQ(data_parallel_size({{{"dp", 4}}, {}, {}}), 1);
  EXPECT_EQ(data_parallel_size({}), 1);
}

TEST(JobSource, PlacesOfFields) {
  JobSource source = parse_job(kJobText, "job.textproto").source;
  EXPECT_EQ(source.place("training.batch"), "job.textproto:20:3");
  EXPECT_EQ(source.place("parallel.mesh"), "job.textproto:12:3");
  EXPECT_EQ(source.place("parallel.mesh[1].size"), "job.textproto:13:21");
  EXPECT_EQ(source.place("parallel.presets[1]"), "job.textproto:14:19");
  EXPECT_EQ(source.place("parallel.rules[0].dims[0].axes[0]"), "job.textproto:15:51");
  EXPECT_EQ(source.place("training.clip_norm"), "job.textproto:18:1") << "the block around it";
  EXPECT_EQ(source.place("nowhere"), "job.textproto");
  EXPECT_TRUE(source.has("training.batch"));
  EXPECT_FALSE(source.has("training.clip_norm"));
}

TEST(JobSource, PutsTheLineOfTheJobIntoLaterErrors) {
  JobSource source = parse_job(kJobText, "job.textproto").source;
  auto place = [&](const char* of) {
    return at_job_line(Error(Code::kDoesNotFit, "").at(of), source).place();
  };
  EXPECT_EQ(place("supernode.hbm"), "job.textproto:2:24");
  EXPECT_EQ(place("parallel"), "job.textproto:11:1");
  EXPECT_EQ(place("inference.slots"), "job.textproto") << "a block that is not there";
  EXPECT_EQ(place("runs/x"), "runs/x") << "a path, no field";
  EXPECT_EQ(place("device 3"), "device 3");
  EXPECT_EQ(place(""), "");
}

}  // namespace
}  // namespace hyperrun
