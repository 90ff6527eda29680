// The reader of shell scripts against what bash does: expansions, conditions, loops, and places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/frameworks/shell/script.h"
#include "tests/frameworks/support.h"

namespace hyperrun::frameworks::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

shell::Script read(std::string_view content, const shell::ScriptOptions& options = {}) {
  return shell::read_script("run.sh", content, options);
}

// The words of the first command that the script would start.
std::vector<std::string> words(std::string_view content, const shell::ScriptOptions& options = {}) {
  const shell::Script script = read(content, options);
  std::vector<std::string> list;
  if (script.commands.empty()) return list;
  for (const shell::Text& word : script.commands.front().words)
    list.push_back(shell::without_marks(word.chars));
  return list;
}

TEST(Shell, ExpandsVariablesAsBashDoes) {
  EXPECT_THAT(words("A=1 B=\"x y\"\nrun --a $A --b \"$B\" --c $B --d ${A}2 --e '$A'"),
              ElementsAre("run", "--a", "1", "--b", "x y", "--c", "x", "y", "--d", "12", "--e", "$A"));
  EXPECT_THAT(words("run --a ${X:-7} --b ${X-8} --c ${X:=9} --d $X --e ${X:+yes} --f ${Y:+no}"),
              ElementsAre("run", "--a", "7", "--b", "8", "--c", "9", "--d", "9", "--e", "yes", "--f"));
  EXPECT_THAT(
      words("F=a/b.tar.gz\nrun -x ${F%.*} ${F%%.*} ${F#*/} ${F##*.} ${F/a/c} ${F^^} ${#F} ${F:2:3}"),
      ElementsAre("run", "-x", "a/b.tar", "a/b", "b.tar.gz", "gz", "c/b.tar.gz", "A/B.TAR.GZ", "10", "b.t"));
  EXPECT_THAT(words("N=A\nA=5\nrun -x ${!N} `echo 6` $(echo 7 8) $(basename a/b)"),
              ElementsAre("run", "-x", "5", "6", "7", "8", "b"));
}

TEST(Shell, ReadsArrays) {
  EXPECT_THAT(words("A=(\n --x 1  # a comment\n # --y 2\n \"b c\"\n)\nA+=(--z)\nrun ${#A[@]} ${A[@]} -n "
                    "${A[1]} \"${A[@]}\""),
              ElementsAre("run", "4", "--x", "1", "b", "c", "--z", "-n", "1", "--x", "1", "b c", "--z"));
  EXPECT_THAT(words("declare -A M=([a]=1 [b]=2)\nrun -x ${M[b]} ${M[a]}"),
              ElementsAre("run", "-x", "2", "1"));
}

TEST(Shell, JoinsLinesAndStrings) {
  EXPECT_THAT(words("ARGS=\"\n  --a 1 \\\n  --b 2\n\"\nrun $ARGS \\\n  --c 3 \\\n\n"),
              ElementsAre("run", "--a", "1", "--b", "2", "--c", "3"));
  EXPECT_THAT(words("CMD=\"run --a 1\"\nCMD=\"$CMD --b 2\"\nCMD+=\" --c 3\"\neval $CMD 2>&1 | tee log"),
              ElementsAre("run", "--a", "1", "--b", "2", "--c", "3"));
  EXPECT_THAT(words("run --a 1\r\n"), ElementsAre("run", "--a", "1"));
}

TEST(Shell, ComputesAsBashDoes) {
  EXPECT_THAT(words("G=8\nN=4\nrun -x $((G*N)) $(($G * ${N} + 2)) $(( (G > 4) ? 1 : 0 )) $((2**10)) $((7/2)) "
                    "$((-7%3)) $((1<<4))"),
              ElementsAre("run", "-x", "32", "34", "1", "1024", "3", "-1", "16"));
  EXPECT_THAT(words("I=1\n((I++))\nlet J=I*3\nrun -x $I $J $(expr 6 / 2)"),
              ElementsAre("run", "-x", "2", "6", "3"));
}

TEST(Shell, FollowsConditions) {
  const std::string script =
      "if [ $M = small ]; then L=2\nelif [[ \"$M\" == lar* && $T -gt 1 ]]; then L=4\nelse L=8\nfi\n[ -z "
      "\"$E\" ] && Z=1 || Z=2\nrun --l $L --z $Z";
  EXPECT_THAT(words("M=small\n" + script), ElementsAre("run", "--l", "2", "--z", "1"));
  EXPECT_THAT(words("M=large\nT=2\n" + script), ElementsAre("run", "--l", "4", "--z", "1"));
  EXPECT_THAT(words("M=large\nT=1\nE=x\n" + script), ElementsAre("run", "--l", "8", "--z", "2"));
  EXPECT_THAT(words("case $M in\n a|b) X=1 ;;\n *) X=2 ;;\nesac\nrun -x $X"), ElementsAre("run", "-x", "2"));
}

TEST(Shell, FollowsLoopsAndFunctions) {
  EXPECT_THAT(words("for i in 1 2 3; do A=\"$A --p$i\"; done\nrun $A"),
              ElementsAre("run", "--p1", "--p2", "--p3"));
  EXPECT_THAT(words("for ((i=0; i<3; i++)); do A+=(--q $i); done\nrun ${A[@]}"),
              ElementsAre("run", "--q", "0", "--q", "1", "--q", "2"));
  EXPECT_THAT(words("start() {\n local n=$1\n run --n $n \"${@:2}\" --m $2\n}\nstart 4 5"),
              ElementsAre("run", "--n", "4", "4", "5", "--m", "5"));
  shell::ScriptOptions options;
  options.arguments = {"--size", "7B", "--fast"};
  EXPECT_THAT(words("while [ $# -gt 0 ]; do case $1 in --size) S=$2; shift 2 ;; *) F=1; shift ;; esac; "
                    "done\nrun -s $S -f $F",
                    options),
              ElementsAre("run", "-s", "7B", "-f", "1"));
}

TEST(Shell, SkipsWhatIsNoCommand) {
  EXPECT_THAT(words("cat > f.json <<EOF\n{ \"a\": 1 } --no\nEOF\nrun --a 1 > out.log 2>&1 &\n"),
              ElementsAre("run", "--a", "1"));
  EXPECT_THAT(words("# it's a comment\nexport X=1; run --x $X # --y"), ElementsAre("run", "--x", "1"));
}

TEST(Shell, MarksWhatOnlyARunKnows) {
  const shell::Script script = read("D=$3\nrun --data $D --host $(hostname) --n $((N*2))");
  std::vector<std::string> marks;
  for (const shell::Text& word : script.commands.at(0).words)
    for (const std::string& mark : shell::marks_of(word.chars)) marks.push_back(mark);
  EXPECT_THAT(marks, ElementsAre("$3", "$(hostname)", "$((N*2))"));
}

TEST(Shell, KnowsWhereWordsWereWritten) {
  const shell::Script script = read("ARGS=\"\n  --a 1\n  --bb 2\"\nCMD=\"run $ARGS\"\neval $CMD");
  const shell::StartedCommand& c = script.commands.at(0);
  EXPECT_EQ(script.sources.place(c.words.at(1).places.front()), "run.sh:2:3");
  EXPECT_EQ(script.sources.place(c.words.at(3).places.front()), "run.sh:3:3");
}

TEST(Shell, ReadsFilesThatAreSourced) {
  const Folder folder;
  folder.put("env.sh", "N=4\n");
  const std::string path = folder.put("run.sh", "source $(dirname $0)/env.sh\n. gone.sh\nrun --n $N");
  const shell::Script script =
      shell::read_script(path, "source $(dirname $0)/env.sh\n. gone.sh\nrun --n $N", {});
  EXPECT_EQ(script.commands.at(0).words.at(2).chars, "4");
  ASSERT_EQ(script.notes.size(), 1U);
  EXPECT_THAT(script.notes[0].text, HasSubstr("gone.sh"));
}

TEST(Shell, TellsFlagsThatNoCommandHas) {
  const shell::Script script = read("run --a 1 \\\n  # --b 2 \\\n  --c 3\n");
  ASSERT_EQ(script.notes.size(), 1U);
  EXPECT_THAT(script.notes[0].text, HasSubstr("--c"));
  EXPECT_EQ(script.sources.place(script.notes[0].place), "run.sh:3:3");
}

std::string fault(std::string_view content) {
  try {
    read(content);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Shell, TellsTheLineOfAFault) {
  EXPECT_THAT(fault("A=1\nB=\"x\n"), HasSubstr("run.sh:2:3: error[syntax]: a quote is not closed"));
  EXPECT_THAT(fault("A=(\n --x\n"), HasSubstr("run.sh:1:3"));
  EXPECT_THAT(fault("if [ 1 = 1 ]; then\n A=1\n"),
              HasSubstr("run.sh:1:1: error[syntax]: \"if\" without \"fi\""));
  EXPECT_THAT(fault("A=1\nfi\n"), HasSubstr("run.sh:2:1"));
  EXPECT_THAT(fault("A=$((1/0))"), HasSubstr("division by zero"));
  EXPECT_THAT(fault("A=${X"), HasSubstr("is not closed"));
}

TEST(Shell, EndsWhatDoesNotEnd) {
  EXPECT_THAT(fault("f() { f; }\nf"), HasSubstr("without end"));
  EXPECT_THAT(fault("A=x\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 "
                    "28; do A=$A$A; done"),
              HasSubstr("too long"));
  EXPECT_THAT(fault("X='eval \"$X\"'\neval \"$X\""), HasSubstr("nested too deeply"));
  EXPECT_THAT(fault(std::string(5000, '(')), HasSubstr("\"((\" without"));
  EXPECT_THAT(words("while true; do A=1; done\nrun --a $A"), ElementsAre("run", "--a", "1"));
}

}  // namespace
}  // namespace hyperrun::frameworks::testing
