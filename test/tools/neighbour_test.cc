// What stands beside the thread that is measured, and how busy others are.
#include "tools/fasthorovod-bench/neighbour.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "tools/fasthorovod-bench/loopback_pair.h"
#include "tools/fasthorovod-bench/others.h"
#include "transport/own_processors.h"

namespace fasthorovod::tools {
namespace {

TEST(Neighbour, RunsOnItsProcessorUntilItIsDestroyed) {
  const std::vector<int> usable = transport::own_processors().usable;
  for (const auto kind : {Neighbour::Kind::kBusy, Neighbour::Kind::kHungry}) {
    const Neighbour neighbour(kind, usable.back());
    if (usable.size() > 1) {
      EXPECT_TRUE(transport::own_processors().bound.contains(usable.back()));
    }
  }
  EXPECT_TRUE(transport::own_processors().bound.empty());
}

TEST(Others, AreAShareOfTheMachine) {
  const Others others;
  const auto share = others.share();
  ASSERT_TRUE(share.has_value());
  EXPECT_GE(*share, 0);
  EXPECT_LE(*share, 1);
}

TEST(LoopbackPair, CarriesBytesBothWays) {
  const auto pair = loopback_pair();
  ASSERT_TRUE(pair) << pair.error().message;
  std::array<char, 3> text{};
  ASSERT_EQ(::send(pair->first.get(), "abc", 3, 0), 3);
  ASSERT_EQ(::recv(pair->second.get(), text.data(), 3, MSG_DONTWAIT), 3);
  EXPECT_EQ(std::string(text.data(), 3), "abc");
  ASSERT_EQ(::send(pair->second.get(), "def", 3, 0), 3);
  ASSERT_EQ(::recv(pair->first.get(), text.data(), 3, MSG_DONTWAIT), 3);
  EXPECT_EQ(::recv(pair->first.get(), text.data(), 1, 0), -1) << "it does not wait";
}

}  // namespace
}  // namespace fasthorovod::tools
