// Sets of characters by the names that Oniguruma knows, as PCRE2 writes them within brackets. They have the
// characters of Unicode 16 (text/new_characters.h).
#pragma once

#include <string>
#include <string_view>

namespace hyperrun {

// White_Space of Unicode. PCRE2's \s has U+180E as well, which is no white space since Unicode 6.3.
inline constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// Characters of words, by Oniguruma: letters, marks, digits and connectors. PCRE2's \w has neither marks nor
// connectors such as U+203F. Outside of brackets Oniguruma's \w has the numbers of Latin-1, too.
inline constexpr std::string_view kLatinNumbers = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
const std::string& word_characters();

// Characters of words, by Rust's regex.
const std::string& rust_word_characters();

inline constexpr std::string_view kHexDigits = "0-9A-Fa-f";

// The set of \p{NAME}: a general category by its short or long name, a name of POSIX, a script, or a binary
// property. Case, blanks, '-' and '_' do not count. A script or property that PCRE2 does not know shows when
// the pattern is compiled.
std::string set_of_property(std::string_view name);

// The set of [:NAME:]; of these names only punct means another set than in \p{NAME}.
std::string set_of_posix_name(std::string_view name);

}  // namespace hyperrun
