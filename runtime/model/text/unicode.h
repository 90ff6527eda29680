// Just enough Unicode for cutting text into words: four classes of characters.
#pragma once

#include <cstdint>

namespace hyperrun {

enum class CharClass : std::uint8_t { kLetter, kNumber, kSpace, kOther };

// The class of a character. Letters are L*, numbers N*, spaces White_Space; kInvalid is kOther.
CharClass class_of(char32_t code);

}  // namespace hyperrun
