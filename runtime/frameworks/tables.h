// The tables of the frameworks.
#pragma once

#include "runtime/frameworks/table.h"

namespace hyperrun::frameworks {

const Table& megatron_table();  // and Megatron-Bridge's, whose names differ in dashes
const Table& mindspeed_table();
std::span<const Row> megatron_rows();  // those that both have
const Table& torchtitan_table();
const Table& deepspeed_table();
const Table& llama_factory_table();
const Table& hyper_parallel_table();
const Table& mindformers_table();

}  // namespace hyperrun::frameworks
