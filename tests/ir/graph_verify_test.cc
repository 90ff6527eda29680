// verify(Graph) finds planted faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "tests/support/faults.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

class GraphFaults : public ::testing::Test {
 protected:
  Graph graph_ = compile(small_job(2, 2)).training;

  std::size_t node_named(const std::string& name) const {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].name == name) return i;
    ADD_FAILURE() << name;
    return 0;
  }
};

TEST_F(GraphFaults, TheCompilersIsValid) { EXPECT_EQ(fault(graph_), ""); }

TEST_F(GraphFaults, UseBeforeDefinition) {
  std::swap(graph_.nodes[node_named("layers.0.ffn.swiglu")],
            graph_.nodes[node_named("layers.0.ffn.up.product")]);
  EXPECT_THAT(fault(graph_),
              ::testing::HasSubstr("layers.0.ffn.swiglu uses layers.0.ffn.up.out before it is defined"));
}

TEST_F(GraphFaults, DefinedTwice) {
  Node again = graph_.nodes[node_named("layers.0.ffn.swiglu")];
  graph_.nodes.push_back(again);
  EXPECT_THAT(fault(graph_), ::testing::HasSubstr("layers.0.ffn.h is defined twice"));
}

TEST_F(GraphFaults, TwoNodesOfOneName) {
  graph_.nodes[node_named("layers.0.ffn.swiglu")].name = "layers.1.ffn.swiglu";
  EXPECT_THAT(fault(graph_), ::testing::HasSubstr("two nodes are called layers.1.ffn.swiglu"));
}

TEST_F(GraphFaults, InputThatDoesNotExist) {
  graph_.nodes[node_named("layers.0.ffn.swiglu")].inputs[0] = TensorId(100000);
  EXPECT_THAT(fault(graph_), ::testing::HasSubstr("layers.0.ffn.swiglu"));
}

TEST_F(GraphFaults, OutputThatNobodyComputes) {
  graph_.outputs.emplace_back("extra", graph_.add_tensor(Tensor{"extra"}));
  graph_.layouts.emplace_back();
  EXPECT_THAT(fault(graph_), ::testing::HasSubstr("extra"));
}

TEST_F(GraphFaults, AxisTwiceInALayout) {
  graph_.layouts[graph_.find("embed").index()].dims = {{1}, {1}};
  EXPECT_THAT(fault(graph_), ::testing::HasSubstr("embed uses a mesh axis twice"));
}

TEST_F(GraphFaults, LayoutOfAnotherRank) {
  graph_.layouts[graph_.find("embed").index()].dims.pop_back();
  EXPECT_THAT(fault(graph_), ::testing::HasSubstr("embed"));
}

}  // namespace
}  // namespace hyperrun::testing
