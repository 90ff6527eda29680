#include "runtime/spec/job_check_pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/ir/presets.h"
#include "runtime/spec/job_check_model.h"
#include "runtime/spec/job_legal.h"
#include "runtime/spec/job_mesh.h"

namespace hyperrun {
namespace {

class PipelineChecker {
 public:
  PipelineChecker(const Job& job, const JobSource& source, std::vector<Error>& errors)
      : job_(job), source_(source), errors_(errors) {}

  void run() {
    axis_and_schedule();
    pairs();
  }

 private:
  Error& report(Code code, const std::string& cause, std::string_view field) {
    return errors_.emplace_back(Error(code, cause).at(source_.place(field)));
  }

  void axis_and_schedule() {
    const PipelineSpec& p = job_.parallel.pipeline;
    if (p.axis.empty()) return;
    const std::string at = "parallel.pipeline.";
    const std::int64_t devices = axis_size(p.axis), layers = job_.model.layers;
    if (devices == 0) {
      report(Code::kBadLayout, "the mesh has no axis " + in_quotes(p.axis), at + "axis")
          .legal(axis_names(job_.parallel.mesh))
          .fix("use an axis of the mesh, or add mesh { name: " + in_quotes(p.axis) + " size: ... }");
      return;
    }
    for (const std::string& preset : job_.parallel.presets)
      for (const PresetRule& rule : rules_of(preset))
        if (rule.axis == p.axis) {
          report(Code::kBadLayout,
                 "the preset " + in_quotes(preset) + " splits tensors over the axis " + in_quotes(p.axis) +
                     ", which has the pipeline's stages",
                 at + "axis")
              .legal("an axis that no preset and no rule names")
              .fix("give the pipeline an axis of its own");
          return;
        }
    if (p.schedule == "interleaved" && p.chunks < 2)
      report(Code::kBadValue, "an interleaved schedule of one stage a device", at + "schedule")
          .legal("chunks of 2 or more")
          .fix("raise chunks, or choose \"1f1b\"");
    if (source_.has("parallel.pipeline.stages[0].layers") || devices * p.chunks <= layers)
      stages(p, static_cast<std::int32_t>(devices));
    else
      report(Code::kBadLayout,
             fmt::format("{} cannot fill {} stages", of(layers, "layers"), devices * p.chunks),
             at + (source_.has(at + "chunks") ? "chunks" : "axis"))
          .legal(fillable(devices, layers, p.schedule == "interleaved" ? 2 : 1))
          .fix("use fewer stages or more layers, or list the stages yourself");
  }

  // Paired passes need two micro-batches, and a schedule that alternates forward and backward passes.
  void pairs() {
    const std::string field = "parallel.paired_passes";
    if (!job_.parallel.paired_passes) return;
    if (job_.training.micro_batches < 2)
      report(Code::kBadValue, "a step of one micro-batch has no passes to pair", field)
          .legal("training.micro_batches of 2 or more")
          .fix("raise training.micro_batches, or leave paired_passes out");
    if (const PipelineSpec& p = job_.parallel.pipeline; !p.axis.empty() && p.schedule == "gpipe")
      report(Code::kBadValue, "\"gpipe\" does no backward pass before the last forward pass", field)
          .legal("the schedules \"1f1b\", \"interleaved\" and \"zero_bubble\"")
          .fix("choose one of these, or leave paired_passes out");
  }

  // The legal values if there are more even stages than layers. The schedule needs at least `chunks` stages
  // on each device.
  static std::string fillable(std::int64_t devices, std::int64_t layers, std::int64_t chunks) {
    if (layers < chunks) return fmt::format("at least {} layers", chunks);
    if (devices * chunks > layers) return fmt::format("an axis of 1 to {} devices", layers / chunks);
    if (layers / devices == chunks) return fmt::format("chunks of {}", chunks);
    return fmt::format("chunks of {} to {}", chunks, layers / devices);
  }

  void stages(const PipelineSpec& p, std::int32_t devices) {
    const std::string at = "parallel.pipeline.stages";
    std::vector<std::int32_t> of_device(static_cast<std::size_t>(devices), 0);
    std::int32_t layers = 0;
    for (std::size_t i = 0; i < p.stages.size(); ++i) {
      const PipelineSpec::Stage& s = p.stages[i];
      const std::string field = fmt::format("{}[{}].", at, i);
      if (s.device >= devices) {
        report(Code::kBadLayout,
               fmt::format("a stage on device {} of the axis {}", s.device, in_quotes(p.axis)),
               field + "device")
            .legal(fmt::format("0 to {}", devices - 1))
            .fix("choose a legal one, or a larger axis");
        return;
      }
      if (s.layers == 0 && i > 0 && i + 1 < p.stages.size())
        report(Code::kBadLayout, "a stage without layers amid the others", field + "layers")
            .legal("1 or more; 0 for the first and the last stage")
            .fix("use fewer stages, or give it a layer");
      ++of_device[static_cast<std::size_t>(s.device)];
      layers += s.layers;
    }
    if (layers != job_.model.layers)
      report(Code::kBadLayout,
             fmt::format("the stages have {} layers, the model {}", layers, job_.model.layers), at)
          .legal(fmt::format("layers of all stages together: {}", job_.model.layers))
          .fix("change the stages, or model.layers");
    const auto most = *std::max_element(of_device.begin(), of_device.end());
    const auto idle = std::find(of_device.begin(), of_device.end(), 0);
    if (idle != of_device.end())
      report(
          Code::kBadLayout,
          fmt::format("device {} of the axis {} has no stage", idle - of_device.begin(), in_quotes(p.axis)),
          at)
          .legal(fmt::format("a stage on each of 0 to {}", devices - 1))
          .fix("add a stage there, or make the axis shorter");
    else if (most != p.chunks)
      report(Code::kBadValue,
             fmt::format("{}, and a device has {}{}", of(p.chunks, "chunks"), most,
                         most == 1 ? " stage" : " stages"),
             "parallel.pipeline.chunks")
          .legal(std::to_string(most))
          .fix("leave chunks out when the stages are listed");
  }

  static std::span<const PresetRule> rules_of(std::string_view name) {
    for (const Preset& preset : kPresets)
      if (preset.name == name) return preset.rules;
    return {};
  }

  // The size of an axis; 0: the mesh has no such axis.
  std::int64_t axis_size(std::string_view name) const {
    for (const MeshAxis& axis : job_.parallel.mesh)
      if (axis.name == name) return axis.size;
    return 0;
  }

  const Job& job_;
  const JobSource& source_;
  std::vector<Error>& errors_;
};

}  // namespace

void check_pipeline(const Job& job, const JobSource& source, std::vector<Error>& errors) {
  PipelineChecker(job, source, errors).run();
}

}  // namespace hyperrun
