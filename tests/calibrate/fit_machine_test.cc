// Fits find known machines again from made-up measurements.
#include "runtime/calibrate/fit_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/error.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/spec/profile_writer.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

Machine known(int hosts, int devices_of_host) {
  Machine m;
  m.cube = {{40e9}, {25e9}};
  m.host_cores = {2};
  m.vector = {4e9};
  m.hbm_bandwidth = {12e9};
  m.products.half = {24};
  m.attention = {{0.6}, {50}};
  m.launch_cube = {900};
  m.launch_vector = {250};
  m.launch_comm = {2000};
  m.pool = {.capacity = {1 << 30}, .bandwidth = {5e9}, .latency = {600}};
  m.levels = {{.name = "host",
               .devices = hosts > 1 ? devices_of_host : 1,
               .addressable = true,
               .latency = {4000},
               .bandwidth = {3e9}}};
  if (hosts > 1) m.levels.push_back({.name = "network", .latency = {30000}, .bandwidth = {1e9}});
  return m;
}

Setting setting(int hosts, int devices_of_host) {
  const int devices = hosts * devices_of_host;
  return {mesh_of_devices(devices), Topology::uniform(hosts, devices_of_host), 2, kGiB, false, kGiB};
}

// Made-up measurements of a machine, with noise of this deviation.
std::vector<Measured> made_up(const Machine& machine, const Setting& s, double noise) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, noise);
  std::vector<Measured> all;
  for (const Point& p : points_of(s.mesh))
    all.push_back({p, {predicted(p, s, machine) * std::exp(noise > 0 ? normal(random) : 0), 21}});
  return all;
}

void expect_near(const Figure& found, double value, double share, const char* what) {
  EXPECT_NEAR(found.value / value, 1, share) << what;
  EXPECT_EQ(found.evidence, Evidence::kMeasured) << what;
  EXPECT_FALSE(found.source.empty()) << what;
}

void expect_found(const Machine& found, const Machine& m, double share) {
  expect_near(found.cube.f32, m.cube.f32.value, share, "cube float32");
  expect_near(found.cube.bf16, m.cube.bf16.value, share, "cube bfloat16");
  expect_near(found.vector, m.vector.value, share, "vector");
  expect_near(found.hbm_bandwidth, m.hbm_bandwidth.value, share, "hbm bandwidth");
  expect_near(found.products.half, m.products.half.value, 3 * share, "half of products");
  expect_near(found.attention.ceiling, m.attention.ceiling.value, share, "ceiling of attention");
  expect_near(found.attention.half, m.attention.half.value, 3 * share, "half of attention");
  // Only the smallest products show the launch of the cube.
  expect_near(found.launch_cube, m.launch_cube.value, 3 * share, "launch of the cube");
  expect_near(found.launch_vector, m.launch_vector.value, share, "launch of the vector unit");
  for (std::size_t l = 0; l < m.levels.size(); ++l)
    expect_near(found.levels[l].bandwidth, m.levels[l].bandwidth.value, share, "bandwidth of a level");
  expect_near(found.pool.bandwidth, m.pool.bandwidth.value, share, "bandwidth of the pool");
  expect_near(found.pool.latency, m.pool.latency.value, 3 * share, "latency of the pool");
  EXPECT_EQ(found.pool.capacity.value, m.pool.capacity.value);
  // If each collective waits once, launch and latency cannot be told apart.
  const auto first = [](const Machine& x) {
    return Figure{x.launch_comm.value + x.levels[0].latency.value, Evidence::kMeasured, "sum"};
  };
  expect_near(first(found), first(m).value, share, "launch and latency");
}

TEST(FitMachine, FindsAKnownMachine) {
  const Machine m = known(1, 4);
  expect_found(fit_machine(made_up(m, setting(1, 4), 0), setting(1, 4)), m, 0.02);
}

TEST(FitMachine, FindsItThroughNoise) {
  const Setting s = setting(1, 4);
  const Machine m = known(1, 4);
  const std::vector<Measured> noisy = made_up(m, s, 0.1);
  const Machine found = fit_machine(noisy, s);
  expect_found(found, m, 0.15);
  // The fitted machine predicts the measurements as well as the true one.
  double own = 0, fitted = 0;
  for (const Measured& p : noisy) {
    own += std::abs(std::log(predicted(p.point, s, m) / p.measurement.nanos));
    fitted += std::abs(std::log(predicted(p.point, s, found) / p.measurement.nanos));
  }
  EXPECT_LT(fitted, 1.02 * own);
}

// A single measurement spoilt by an interruption does not outweigh all others.
TEST(FitMachine, StandsWildValues) {
  const Setting s = setting(1, 4);
  const Machine m = known(1, 4);
  std::vector<Measured> spoilt = made_up(m, s, 0.02);
  for (std::size_t i = 5; i < spoilt.size(); i += 25) spoilt[i].measurement.nanos *= 8;
  expect_found(fit_machine(spoilt, s), m, 0.15);
}

TEST(FitMachine, ToldHostsFromTheirNetwork) {
  const Machine m = known(2, 4);
  const Machine found = fit_machine(made_up(m, setting(2, 4), 0.02), setting(2, 4));
  ASSERT_EQ(found.levels.size(), 2u);
  EXPECT_EQ(found.levels[0].devices, 4);
  EXPECT_TRUE(found.levels[0].addressable);
  EXPECT_FALSE(found.levels[1].addressable);
  expect_found(found, m, 0.1);
}

TEST(FitMachine, OfOneDeviceSaysWhatItCannotKnow) {
  const Machine m = known(1, 1);
  const Machine found = fit_machine(made_up(m, setting(1, 1), 0), setting(1, 1));
  expect_near(found.cube.f32, m.cube.f32.value, 0.02, "cube");
  EXPECT_EQ(found.levels[0].bandwidth.evidence, Evidence::kPlaceholder);
  EXPECT_THAT(found.levels[0].latency.source, HasSubstr("one device"));
}

// Four devices that share two cores have half the rate of a device with a core to itself.
TEST(FitMachine, RatesAreThoseOfADeviceWithACoreToItself) {
  const Setting s = setting(1, 4);
  Machine half = known(1, 4);
  half.host_cores = {};
  half.cube = {{20e9}, {12.5e9}};
  EXPECT_NEAR(fit_machine(made_up(half, s, 0), s).cube.f32.value / 40e9, 1, 0.02);
}

TEST(FitMachine, SaysWhatWasMeasuredAndCanBeRead) {
  Machine found = fit_machine(made_up(known(1, 4), setting(1, 4), 0.05), setting(1, 4));
  EXPECT_THAT(found.cube.f32.source, HasSubstr("matrix products, from Gemm trans_b=yes m=8 n=8 k=16"));
  EXPECT_THAT(found.cube.f32.source, HasSubstr("medians of 21; 4 devices at once on 2 cores"));
  found.name = "host", found.about = "made up";
  EXPECT_EQ(parse_profile(to_textproto(found), "written"), found);
}

TEST(FitMachine, StreamsTakeTurnsWhereTheExecutorRunsThemInOneThread) {
  Setting s = setting(1, 2);
  EXPECT_EQ(fit_machine(made_up(known(1, 2), s, 0), s).feeder, Feeder{});
  s.in_order = true;
  const Machine found = fit_machine(made_up(known(1, 2), s, 0), s);
  EXPECT_TRUE(found.feeder.in_order);
  EXPECT_FALSE(found.feeder.takes_time());
}

TEST(FitMachine, RefusesHostsThatAreUneven) {
  Setting uneven = setting(2, 2);
  uneven.topology.host_of = {0, 0, 0, 1};
  try {
    fit_machine(made_up(known(1, 4), setting(1, 4), 0), uneven);
    ADD_FAILURE() << "fitted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kMpi);
    EXPECT_THAT(e.remedy(), HasSubstr("--map-by slot"));
  }
}

}  // namespace
}  // namespace hyperrun
