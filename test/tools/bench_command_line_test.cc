#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/fasthorovod-bench/command_line.h"

namespace fasthorovod::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "allreduce");
  const auto line = parse_bench_command_line(arguments);
  return line ? "accepted" : line.error().message;
}

AllreduceOptions options(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "allreduce");
  return parse_bench_command_line(arguments).value().allreduce;
}

TEST(BenchCommandLine, HasTheDefaultsOfItsHelp) {
  const AllreduceOptions defaults = options({});
  EXPECT_EQ(defaults.counts.front(), 1024U);
  EXPECT_EQ(defaults.counts.back(), 16U << 20U);
  EXPECT_EQ(defaults.type, core::DataType::kFloat32);
  EXPECT_EQ(defaults.reduction, core::Reduction::kSum);
  EXPECT_EQ(defaults.door, BenchDoor::kOrdered);
  EXPECT_EQ(defaults.repetitions, 1);
}

TEST(BenchCommandLine, TakesNcclTestsOptions) {
  const AllreduceOptions given = options({"-b", "8", "-e", "1K", "-f", "2", "-n", "3", "-w", "0",
                                          "-d", "double", "-o", "avg", "--door", "named"});
  EXPECT_THAT(given.counts, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128));
  EXPECT_EQ(given.type, core::DataType::kFloat64);
  EXPECT_EQ(given.reduction, core::Reduction::kAverage);
  EXPECT_EQ(given.iterations, 3);
  EXPECT_EQ(given.warm_up, 0);
  EXPECT_EQ(given.door, BenchDoor::kNamed);
}

TEST(BenchCommandLine, PutsBuffersIntoTheArenaWhenAsked) {
  EXPECT_EQ(options({}).memory, BenchMemory::kOrdinary);
  EXPECT_EQ(options({"--memory", "arena"}).memory, BenchMemory::kArena);
  EXPECT_THAT(refusal({"--memory", "heap"}), HasSubstr("none of ordinary, arena"));
}

TEST(BenchCommandLine, TakesACodecThroughTheNamedDoor) {
  const AllreduceOptions given = options({"--codec", "twobit:0.5", "-o", "avg"});
  EXPECT_EQ(given.codec, (core::CodecChoice{core::CodecId::kTwobit, 0.5F}));
  EXPECT_EQ(given.door, BenchDoor::kNamed);
  EXPECT_EQ(options({"--codec", "none"}).door, BenchDoor::kOrdered);
  EXPECT_THAT(refusal({"--codec", "fp17"}), HasSubstr("did you mean fp16"));
  EXPECT_THAT(refusal({"--codec", "twobit:0"}), HasSubstr("threshold"));
  const std::vector<std::vector<std::string>> others{
      {"-t", "int32"}, {"-o", "max"}, {"--door", "ordered"}};
  for (std::vector<std::string> arguments : others) {
    arguments.insert(arguments.end(), {"--codec", "fp16"});
    EXPECT_THAT(refusal(arguments), HasSubstr("goes with --datatype float32"));
  }
}

TEST(BenchCommandLine, RunsMpiBesideWhereMpiCanDoIt) {
  const auto line = parse_bench_command_line({"allreduce", "--backend", "gloo,mpi", "-t", "int8"});
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->gloo);
  EXPECT_TRUE(line->mpi);
  EXPECT_EQ(line->allreduce.repetitions, 5);
  EXPECT_THAT(refusal({"--backend", "mpi", "-t", "half"}), HasSubstr("goes with integers"));
  EXPECT_THAT(refusal({"--backend", "mpi", "-o", "avg"}), HasSubstr("goes with integers"));
  EXPECT_THAT(refusal({"--backend", "nccl"}), HasSubstr("'nccl' is none of gloo, mpi"));
}

TEST(BenchCommandLine, TakesAListOfSizes) {
  EXPECT_THAT(options({"--sizes", "4K,64,1M"}).counts, ElementsAre(1024, 16, 262144));
  EXPECT_THAT(refusal({"--sizes", "4K,2"}), HasSubstr("one float32 has 4 bytes"));
  EXPECT_THAT(refusal({"--sizes", "4K,many"}), HasSubstr("--sizes"));
  EXPECT_THAT(refusal({"--sizes", "4K", "-b", "4K"}), HasSubstr("--sizes"));
}

TEST(BenchCommandLine, MeasuresBackToBackAlone) {
  const AllreduceOptions given = options({"--back-to-back", "--budget", "0.5"});
  EXPECT_TRUE(given.back_to_back);
  EXPECT_EQ(given.budget_s, 0.5);
  EXPECT_THAT(refusal({"--budget", "1"}), HasSubstr("goes with --back-to-back"));
  EXPECT_THAT(refusal({"--back-to-back", "--backend", "gloo"}), HasSubstr("alone"));
  EXPECT_THAT(refusal({"--back-to-back", "--repetitions", "2"}), HasSubstr("alone"));
  EXPECT_THAT(refusal({"--back-to-back", "--budget", "0"}), HasSubstr("--budget"));
}

TEST(BenchCommandLine, RoundsSizesDownToWholeElementsOnce) {
  EXPECT_THAT(options({"-b", "4", "-e", "9", "-i", "1"}).counts, ElementsAre(1, 2));
}

TEST(BenchCommandLine, RefusesASizeOfNoElement) {
  EXPECT_THAT(refusal({"-b", "2"}), HasSubstr("one float32 has 4 bytes"));
  EXPECT_THAT(refusal({"-b", "4", "-t", "int64"}), HasSubstr("one int64 has 8 bytes"));
  EXPECT_THAT(refusal({"-b", "0"}), HasSubstr("at least 1"));
}

TEST(BenchCommandLine, SaysWhatIsAllowed) {
  EXPECT_THAT(refusal({"-n", "0"}), HasSubstr("1 to 1000000"));
  EXPECT_THAT(refusal({"-w", "-1"}), HasSubstr("0 to 1000000"));
  EXPECT_THAT(refusal({"-f", "1"}), HasSubstr("2 to "));
  EXPECT_THAT(refusal({"-f", "-1"}), HasSubstr("2 to "));
  EXPECT_THAT(refusal({"-e", "1q"}), HasSubstr("K, M or G"));
  EXPECT_THAT(refusal({"-t", "int9"}), HasSubstr("'int9' is none of bool, uint8,"));
  EXPECT_THAT(refusal({"-o", "xor"}), HasSubstr("'xor' is none of sum, prod, min, max, avg"));
  EXPECT_THAT(refusal({"--door", "back"}), HasSubstr("ordered, named"));
  EXPECT_THAT(refusal({"--backend", "nccl"}), HasSubstr("'nccl' is none of gloo"));
  EXPECT_THAT(refusal({"--repetitions", "0"}), HasSubstr("1 to 1000"));
  EXPECT_THAT(refusal({"--speed", "9"}), HasSubstr("--speed"));
  EXPECT_THAT(refusal({"--json", "--trace", "-"}), HasSubstr("--trace - and --json"));
}

TEST(BenchCommandLine, RepeatsMoreBesideAnotherBackend) {
  const auto line = parse_bench_command_line({"allreduce", "--backend", "gloo"});
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->gloo);
  EXPECT_EQ(line->allreduce.repetitions, 5);
  EXPECT_EQ(options({"--backend", "gloo", "--repetitions", "2"}).repetitions, 2);
}

TEST(BenchCommandLine, WantsACollective) {
  const auto line = parse_bench_command_line({});
  ASSERT_FALSE(line);
  EXPECT_THAT(line.error().message, HasSubstr("allreduce"));
}

TEST(BenchCommandLine, HelpsInsteadOfMeasuring) {
  for (const auto& arguments : {std::vector<std::string>{"--help"},
                                {"allreduce", "--help"},
                                {"allreduce", "-n", "3", "-h"}}) {
    const auto line = parse_bench_command_line(arguments);
    ASSERT_TRUE(line);
    EXPECT_THAT(line->help, HasSubstr("allreduce"));
  }
}

StepOptions step_options(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "step");
  return parse_bench_command_line(arguments).value().step;
}

std::string step_refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "step");
  const auto line = parse_bench_command_line(arguments);
  return line ? "accepted" : line.error().message;
}

TEST(BenchCommandLine, TakesTheComputationOfSteps) {
  EXPECT_THAT(step_options({}).compute_ms, ElementsAre(0));
  const StepOptions given =
      step_options({"--model", "vgg16", "--scale", "8", "--compute", "0,2.5"});
  EXPECT_EQ(given.model.name, "vgg16");
  EXPECT_EQ(given.scale, 8U);
  EXPECT_THAT(given.compute_ms, ElementsAre(0, 2.5));
  const StepOptions searched = step_options({"--exposed", "45", "--backend", "one-flow"});
  EXPECT_DOUBLE_EQ(searched.exposed.value(), 0.45);
  EXPECT_THAT(searched.compute_ms, testing::IsEmpty());
}

TEST(BenchCommandLine, RefusesStepsThatMakeNoSense) {
  EXPECT_THAT(step_refusal({"--model", "vgg"}), HasSubstr("alexnet, vgg16, resnet50, gpt2-small"));
  EXPECT_THAT(step_refusal({"--backend", "mpi"}), HasSubstr("'mpi' is none of one-flow, gloo"));
  EXPECT_THAT(step_refusal({"--exposed", "45"}), HasSubstr("goes with --backend one-flow"));
  EXPECT_THAT(step_refusal({"--exposed", "45", "--compute", "1"}), HasSubstr("--compute"));
  EXPECT_THAT(step_refusal({"--compute", "-1"}), HasSubstr("--compute"));
  EXPECT_THAT(step_refusal({"--scale", "0"}), HasSubstr("--scale"));
}

}  // namespace
}  // namespace fasthorovod::tools
