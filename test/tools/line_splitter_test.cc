#include "tools/fasthorovodrun/line_splitter.h"

#include <gtest/gtest.h>

#include <string>

namespace fasthorovod::tools {
namespace {

std::string split(std::string_view text, std::size_t step, std::size_t longest = 64) {
  LineSplitter splitter("> ", longest);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) splitter.push(text.substr(at, step), out);
  splitter.finish(out);
  return out;
}

TEST(LineSplitter, PutsThePrefixBeforeEveryLine) {
  EXPECT_EQ(split("a\n\nb\n", 100), "> a\n> \n> b\n");
}

TEST(LineSplitter, GivesTheSameLinesHoweverBytesArrive) {
  const std::string text = "one\nzw\xc3\xb6lf\r\n\xe2\x82\xac\xe2\x82\xac\n10%\r20%\rdone\npartial";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    EXPECT_EQ(split(text, step), split(text, text.size())) << step;
  }
}

TEST(LineSplitter, PassesOnACarriageReturnAtOnce) {
  LineSplitter splitter("> ");
  std::string out;
  splitter.push("10%\r", out);
  EXPECT_EQ(out, "> 10%\r");
  splitter.push("20%\r", out);
  EXPECT_EQ(out, "> 10%\r> 20%\r");
}

TEST(LineSplitter, TakesReturnAndFeedForOneEnd) {
  EXPECT_EQ(split("a\r\nb\r\n", 100), "> a\r\n> b\r\n");
  EXPECT_EQ(split("a\r\nb\r\n", 2), "> a\r\n> b\r\n");
}

TEST(LineSplitter, CompletesTheLastLine) {
  EXPECT_EQ(split("a\nb", 100), "> a\n> b\n");
  EXPECT_EQ(split("", 1), "");
}

TEST(LineSplitter, KeepsNothingOfAnUnfinishedLineBack) {
  LineSplitter splitter("> ", 4);
  std::string out;
  splitter.push("abcdefghij", out);
  EXPECT_EQ(out, "> abcd\n> efgh\n");
  splitter.push("\n", out);
  EXPECT_EQ(out, "> abcd\n> efgh\n> ij\n");
}

TEST(LineSplitter, LeavesALineOfTheLongestLengthWhole) {
  EXPECT_EQ(split("abcd\n", 1, 4), "> abcd\n");
}

TEST(LineSplitter, CutsLongLinesBetweenCharacters) {
  EXPECT_EQ(split("a\xe2\x82\xac\xe2\x82\xac", 1, 6), "> a\xe2\x82\xac\n> \xe2\x82\xac\n");
}

TEST(LineSplitter, CutsLongLinesThatAreNoText) {
  EXPECT_EQ(split(std::string(9, '\x80'), 3, 6),
            "> " + std::string(6, '\x80') + "\n> " + std::string(3, '\x80') + "\n");
}

TEST(LineSplitter, PassesZeroBytesThrough) {
  const std::string text("a\0b\n", 4);
  EXPECT_EQ(split(text, 1), "> " + text);
}

}  // namespace
}  // namespace fasthorovod::tools
