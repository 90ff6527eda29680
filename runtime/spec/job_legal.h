// Describes the legal values of fields, for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/spec/job_fields.h"

namespace hyperrun {

inline constexpr std::string_view kLegalText = "text in quotes";

std::string describe(IntRange range);                   // "1 to 4096"
std::string describe(RealRange range);                  // "0 to below 1"
std::string describe(std::span<const Choice> choices);  // a line for each choice, with its meaning
std::string describe_block(std::string_view name);
std::string describe_bytes(std::int64_t min);
std::string describe_seconds(double min, double max);
std::string describe_streams();

std::string in_quotes(std::string_view text);  // a long text is cut

// The legal values of a field, found by its name alone, for values that never reached their field. "" when no
// field has that name.
std::string legal_values(std::string_view field_name);

}  // namespace hyperrun
