// Point-to-point between real engines, as threads over the loopback.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;

Message message(int peer, Floats& values, std::uint32_t tag = 0) {
  Message one;
  one.peer = peer;
  one.tag = tag;
  one.bytes = std::as_writable_bytes(std::span(values));
  return one;
}

TEST(Messages, ArriveInEverySize) {
  run_as_threads(2, [](Engine& engine) {
    for (const std::size_t count : {0u, 1u, 7u, 1001u, 262'144u, 2'000'000u}) {
      Floats values(count, static_cast<float>(count + 1));
      if (engine.world().rank == 0) {
        expect_success(engine.send(message(1, values)));
      } else {
        Floats got(count);
        const auto handle = engine.receive(message(0, got));
        ASSERT_TRUE(handle) << handle.error().message;
        expect_success(handle);
        EXPECT_EQ(got, values);
        EXPECT_EQ(handle->source(), 0);
      }
    }
  });
}

TEST(Messages, GoRoundARingAtOnce) {
  run_as_threads(4, [](Engine& engine) {
    const int rank = engine.world().rank;
    Floats own(300'000, static_cast<float>(rank));
    Floats got(own.size());
    const auto sending = engine.send(message((rank + 1) % 4, own));
    expect_success(engine.receive(message((rank + 3) % 4, got)));
    expect_success(sending);
    EXPECT_EQ(got, Floats(own.size(), static_cast<float>((rank + 3) % 4)));
  });
}

TEST(Messages, AreMatchedByTag) {
  run_as_threads(2, [](Engine& engine) {
    constexpr std::uint32_t kTags = 20;
    std::vector<Floats> values(kTags, Floats(100));
    std::vector<core::Result<Handle>> handles;
    for (std::uint32_t i = 0; i < kTags; ++i) {
      const std::uint32_t tag = engine.world().rank == 0 ? i : kTags - 1 - i;
      Floats& one = values[tag];
      if (engine.world().rank == 0) {
        std::fill(one.begin(), one.end(), static_cast<float>(tag));
        handles.push_back(engine.send(message(1, one, tag)));
      } else {
        handles.push_back(engine.receive(message(0, one, tag)));
      }
    }
    for (const auto& handle : handles) expect_success(handle);
    for (std::uint32_t tag = 0; tag < kTags; ++tag) {
      EXPECT_EQ(values[tag], Floats(100, static_cast<float>(tag)));
    }
  });
}

TEST(Messages, AThousandKeepTheirOrder) {
  run_as_threads(2, [](Engine& engine) {
    constexpr int kMessages = 1000;
    std::vector<Floats> values(kMessages, Floats(3));
    std::vector<core::Result<Handle>> handles;
    for (int i = 0; i < kMessages; ++i) {
      Floats& one = values[static_cast<std::size_t>(i)];
      if (engine.world().rank == 0) {
        one.front() = static_cast<float>(i);
        handles.push_back(engine.send(message(1, one)));
      } else {
        handles.push_back(engine.receive(message(0, one)));
      }
    }
    for (const auto& handle : handles) expect_success(handle);
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(values[static_cast<std::size_t>(i)].front(), static_cast<float>(i));
    }
  });
}

TEST(Messages, FromAnybodyNameTheirSource) {
  run_as_threads(4, [](Engine& engine) {
    const int rank = engine.world().rank;
    ASSERT_TRUE(engine.add_group(2, {3, 2, 1, 0}));
    Floats own(10, static_cast<float>(3 - rank));  // its position in the group
    if (rank != 3) {
      Message one = message(0, own, 9);
      one.group = 2;
      return expect_success(engine.send(one));
    }
    std::vector<int> sources;
    for (int i = 0; i < 3; ++i) {
      Floats got(10);
      Message one = message(-1, got, 9);
      one.group = 2;
      const auto handle = engine.receive(one);
      ASSERT_TRUE(handle) << handle.error().message;
      expect_success(handle);
      sources.push_back(handle->source());
      EXPECT_EQ(got, Floats(10, static_cast<float>(handle->source())));
    }
    std::ranges::sort(sources);
    EXPECT_EQ(sources, (std::vector<int>{1, 2, 3}));
  });
}

// Rank 0 introduces ranks to each other; who waits for anybody has asked for no flows.
TEST(Messages, ReachWhoWaitsForAnybodyAfterTheCoordinatorHasLeft) {
  run_as_threads(3, [](Engine& engine) {
    const int rank = engine.world().rank;
    if (rank == 0) return;  // shuts down
    Floats values(10, static_cast<float>(rank));
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return expect_success(engine.send(message(2, values)));
    }
    const auto handle = engine.receive(message(-1, values));
    expect_success(handle);
    EXPECT_EQ(handle->source(), 1);
    EXPECT_EQ(values, Floats(10, 1.0F));
  });
}

TEST(Messages, ToOneselfAreCopied) {
  run_as_threads(1, [](Engine& engine) {
    Floats own(100, 4.0F);
    Floats got(100);
    const auto sending = engine.send(message(0, own));
    expect_success(engine.receive(message(-1, got)));
    expect_success(sending);
    EXPECT_EQ(got, own);
  });
}

TEST(Messages, OfAnotherSizeFailOnBothSidesAndTheNextWorks) {
  run_as_threads(2, [](Engine& engine) {
    const bool sends = engine.world().rank == 0;
    Floats values(sends ? 10 : 20);
    expect_failure(sends ? engine.send(message(1, values)) : engine.receive(message(0, values)),
                   ErrorCode::kMismatch, {"rank 0 (host", "40 bytes", "rank 1 (host", "80"});
    Floats next(30);
    expect_success(sends ? engine.send(message(1, next)) : engine.receive(message(0, next)));
  });
}

TEST(Messages, HaveNoOrderWithCollectives) {
  run_as_threads(2, [](Engine& engine) {
    Floats values(1000, 1.0F);
    Floats sum(1000, 1.0F);
    if (engine.world().rank == 0) {
      const auto sending = engine.send(message(1, values));
      expect_success(engine.submit_ordered(call(OrderedKind::kAllreduce, sum, sum)));
      expect_success(sending);
    } else {
      expect_success(engine.submit_ordered(call(OrderedKind::kAllreduce, sum, sum)));
      expect_success(engine.receive(message(0, values)));
    }
  });
}

TEST(Messages, NobodyReceivesRunIntoTheirLimit) {
  run_as_threads(2, [](Engine& engine) {
    const bool sends = engine.world().rank == 0;
    Floats values(10);
    Message limited = message(sends ? 1 : 0, values, 1);
    limited.time_limit = std::chrono::milliseconds(200);
    if (sends) {
      expect_failure(engine.send(limited), ErrorCode::kTimedOut, {"rank 1 (host", "200 ms"});
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      expect_failure(engine.receive(message(0, values, 1)), ErrorCode::kTimedOut, {"200 ms"});
      expect_failure(engine.receive(limited), ErrorCode::kTimedOut, {"receive", "200 ms"});
    }
    Floats next(30);
    expect_success(sends ? engine.send(message(1, next)) : engine.receive(message(0, next)));
  });
}

TEST(Messages, FromARankThatHasLeftFail) {
  run_as_threads(2, [](Engine& engine) {
    Floats values(10);
    if (engine.world().rank == 0) {
      expect_success(engine.receive(message(1, values)));
      return;  // shuts down
    }
    expect_success(engine.send(message(0, values)));
    expect_failure(engine.receive(message(0, values)), ErrorCode::kShutdown, {"rank 0"});
    expect_failure(engine.receive(message(0, values)), ErrorCode::kShutdown, {"rank 0"});
  });
}

TEST(Messages, ExchangeAtRandom) {
  run_as_threads(3, [](Engine& engine) {
    constexpr int kEach = 100;
    const int rank = engine.world().rank;
    std::mt19937 random(static_cast<unsigned>(rank));
    constexpr std::size_t kAll = std::size_t{3} * kEach;
    std::vector<Floats> sent(kAll, Floats(5000, static_cast<float>(rank)));
    std::vector<Floats> got(kAll, Floats(5000));
    std::vector<int> order(kAll);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    std::vector<core::Result<Handle>> handles;
    for (const int i : order) {
      Floats& out = sent[static_cast<std::size_t>(i)];
      Floats& in = got[static_cast<std::size_t>(i)];
      handles.push_back(engine.send(message(i % 3, out, static_cast<std::uint32_t>(rank))));
      handles.push_back(engine.receive(message(i % 3, in, static_cast<std::uint32_t>(i % 3))));
    }
    for (const auto& handle : handles) expect_success(handle);
    for (int i = 0; i < 3 * kEach; ++i) {
      ASSERT_EQ(got[static_cast<std::size_t>(i)].back(), static_cast<float>(i % 3));
    }
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
