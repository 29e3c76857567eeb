#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "transport/store_client.h"
#include "transport/store_server.h"

namespace fasthorovod::transport {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
core::TimePoint in(std::chrono::milliseconds time) { return core::Clock::now() + time; }

class Store : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = StoreServer::start("127.0.0.1", secret_, job_, log_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::unique_ptr<StoreClient> client(int rank) {
    auto made = StoreClient::connect(server_->endpoint(), secret_, job_, rank, in(20s));
    if (!made) ADD_FAILURE() << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  core::Log log_{core::LogLevel::kOff, [](core::LogLevel, std::string_view) {}};
  Secret secret_ = Secret::from_bytes(bytes_of("a secret of this test"));
  core::JobId job_ = secret_.derive_job_id();
  std::unique_ptr<StoreServer> server_;
};

TEST_F(Store, GivesBackWhatWasPut) {
  const auto writer = client(0);
  const auto reader = client(1);
  ASSERT_TRUE(writer->put("key", "value", in(20s)));
  ASSERT_TRUE(writer->put("other", "thing", in(20s)));
  EXPECT_EQ(*reader->get("key", in(20s)), "value");
  EXPECT_EQ(*reader->get("other", in(20s)), "thing");
  ASSERT_TRUE(writer->put("key", "new value", in(20s)));
  EXPECT_EQ(*reader->get("key", in(20s)), "new value");
}

TEST_F(Store, LetsManyWaitForAKey) {
  std::vector<std::future<core::Result<std::string>>> waiting;
  for (int rank = 1; rank < 6; ++rank) {
    waiting.push_back(
        std::async(std::launch::async, [this, rank] { return client(rank)->get("key", in(20s)); }));
  }
  ASSERT_TRUE(client(0)->put("key", "value", in(20s)));
  for (auto& each : waiting) {
    auto value = each.get();
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_EQ(*value, "value");
  }
}

TEST_F(Store, TimesOutWhenNobodyPuts) {
  auto value = client(0)->get("key", in(50ms));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, core::ErrorCode::kTimedOut);
}

TEST_F(Store, RefusesAnotherSecretAtOnce) {
  const Secret wrong = Secret::from_bytes(bytes_of("the secret of another test"));
  auto refused = StoreClient::connect(server_->endpoint(), wrong, job_, 1, in(60s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kAuthentication);
  EXPECT_THAT(refused.error().message, HasSubstr(server_->endpoint()));
}

TEST_F(Store, RefusesAnotherJobAtOnce) {
  auto refused = StoreClient::connect(server_->endpoint(), secret_, core::JobId{}, 1, in(60s));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("another job"));
}

TEST_F(Store, TellsClientsThatItIsGone) {
  const auto survivor = client(0);
  server_.reset();
  auto value = survivor->get("key", in(20s));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, core::ErrorCode::kPeerLost);
}

TEST_F(Store, IsNamedWhenItNeverComes) {
  const std::string endpoint = server_->endpoint();
  server_.reset();
  auto refused = StoreClient::connect(endpoint, secret_, job_, 0, in(100ms));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kTimedOut);
  EXPECT_THAT(refused.error().message, HasSubstr(endpoint));
}

TEST(StoreServer, WantsALiteralAddress) {
  core::Log log(core::LogLevel::kOff, [](core::LogLevel, std::string_view) {});
  const Secret secret = Secret::from_bytes(bytes_of("a secret of this test"));
  EXPECT_FALSE(StoreServer::start("localhost", secret, {}, log));
}

}  // namespace
}  // namespace fasthorovod::transport
