// Pipelines of Megatron-LM and MindSpeed-LLM: chunks, uneven ends, and layouts of stages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/launch.h"
#include "runtime/frameworks/parallelism.h"
#include "runtime/frameworks/reading.h"

namespace hyperrun::frameworks {

// Sets schedule, chunks and stages of the layout, whose `pipeline` is set. Layers that a framework has for
// the balance alone are taken off the model. Throws kBadLayout with the places of what does not fit.
void take_stages(Reading& reading, Parallelism& layout);

void put_stages(const Parallelism& layout, const ModelSpec& model, Launch& launch,
                std::vector<std::string>& cannot);

// The layers of each stage in Megatron-LM's notation, "Et*3|(tt|)*29,m|L": E the embedding, t a layer, m a
// module of multi-token prediction, L the head, "|" between stages. nullopt: the text is not of this
// notation.
std::optional<std::vector<std::int32_t>> parse_stage_notation(std::string_view text);
std::string stage_notation(const std::vector<std::int32_t>& layers, std::int32_t mtp_layers);

}  // namespace hyperrun::frameworks
