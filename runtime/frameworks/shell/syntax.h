// The syntax of a shell script, as far as launch scripts use it: commands, assignments, arrays, if, case,
// loops, functions. Words stay as they are written; expansion.h expands them when a command is read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/frameworks/shell/sources.h"

namespace hyperrun::shell {

struct Word {
  Text text;
  std::uint32_t place() const { return text.places.empty() ? 0 : text.places.front(); }
};

// NAME=value, NAME+=value, NAME[index]=value, NAME=(words).
struct Assignment {
  std::string name;
  std::optional<Text> index;
  bool appends = false;
  bool is_array = false;
  Text value;
  std::vector<Word> elements;
  std::uint32_t place = 0;
};

struct Command;
using Commands = std::vector<Command>;

enum class CommandKind : std::uint8_t {
  kSimple,
  kIf,          // clauses; the last one may have no condition
  kLoop,        // while and until
  kFor,         // words to go through
  kCountedFor,  // for ((a; b; c)): three clauses of arithmetic
  kCase,
  kGroup,  // ( ... ) and { ... }
  kFunction,
  kTest,        // [[ ... ]]
  kArithmetic,  // (( ... ))
};

// The condition under which the next command runs; kPipe: beside this one.
enum class Then : std::uint8_t { kNext, kIfDone, kUnlessDone, kPipe };

struct Clause {
  Commands condition;
  std::vector<Word> patterns;  // of case
  Commands body;
};

struct Command {
  CommandKind kind = CommandKind::kSimple;
  std::uint32_t place = 0;
  Then then = Then::kNext;
  bool negated = false;
  bool until = false;
  std::string name;  // of a function, or the variable of a loop
  std::vector<Assignment> assignments;
  std::vector<Word> words;
  std::vector<Text> parts;  // arithmetic
  std::vector<Clause> clauses;
};

// Throws kSyntax with the place of what is not closed, or of what cannot stand there.
Commands parse(const Text& text, const Sources& sources);

// The end of what begins at text[i] with a quote, `$`, or a backquote; i + 1 for any other character.
std::size_t end_of_quoted(const Text& text, std::size_t i, const Sources& sources);

inline bool is_name_char(char c, bool first) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
}

}  // namespace hyperrun::shell
