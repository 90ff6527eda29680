// Chakra traces of simulated steps, read back with the schema: their dependencies, messages and groups.
#include "runtime/forecast/chakra_trace.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "proto/chakra.pb.h"
#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

using proto::chakra::Attribute;
using proto::chakra::GlobalMetadata;
using proto::chakra::Node;

const Attribute& attribute(const Node& node, const std::string& name) {
  for (const Attribute& a : node.attr())
    if (a.name() == name) return a;
  ADD_FAILURE() << node.name() << " has no " << name;
  return Attribute::default_instance();
}

class Chakra : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    job_ = small_job(GetParam());
    plan_ = compile(job_).plan;
    result_ = simulate(plan_, "train", job_.supernode, Topology::one_host(job_.supernode.devices));
    std::vector<int> all(static_cast<std::size_t>(job_.supernode.devices));
    std::iota(all.begin(), all.end(), 0);
    write_chakra(folder_ / "step", all, plan_, result_);
    for (const int d : all) nodes_.push_back(read(d));
  }

  std::vector<Node> read(int device) {
    const std::string bytes = content(folder_ / ("step." + std::to_string(device) + ".et"));
    google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
    google::protobuf::io::CodedInputStream in(&array);
    std::vector<Node> list;
    for (std::uint32_t size = 0; in.ReadVarint32(&size);) {
      const auto limit = in.PushLimit(static_cast<int>(size));
      GlobalMetadata metadata;
      if (first_of(device)) {
        EXPECT_TRUE(metadata.ParseFromCodedStream(&in));
        EXPECT_EQ(metadata.version(), "0.0.4");
      } else {
        EXPECT_TRUE(list.emplace_back().ParseFromCodedStream(&in));
      }
      in.PopLimit(limit);
    }
    return list;
  }
  bool first_of(int device) { return begun_.insert(device).second; }

  TemporaryDirectory folder_;
  Job job_;
  Plan plan_;
  SimResult result_;
  std::vector<std::vector<Node>> nodes_;  // by device
  std::set<int> begun_;
};

TEST_P(Chakra, NodesDependOnEarlierOnesAndStartWhenTheyHaveEnded) {
  for (const std::vector<Node>& list : nodes_) {
    std::map<std::uint64_t, const Node*> known;
    ASSERT_GE(list.size(), plan_.roles[0].program("train").instrs.size() / 2);
    for (const Node& node : list) {
      for (const std::uint64_t id : node.data_deps()) {
        ASSERT_TRUE(known.contains(id)) << node.name();
        const Node& before = *known.at(id);
        EXPECT_GE(node.start_time_micros() + 2, before.start_time_micros() + before.duration_micros());
      }
      EXPECT_TRUE(known.emplace(node.id(), &node).second) << "an id is given once";
      EXPECT_FALSE(attribute(node, "is_cpu_op").bool_val());
      if (node.type() == 4) {
        EXPECT_TRUE(attribute(node, "num_ops").has_int64_val());
      }
    }
  }
}

TEST_P(Chakra, MessagesAreReceivedAndGroupsMeet) {
  using Message = std::tuple<int, int, int, std::int64_t>;  // from, to, tag, bytes
  std::multiset<Message> sent, received;
  std::map<std::string, std::map<int, int>> met;  // by group and device
  for (std::size_t d = 0; d < nodes_.size(); ++d)
    for (const Node& node : nodes_[d]) {
      if (node.type() == 5 || node.type() == 6) {
        (node.type() == 5 ? sent : received)
            .emplace(attribute(node, "comm_src").int32_val(), attribute(node, "comm_dst").int32_val(),
                     attribute(node, "comm_tag").int32_val(), attribute(node, "comm_size").int64_val());
        EXPECT_EQ(attribute(node, node.type() == 5 ? "comm_src" : "comm_dst").int32_val(),
                  static_cast<int>(d));
      }
      if (node.type() == 7) {
        ++met[attribute(node, "pg_name").string_val()][static_cast<int>(d)];
        EXPECT_GT(attribute(node, "comm_size").int64_val(), 0);
        EXPECT_TRUE(attribute(node, "comm_type").has_int64_val());
      }
    }
  EXPECT_EQ(sent, received);
  const auto groups = nlohmann::json::parse(content(folder_ / "step.groups.json"));
  for (const auto& [key, times] : met) {
    std::set<int> of_file, here;
    for (const auto& device : groups.at(key)) of_file.insert(device.get<int>());
    for (const auto& [device, count] : times) {
      here.insert(device);
      EXPECT_EQ(count, times.begin()->second) << "all members as often, group " << key;
    }
    EXPECT_EQ(here, of_file) << "group " << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Chakra,
                         ::testing::Values("dp:2 tp:2 sp zero1", "pp:2 dp:2", "ring:4", "tpx:2 tpy:2",
                                           "cp:2 dp:2"),
                         [](const auto& info) { return test_title(info.param); });

}  // namespace
}  // namespace hyperrun::testing
