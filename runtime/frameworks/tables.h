// The tables of the frameworks.
#pragma once

#include "runtime/frameworks/table.h"

namespace hyperrun::frameworks {

// Finding::meaning of settings that let exchanges overlap with computing. The importer of Megatron-LM says
// more, because its software profile overlaps nothing.
inline constexpr std::string_view kOverlapping = "exchanges overlap with computing as far as streams allow",
                                  kBesideProducts =
                                      "exchanges beside products; parallel.tiles overlaps them here";

const Table& megatron_table();  // and Megatron-Bridge's, whose names differ in dashes
const Table& mindspeed_table();
std::span<const Row> megatron_rows();  // those that both have
const Table& torchtitan_table();
const Table& deepspeed_table();
const Table& llama_factory_table();
const Table& hyper_parallel_table();
const Table& mindformers_table();

}  // namespace hyperrun::frameworks
