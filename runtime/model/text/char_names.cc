#include "runtime/model/text/char_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "runtime/model/text/new_characters.h"

namespace hyperrun {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

constexpr auto kGeneralCategories = std::to_array<Name>({
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"casedletter", "L&"},
    {"lc", "L&"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"combiningmark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"digit", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"punct", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"cntrl", "Cc"},
    {"format", "Cf"},
    {"unassigned", "Cn"},
    {"privateuse", "Co"},
    {"surrogate", "Cs"},
});

// Sets that are no one property of PCRE2.
constexpr auto kSets = std::to_array<Name>({
    {"ascii", R"(\x00-\x7f)"},
    {"blank", R"(\p{Zs}\t)"},
    {"lower", R"(\p{Lowercase})"},
    {"space", kWhiteSpace},
    {"whitespace", kWhiteSpace},
    {"upper", R"(\p{Uppercase})"},
    {"xdigit", kHexDigits},
});

constexpr auto kBinary = std::to_array<std::string_view>({"uppercase",
                                                          "lowercase",
                                                          "cased",
                                                          "ideographic",
                                                          "emoji",
                                                          "emojipresentation",
                                                          "emojimodifier",
                                                          "emojimodifierbase",
                                                          "emojicomponent",
                                                          "extendedpictographic",
                                                          "any",
                                                          "dash",
                                                          "diacritic",
                                                          "math",
                                                          "unifiedideograph",
                                                          "idstart",
                                                          "idcontinue",
                                                          "xidstart",
                                                          "xidcontinue",
                                                          "hexdigit",
                                                          "asciihexdigit"});

constexpr auto kShort = std::to_array<std::string_view>(
    {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
     "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
     "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cn", "Co", "Cs"});

std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (c != ' ' && c != '-' && c != '_')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string property(std::string_view name) { return fmt::format("\\p{{{}}}", name); }

// The new characters whose category begins with `category`.
std::string new_characters(std::string_view category) {
  std::string set;
  for (const NewCharacters& added : kNewCharacters)
    if (added.category.starts_with(category))
      set += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<unsigned>(added.first),
                         static_cast<unsigned>(added.last));
  return set;
}

std::string set_of_category(std::string_view category) {
  return property(category) + (category == "L&" ? "" : new_characters(category));
}

std::string alphabetic() { return property("Alphabetic") + new_characters("L"); }

// Characters of Chinese that are new: the rest of extension C, and extensions I and H.
constexpr std::string_view kNewHan = R"(\x{2b739}\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af})";

}  // namespace

const std::string& word_characters() {
  static const std::string set =
      alphabetic() + set_of_category("M") + set_of_category("Nd") + set_of_category("Pc");
  return set;
}

const std::string& rust_word_characters() {
  static const std::string set = word_characters() + R"(\x{200c}\x{200d})";
  return set;
}

std::string set_of_property(std::string_view name) {
  const std::string wanted = plain(name);
  for (const std::string_view category : kShort)
    if (plain(category) == wanted) return set_of_category(category);
  if (const auto found = std::ranges::find(kGeneralCategories, wanted, &Name::first);
      found != kGeneralCategories.end())
    return set_of_category(found->second);
  if (const auto found = std::ranges::find(kSets, wanted, &Name::first); found != kSets.end())
    return std::string(found->second);
  if (wanted == "word") return word_characters();
  if (wanted == "alpha" || wanted == "alphabetic") return alphabetic();
  if (wanted == "alnum") return alphabetic() + set_of_category("Nd");
  if (std::ranges::find(kBinary, wanted) != kBinary.end()) return property(wanted);
  // \p{Han} of PCRE2 has the characters that several scripts share; sc: has those of the script itself.
  return property("sc:" + wanted) + std::string(wanted == "han" ? kNewHan : "");
}

std::string set_of_posix_name(std::string_view name) {
  return plain(name) == "punct" ? set_of_category("P") + set_of_category("S") : set_of_property(name);
}

}  // namespace hyperrun
