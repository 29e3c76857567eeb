#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/fasthorovod-bench/line_process.h"
#include "tools/fasthorovod-bench/worker_messages.h"

namespace fasthorovod::tools {
namespace {

using testing::HasSubstr;

TEST(LineProcess, AnswersLineByLine) {
  auto process = LineProcess::start({"sh", "-c", "while read line; do echo \"<$line>\"; done"});
  ASSERT_TRUE(process);
  const std::string longer(200'000, 'x');
  for (const std::string& line : {std::string("one"), std::string(), longer}) {
    ASSERT_TRUE((*process)->tell(line));
    EXPECT_EQ((*process)->hear().value(), "<" + line + ">");
  }
}

TEST(LineProcess, KeepsWhatComesAtOnce) {
  auto process = LineProcess::start({"printf", "a\\nb\\n"});
  ASSERT_TRUE(process);
  EXPECT_EQ((*process)->hear().value(), "a");
  EXPECT_EQ((*process)->hear().value(), "b");
  const auto end = (*process)->hear();
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("printf has ended"));
}

TEST(LineProcess, SaysThatTheChildIsGone) {
  auto process = LineProcess::start({"true"});
  ASSERT_TRUE(process);
  EXPECT_FALSE((*process)->hear());
  EXPECT_FALSE((*process)->tell("anybody?"));
}

TEST(LineProcess, NamesAProgramThatIsNotThere) {
  const auto process = LineProcess::start({"no-such-program"});
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error().message, HasSubstr("no-such-program"));
}

TEST(GlooMessages, ReadSamples) {
  const auto samples = parse_worker_samples("12.5:0 1000000.250:3", 2);
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ((*samples)[0].microseconds, 12.5);
  EXPECT_EQ((*samples)[1].wrong, 3U);
}

TEST(GlooMessages, RefuseWhatMakesNoSense) {
  for (const char* text : {"x", "1", "1:", ":1", "1:2,", "1:2:3", "", "1:2 1:2"}) {
    EXPECT_FALSE(parse_worker_samples(text, 1)) << text;
  }
  EXPECT_FALSE(parse_worker_port("12x"));
  EXPECT_FALSE(worker_answer("tookx", "took"));
}

TEST(GlooMessages, PassOnWhatTheWorkerSaysWentWrong) {
  const auto answer = worker_answer("error no memory", "took");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no memory");
  EXPECT_EQ(worker_answer("took 1:0", "took").value(), "1:0");
  EXPECT_EQ(worker_answer("ready", "ready").value(), "");
}

}  // namespace
}  // namespace fasthorovod::tools
