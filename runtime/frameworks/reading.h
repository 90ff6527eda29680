// A configuration on its way to a job: what came of its settings, and the job as far as it is known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/frameworks/finding.h"
#include "runtime/frameworks/launch.h"
#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

// The options with which a user completes a configuration.
struct ImportOptions {
  std::optional<std::int32_t> devices;
  std::optional<ModelSpec> model;  // of a config.json
  std::string model_path;          // its path, for messages
  std::string profile;             // empty: chosen by the framework
  std::optional<std::int32_t> vocab;
};

class Reading {
 public:
  Reading(Launch launch, std::vector<Finding> findings, const ImportOptions& options)
      : launch(std::move(launch)), findings(std::move(findings)), options(options) {}

  Launch launch;
  std::vector<Finding> findings;
  const ImportOptions& options;
  Job job;
  std::vector<Assumption> assumptions;  // what the configuration does not say
  std::vector<Assumption> left_out;     // what it says by leaving something out, and the job cannot say

  void assume(std::string field, std::string text) {
    assumptions.push_back({std::move(field), std::move(text)});
  }
  void leave_out(std::string field, std::string text) {
    left_out.push_back({std::move(field), std::move(text)});
  }
  // Declares that the settings of this name cannot be expressed after all.
  void give_up(std::string_view name, const std::string& why);
  // Declares that the settings of this name change nothing after all.
  void set_aside(std::string_view name, const std::string& why);

  // The setting that was taken as a field that begins so: "--num-layers 32 (train.sh:40:5)"; empty: none.
  std::string origin(std::string_view field) const;
  std::string place(std::string_view field) const;

  // An error at the place of the first of these fields; its cause names the settings of all of them.
  Error error(Code code, const std::string& cause, const std::vector<std::string_view>& fields) const;
};

}  // namespace hyperrun::frameworks
