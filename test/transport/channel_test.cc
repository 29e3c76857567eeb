#include "transport/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "core/control_message.h"
#include "core/wire.h"

namespace fasthorovod::transport {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

Mac key_of(unsigned char value) {
  Mac key;
  key.fill(std::byte{value});
  return key;
}

// Two channels over one connection, served by one loop.
class ChannelPair : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> fds{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    raw_ = fds[0];
    a_.emplace(context_, FileDescriptor(fds[0]), ChannelKeys{key_of(1), key_of(2)});
    b_.emplace(context_, FileDescriptor(fds[1]), ChannelKeys{key_of(2), key_of(1)});
    b_->start({.on_message = [this](auto message) { take(message); },
               .on_end = [this](core::Error error) { end_ = std::move(error); }});
  }
  void take(std::span<const std::byte> message) {
    received_.emplace_back(reinterpret_cast<const char*>(message.data()), message.size());
    if (on_message_) on_message_();
  }
  void send(const std::string& text) { ASSERT_TRUE(a_->send(std::as_bytes(std::span(text)))); }
  // Bytes that come from nowhere else than a peer gone bad.
  void send_raw(std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(raw_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  bool serve_until(const std::function<bool()>& condition) {
    const auto deadline = core::Clock::now() + 30s;
    while (!condition() && core::Clock::now() < deadline) {
      context_.restart();
      context_.run_one_for(100ms);
    }
    return condition();
  }
  static std::vector<std::byte> frame(std::uint32_t length, std::uint64_t sequence,
                                      const std::string& text, const Mac& key) {
    core::WireWriter writer;
    writer.u32(length);
    writer.u64(sequence);
    writer.bytes(std::as_bytes(std::span(text)));
    auto bytes = std::move(writer).take();
    const Mac mac = mac_under(key, bytes);
    bytes.insert(bytes.end(), mac.begin(), mac.begin() + 16);
    return bytes;
  }
  void expect_refused(const std::string& why) {
    ASSERT_TRUE(serve_until([this] { return end_.has_value(); }));
    EXPECT_EQ(end_->code, core::ErrorCode::kProtocol);
    EXPECT_THAT(end_->message, HasSubstr(why));
  }

  boost::asio::io_context context_;
  int raw_ = -1;
  std::optional<Channel> a_;
  std::optional<Channel> b_;
  std::vector<std::string> received_;
  std::optional<core::Error> end_;
  std::function<void()> on_message_;
};

TEST_F(ChannelPair, DeliversWholeMessagesInOrder) {
  for (int i = 0; i < 1000; ++i)
    send(std::string(static_cast<std::size_t>(i), static_cast<char>(i)));
  ASSERT_TRUE(serve_until([this] { return received_.size() == 1000; }));
  for (std::size_t i = 0; i < 1000; ++i)
    EXPECT_EQ(received_[i], std::string(i, static_cast<char>(i)));
}

TEST_F(ChannelPair, DeliversTheLargestMessageBetweenSmallOnes) {
  const std::string large(core::kMaxControlBytes, 'x');
  send("before");
  send(large);
  send("after");
  ASSERT_TRUE(serve_until([this] { return received_.size() == 3; }));
  EXPECT_EQ(received_[0], "before");
  EXPECT_TRUE(received_[1] == large);
  EXPECT_EQ(received_[2], "after");
  EXPECT_TRUE(a_->drained());
}

TEST_F(ChannelPair, RefusesToSendTooMuch) {
  const std::vector<std::byte> large(core::kMaxControlBytes + 1);
  EXPECT_FALSE(a_->send(large));
}

TEST_F(ChannelPair, DrainsWithoutTheLoop) {
  send("last words");
  a_->drain(core::Clock::now() + 1s);
  a_->close();
  ASSERT_TRUE(serve_until([this] { return end_.has_value(); }));
  EXPECT_EQ(received_, std::vector<std::string>{"last words"});
  EXPECT_EQ(end_->code, core::ErrorCode::kPeerLost);
}

TEST_F(ChannelPair, TakesOneByteAtATime) {
  for (const std::byte each : frame(5, 0, "hello", key_of(1))) {
    send_raw({&each, 1});
    context_.restart();
    context_.run_for(1ms);
  }
  ASSERT_TRUE(serve_until([this] { return !received_.empty(); }));
  EXPECT_EQ(received_[0], "hello");
}

TEST_F(ChannelPair, RefusesLengthsBeforeAllocating) {
  send_raw(frame(core::kMaxControlBytes + 1, 0, "", key_of(1)));
  expect_refused("a control frame of");
}

TEST_F(ChannelPair, RefusesAHugeLength) {
  send_raw(frame(0xFFFFFFFF, 0, "", key_of(1)));
  expect_refused("a control frame of");
}

TEST_F(ChannelPair, RefusesAWrongSequence) {
  send_raw(frame(5, 1, "hello", key_of(1)));
  expect_refused("out of sequence");
}

TEST_F(ChannelPair, RefusesAReplay) {
  const auto recorded = frame(5, 0, "hello", key_of(1));
  send_raw(recorded);
  send_raw(recorded);
  expect_refused("out of sequence");
  EXPECT_EQ(received_.size(), 1U);
}

TEST_F(ChannelPair, RefusesAReflectedFrame) {
  send_raw(frame(5, 0, "hello", key_of(2)));
  expect_refused("MAC");
}

TEST_F(ChannelPair, RefusesEachFlippedBit) {
  auto bad = frame(5, 0, "hello", key_of(1));
  bad[13] ^= std::byte{4};
  send_raw(bad);
  expect_refused("MAC");
  EXPECT_TRUE(received_.empty());
}

TEST_F(ChannelPair, MayBeClosedFromItsOwnCallback) {
  on_message_ = [this] { b_.reset(); };
  send("one");
  send("two");
  ASSERT_TRUE(serve_until([this] { return !received_.empty(); }));
  context_.restart();
  context_.run_for(10ms);
  EXPECT_EQ(received_.size(), 1U);
  EXPECT_FALSE(end_.has_value());
}

TEST_F(ChannelPair, ReadsWhatCameBeforeTheEndEvenWhenItCannotSend) {
  send("verdict");
  a_->close();
  const std::string answer(100, 'y');
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(b_->send(std::as_bytes(std::span(answer))));
  ASSERT_TRUE(serve_until([this] { return end_.has_value(); }));
  EXPECT_EQ(received_, std::vector<std::string>{"verdict"});
}

}  // namespace
}  // namespace fasthorovod::transport
