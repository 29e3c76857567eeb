#include "core/aux_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two sockets of eight cores; the card is at the second.
std::vector<Processor> two_sockets() {
  std::vector<Processor> processors;
  for (int id = 0; id < 16; ++id) processors.push_back({id, id, id >= 8});
  return processors;
}

/// The same with two processors a core, numbered as Linux does: 0 and 16 are one core.
std::vector<Processor> two_sockets_with_threads() {
  std::vector<Processor> processors = two_sockets();
  for (int id = 0; id < 16; ++id) processors.push_back({id + 16, id, id >= 8});
  return processors;
}

std::vector<int> names(const std::vector<AuxCore>& cores) {
  std::vector<int> result;
  for (const AuxCore& core : cores) result.push_back(core.core);
  return result;
}

TEST(AuxCores, LieNearTheCardAndAtTheEnd) {
  const auto cores = cores_to_spare({.processors = two_sockets(), .auxiliaries = 2});
  EXPECT_THAT(names(cores), ElementsAre(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_THAT(cores.front().processors, ElementsAre(15));
}

TEST(AuxCores, LieAnywhereWhereTheCardIsUnknown) {
  auto processors = two_sockets();
  for (Processor& processor : processors) processor.near = false;
  EXPECT_EQ(names(cores_to_spare({.processors = processors, .auxiliaries = 1})).front(), 15);
}

TEST(AuxCores, AreFirstThoseOfTheFirstSocketWhereTheCardIsThere) {
  auto processors = two_sockets();
  for (Processor& processor : processors) processor.near = processor.id < 8;
  const auto cores = names(cores_to_spare({.processors = processors, .auxiliaries = 1}));
  EXPECT_EQ(cores.front(), 7);
  EXPECT_EQ(cores[8], 15);
}

TEST(AuxCores, TakeWholeCoresNotSingleThreads) {
  const auto cores = cores_to_spare({.processors = two_sockets_with_threads(), .auxiliaries = 2});
  EXPECT_EQ(cores.size(), 16U);
  EXPECT_EQ(cores.front(), (AuxCore{.core = 15, .processors = {15, 31}}));
}

TEST(AuxCores, CountCoresNotThreads) {
  std::vector<Processor> processors;  // four cores of two
  for (int id = 0; id < 8; ++id) processors.push_back({id, id % 4});
  EXPECT_THAT(cores_to_spare({.processors = processors, .auxiliaries = 1}), IsEmpty());
}

TEST(AuxCores, AreNoneWithoutCoresToSpare) {
  const std::vector<Processor> two{{0, 0}, {1, 1}};
  EXPECT_THAT(cores_to_spare({.processors = two, .auxiliaries = 1}), IsEmpty());
  EXPECT_THAT(cores_to_spare({}), IsEmpty()) << "nothing is known";
  EXPECT_THAT(cores_to_spare({.processors = two_sockets(), .ranks_on_host = 4, .auxiliaries = 1}),
              IsEmpty());
  EXPECT_EQ(
      cores_to_spare({.processors = two_sockets(), .ranks_on_host = 2, .auxiliaries = 4}).size(),
      16U);
  EXPECT_THAT(cores_to_spare({.processors = two_sockets(), .ranks_on_host = 2, .auxiliaries = 5}),
              IsEmpty());
}

TEST(AuxCores, StayInsideWhatAControlGroupAllows) {
  std::vector<Processor> some;  // one thread of each of the cores 2 to 7
  for (int core = 2; core < 8; ++core) some.push_back({core + 16, core});
  const auto cores = cores_to_spare({.processors = some, .auxiliaries = 2});
  EXPECT_EQ(cores.front(), (AuxCore{.core = 7, .processors = {23}}));
  EXPECT_THAT(names(cores), ElementsAre(7, 6, 5, 4, 3, 2));
  EXPECT_THAT(cores_to_spare({.processors = some, .auxiliaries = 3}), IsEmpty());
}

TEST(AuxCores, AreNotSparedWhereAQuotaPaysForFewer) {
  EXPECT_THAT(cores_to_spare({.processors = two_sockets(), .most_cores = 4, .auxiliaries = 1}),
              IsEmpty());
  EXPECT_THAT(cores_to_spare({.processors = two_sockets(), .most_cores = 5, .auxiliaries = 1}),
              ::testing::Not(IsEmpty()));
}

TEST(AuxCores, AvoidThoseThatThreadsAreBoundTo) {
  const auto cores = cores_to_spare(
      {.processors = two_sockets_with_threads(), .bound = {31, 14, 3}, .auxiliaries = 1});
  EXPECT_THAT(names(cores), ElementsAre(13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 2, 1, 0))
      << "31 is a thread of core 15";
}

TEST(AuxCores, AreThoseOfAListInItsOrder) {
  const AuxCoreNeeds needs{
      .processors = two_sockets_with_threads(), .ranks_on_host = 8, .auxiliaries = 2};
  const auto cores = listed_cores({20, 2, 3}, needs);
  ASSERT_TRUE(cores);
  EXPECT_THAT(*cores, ElementsAre(AuxCore{4, {20}}, AuxCore{2, {2}}, AuxCore{3, {3}}));
}

TEST(AuxCores, OfAListMustBeAllowedAndEnough) {
  const std::vector<Processor> two{{0, 0}, {1, 1}};
  const auto strange = listed_cores({1, 2}, {.processors = two, .auxiliaries = 1});
  ASSERT_FALSE(strange);
  EXPECT_EQ(strange.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(strange.error().message,
            "FASTHOROVOD_AUX_PINNING=\"1-2\": this process may not run on processor 2, only on "
            "0-1");
  const auto twins =
      listed_cores({20, 3, 4}, {.processors = two_sockets_with_threads(), .auxiliaries = 1});
  ASSERT_FALSE(twins);
  EXPECT_THAT(twins.error().message, HasSubstr("processors 20 and 4 are of one core"));
  const auto few = listed_cores({1}, {.processors = two, .auxiliaries = 2});
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().message, HasSubstr("fewer than the 2 auxiliaries of a rank"));
}

}  // namespace
}  // namespace fasthorovod::core
