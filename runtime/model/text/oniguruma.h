// Translates regular expressions from Oniguruma's syntax for Ruby to PCRE2's.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun {

// A pattern for PCRE2, compiled with UTF, UCP and MULTILINE, that matches what `pattern` matches in
// Oniguruma. Where the two languages mean other things by the same characters:
//
//   \s \w \h \v \b \p{Han}   other sets of characters
//   [a[bc]] [a-z&&[^x]]      sets within sets, and what sets have in common
//   x{1,3}+ x{2}? x{,3}      a repetition repeated, made optional, from 0; PCRE2: possessive, lazy, as it
//   stands a(?i)b|c                 the rest of the group, both sides of the bar; PCRE2: the same set, cut at
//   the bar
//   (?m)                     a dot may be a line feed; PCRE2's (?s)
//
// kBadCheckpoint at `place` for a construct that is not translated, with its name. What is no regular
// expression at all may pass; PCRE2 refuses it.
std::string oniguruma_to_pcre2(std::string_view pattern, const std::string& place);

}  // namespace hyperrun
