// Small jobs for tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun::testing {

// A job with a Llama of about 0.1 million parameters with grouped queries on a mesh dp x tp, with the presets
// "dp", "tp" and `more_presets`.
Job small_job(int dp, int tp, const std::vector<std::string>& more_presets = {});

// The same on the mesh and under the presets that the words of `parallel` name: "dp:2 tp:4 sp zero1". An axis
// brings its preset along; "tpx" and "tpy" together are "tp2d"; "pp" is a pipeline, with a schedule ("gpipe")
// and "chunks:2" if they are named. "bf16" is training.precision.
Job small_job(const std::string& parallel);

// Makes the model a DeepSeek-V3 in small: latent attention, a dense layer and experts, one token further.
void become_deepseek(Job& job);
void become_gpt2(Job& job);  // with a tied head and a table of more positions than a text has

// Changes the model's depth, and the pipeline's stages with it.
void set_layers(Job& job, int layers);

// A name for a parametrised test, made of such words.
std::string test_title(const std::string& parallel);

}  // namespace hyperrun::testing
