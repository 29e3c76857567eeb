// How ranks agree over letters, and the store that follows.
#include "transport/mpi_words.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "test/transport/fake_mpi.h"
#include "transport/mpi_store.h"
#include "transport/mpi_tags.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using Words = std::vector<core::Result<MpiWord>>;

core::TimePoint in(std::chrono::milliseconds time) { return core::Clock::now() + time; }

// What each rank of `ranks` got; `configure` says how a rank is set.
Words agree(FakeMpiNetwork& network, const std::vector<int>& ranks,
            const std::function<void(int rank, core::Config&)>& configure,
            std::chrono::milliseconds limit = 30s) {
  Words words(ranks.size(), core::Error{});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      FakeMail mail(network, ranks[i]);
      core::Config config;
      configure(ranks[i], config);
      words[i] = agree_over_mpi(mail, config, in(limit));
    });
  }
  for (auto& thread : threads) thread.join();
  return words;
}

void expect_all_say(const Words& words, ErrorCode code, const std::string& text) {
  for (const auto& word : words) {
    ASSERT_FALSE(word.has_value());
    EXPECT_EQ(word.error().code, code);
    EXPECT_NE(word.error().message.find(text), std::string::npos) << word.error().message;
  }
}

TEST(MpiWords, AreTheSameSecretOnAllRanks) {
  FakeMpiNetwork network(3);
  const Words words = agree(network, {0, 1, 2}, [](int, core::Config&) {});
  for (const auto& word : words) {
    ASSERT_TRUE(word.has_value()) << word.error().message;
    EXPECT_EQ(word->secret.size(), 64U);
    EXPECT_EQ(word->secret, words[0]->secret);
    EXPECT_EQ(word->attempt, words[0]->attempt);
  }
  const Words next = agree(network, {0, 1, 2}, [](int, core::Config&) {});
  ASSERT_TRUE(next[1].has_value());
  EXPECT_NE(next[1]->secret, words[1]->secret) << "each world has its own";
  EXPECT_NE(next[1]->attempt, words[1]->attempt);
}

TEST(MpiWords, LeaveASecretToTheFileWhereAllHaveOne) {
  FakeMpiNetwork network(2);
  const Words words =
      agree(network, {0, 1}, [](int, core::Config& config) { config.secret_file = "/a/file"; });
  for (const auto& word : words) {
    ASSERT_TRUE(word.has_value());
    EXPECT_EQ(word->secret, "");
  }
}

TEST(MpiWords, NameTheRanksWithoutAFile) {
  FakeMpiNetwork network(3);
  expect_all_say(agree(network, {0, 1, 2},
                       [](int rank, core::Config& config) {
                         if (rank != 1) config.secret_file = "/a/file";
                       }),
                 ErrorCode::kInvalidArgument, "set on ranks 0, 2 and not on rank 1");
}

TEST(MpiWords, RefuseToMakeASecretWhenARankForbidsIt) {
  FakeMpiNetwork network(3);
  expect_all_say(agree(network, {0, 1, 2},
                       [](int rank, core::Config& config) { config.require_secret = rank == 2; }),
                 ErrorCode::kInvalidArgument, "FASTHOROVOD_REQUIRE_SECRET is 1 on rank 2");
}

TEST(MpiWords, NameWhoDidNotCome) {
  FakeMpiNetwork network(4);
  std::thread rank_2([&] {
    expect_all_say(agree(network, {2}, [](int, core::Config&) {}), ErrorCode::kTimedOut,
                   "ranks 1, 3 did not come to meet");
  });
  network.await_posts(1);
  const Words words = agree(
      network, {0}, [](int, core::Config&) {}, 1ms);
  rank_2.join();
  expect_all_say(words, ErrorCode::kTimedOut, "ranks 1, 3 did not come to meet");
  EXPECT_EQ(words[0].error().culprit, 1);
}

TEST(MpiWords, EndWithoutRank0) {
  FakeMpiNetwork network(2);
  expect_all_say(agree(
                     network, {1}, [](int, core::Config&) {}, 1ms),
                 ErrorCode::kTimedOut, "rank 0, or another rank, did not come");
}

TEST(MpiWords, ForgetAnAttemptThatWasGivenUp) {
  FakeMpiNetwork network(3);
  (void)agree(
      network, {1}, [](int, core::Config&) {}, 1ms);
  expect_all_say(agree(
                     network, {0}, [](int, core::Config&) {}, 1ms),
                 ErrorCode::kTimedOut, "ranks 1, 2 did not come to meet");
  const Words words = agree(network, {0, 1, 2}, [](int, core::Config&) {});
  for (const auto& word : words) {
    ASSERT_TRUE(word.has_value()) << word.error().message;
    EXPECT_EQ(word->attempt, words[0]->attempt);
  }
}

TEST(MpiWords, RefuseNonsense) {
  FakeMpiNetwork network(2);
  network.post(1, 0, kAskTag, Letter(3));
  expect_all_say(agree(network, {0}, [](int, core::Config&) {}), ErrorCode::kProtocol, "rank 1");
  network.post(0, 1, kAnswerTag, Letter(3));
  expect_all_say(agree(network, {1}, [](int, core::Config&) {}), ErrorCode::kProtocol, "rank 0");
}

TEST(MpiStore, BringsWhatRank0PutsToAllOthers) {
  FakeMpiNetwork network(3);
  FakeMail mail(network, 0);
  MpiStore given_up(mail, 6);
  MpiStore store(mail, 7);
  ASSERT_TRUE(given_up.put("where", "nowhere", in(30s)).has_value());
  ASSERT_TRUE(store.put("where", "here", in(30s)).has_value());
  EXPECT_EQ(*store.get("where", in(30s)), "here");
  for (int rank = 1; rank < 3; ++rank) {
    FakeMail other(network, rank);
    MpiStore reader(other, 7);
    const auto value = reader.get("where", in(30s));
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(*value, "here");
    EXPECT_EQ(reader.get("when", in(1ms)).error().code, ErrorCode::kTimedOut);
    EXPECT_FALSE(reader.put("where", "there", in(30s)).has_value());
  }
}

}  // namespace
}  // namespace fasthorovod::transport
