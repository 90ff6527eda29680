#include "runtime/control/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hyperrun::control {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<DeviceState> fleet(int n) {
  std::vector<DeviceState> devices;
  for (int r = 0; r < n; ++r)
    devices.push_back({{r, "node" + std::to_string(r / 4), "m", 100 + r, ""}, {17, 200 + r}, ""});
  return devices;
}

FailureReport consequence(std::int32_t rank) {
  return {Symptom::kConsequence, rank, "", Error(Code::kDeviceLost, "a peer does not answer")};
}

TEST(Diagnosis, PrefersTheCauseToItsConsequencesWhateverTheOrder) {
  Diagnosis d;
  d.add(consequence(0));
  EXPECT_EQ(d.settle().count(), 300);
  d.add({Symptom::kLauncher, -1, "", Error(Code::kMpi, "mpirun ended")});
  d.add({Symptom::kLost, 3, "its connection ended", {}});
  EXPECT_EQ(d.settle().count(), 50);
  d.add({Symptom::kLost, 2, "its connection ended", {}});
  const Error lost = explain(d, fleet(5));
  EXPECT_EQ(lost.code(), Code::kDeviceLost);
  EXPECT_EQ(lost.place(), "device 3 (host node0, pid 103)");
  d.add({Symptom::kFailed, 4, "", Error(Code::kNotFinite, "the loss is nan").at("instruction 9")});
  const Error failed = explain(d, fleet(5));
  EXPECT_EQ(failed.code(), Code::kNotFinite);
  EXPECT_EQ(failed.place(), "device 4 (host node1, pid 104), instruction 9");
}

TEST(Diagnosis, WhatMpirunSaysOfARankThatNeverJoinedIsToldWithItsName) {
  Diagnosis d;
  std::vector<DeviceState> devices = fleet(3);
  devices[2] = {};
  d.add({Symptom::kStopped, 0, "", {}, 15});
  d.add({Symptom::kNeverJoined, 1, "its process ended before it joined", {}});
  EXPECT_EQ(explain(d, devices).code(), Code::kDeviceLost);
  EXPECT_EQ(explain(d, devices).place(), "device 1 (host node0, pid 101)");
  d.add({Symptom::kLauncher, -1, "", Error(Code::kMpi, "mpirun ended").fix("look")});
  EXPECT_EQ(explain(d, devices).cause(), "mpirun ended");
  EXPECT_EQ(explain(d, devices).place(), "device 1 (host node0, pid 101)");
  Diagnosis unseen;
  unseen.add({Symptom::kLauncher, -1, "", Error(Code::kMpi, "mpirun ended").fix("look")});
  EXPECT_EQ(explain(unseen, devices).cause(), "mpirun ended\n  had not joined: device 2");
  EXPECT_EQ(explain(unseen, devices).remedy(), "look");
}

// mpirun stops the remaining ranks when it has lost one, and all when it is interrupted itself.
TEST(Diagnosis, StoppedDevicesAreTheCauseOnlyWhereNothingElseIs) {
  Diagnosis d;
  d.add(consequence(2));
  d.add({Symptom::kStopped, 0, "", {}, 15});
  EXPECT_EQ(d.root().signal, 15);
  EXPECT_EQ(d.settle().count(), 300);
  d.add({Symptom::kLost, 3, "its connection ended", {}});
  EXPECT_EQ(d.root().symptom, Symptom::kLost);
}

TEST(Diagnosis, TellsHowFarTheHungDeviceCameAndWhoWaits) {
  auto devices = fleet(12);
  devices[7].position.instruction = 182;
  devices[0].place = "train of step 18";
  devices[1].position.instruction = -1;
  devices[2].position = {};
  devices[3].position.instruction = Position::kAll;
  Diagnosis d;
  d.add({Symptom::kHung, 7, "no heartbeat for 2 s", {}});
  const Error hung = explain(d, devices);
  EXPECT_EQ(hung.code(), Code::kDeviceHung);
  EXPECT_THAT(hung.what(), HasSubstr("device 7 (host node1, pid 107)"));
  EXPECT_THAT(hung.what(),
              HasSubstr("no heartbeat for 2 s; finished instruction 182 of invocation 17, but not 183"));
  EXPECT_THAT(
      hung.what(),
      HasSubstr("device 0: finished instruction 200 of invocation 17, but not 201; train of step 18"));
  EXPECT_THAT(hung.what(), HasSubstr("device 1: before the first instruction of invocation 17"));
  EXPECT_THAT(hung.what(), HasSubstr("device 2: before its first invocation"));
  EXPECT_THAT(hung.what(), HasSubstr("and 3 more"));
  EXPECT_THAT(hung.what(), HasSubstr("device 3: finished invocation 17, nothing of the next"));
  EXPECT_THAT(hung.what(), Not(HasSubstr("device 11:")));
}

TEST(Diagnosis, TellsWhatTheDeviceHadToDo) {
  auto devices = fleet(2);
  devices[1].work = {18, "program reward, task 4"};
  Diagnosis hung;
  hung.add({Symptom::kHung, 1, "no heartbeat for 2 s", {}});
  EXPECT_THAT(explain(hung, devices).cause(), HasSubstr("but not 202; it has program reward, task 4"));
  Diagnosis failed;
  failed.add({Symptom::kFailed, 1, "", Error(Code::kNotFinite, "the loss is nan").at("instruction 9")});
  EXPECT_EQ(explain(failed, devices).place(),
            "device 1 (host node0, pid 101), program reward, task 4, instruction 9");
}

TEST(Diagnosis, AFailureIsAConsequenceOnlyIfItSpeaksOfOthers) {
  EXPECT_EQ(symptom_of(Error(Code::kDeviceLost, "")), Symptom::kConsequence);
  EXPECT_EQ(symptom_of(Error(Code::kMpi, "")), Symptom::kConsequence);
  EXPECT_EQ(symptom_of(Error(Code::kBadCheckpoint, "")), Symptom::kFailed);
}

}  // namespace
}  // namespace hyperrun::control
