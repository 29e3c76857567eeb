#include "transport/local_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "transport/mate_exchange.h"
#include "transport/socket.h"

namespace fasthorovod::transport {
namespace {

using core::ErrorCode;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Ends {
  FileDescriptor dialling;
  FileDescriptor dialled;
};

Ends connected() {
  auto door = open_mate_door();
  EXPECT_TRUE(door);
  auto dialling = dial_locally(door->name);
  EXPECT_TRUE(dialling) << dialling.error().message;
  auto dialled = accept_one(door->socket.get());
  EXPECT_TRUE(dialled);
  return {std::move(*dialling), std::move(*dialled)};
}

// Sends what send_parcel would not: any number of descriptors.
void send_raw(int fd, std::string_view text, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(32 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t length = descriptors.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(length);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), length);
  }
  ASSERT_EQ(::sendmsg(fd, &header, 0), static_cast<ssize_t>(text.size()));
}

int lowest_free_descriptor() {
  return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
}

TEST(LocalSocket, CarriesAMessageWithADescriptor) {
  const Ends ends = connected();
  const FileDescriptor sent(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(receive_parcel(ends.dialled.get())->has_value());
  ASSERT_TRUE(send_parcel(ends.dialling.get(), bytes_of("here it is"), sent.get()));
  auto parcel = receive_parcel(ends.dialled.get());
  ASSERT_TRUE(parcel);
  ASSERT_TRUE(parcel->has_value());
  EXPECT_TRUE(std::ranges::equal((*parcel)->message, bytes_of("here it is")));
  const int fd = (*parcel)->content.get();
  EXPECT_NE(fd, sent.get());
  EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
  char byte = 1;
  EXPECT_EQ(::read(fd, &byte, 1), 1);
  EXPECT_EQ(byte, 0);
}

TEST(LocalSocket, RefusesAnyOtherNumberOfDescriptorsAndClosesThem) {
  const Ends ends = connected();
  const int free_before = lowest_free_descriptor();
  for (const std::size_t count : {0U, 2U, 8U, 30U}) {
    send_raw(ends.dialling.get(), "take these", std::vector<int>(count, ends.dialling.get()));
    auto parcel = receive_parcel(ends.dialled.get());
    ASSERT_FALSE(parcel) << count;
    EXPECT_EQ(parcel.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(lowest_free_descriptor(), free_before);
  }
}

TEST(LocalSocket, RefusesALongMessage) {
  const Ends ends = connected();
  const int free_before = lowest_free_descriptor();
  send_raw(ends.dialling.get(), std::string(kMaxParcelMessage + 1, 'x'), {ends.dialling.get()});
  EXPECT_EQ(receive_parcel(ends.dialled.get()).error().code, ErrorCode::kProtocol);
  EXPECT_EQ(lowest_free_descriptor(), free_before);
}

TEST(LocalSocket, SaysThatNoDescriptorIsLeft) {
  const Ends ends = connected();
  ASSERT_TRUE(send_parcel(ends.dialling.get(), bytes_of("one"), ends.dialling.get()));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{static_cast<rlim_t>(lowest_free_descriptor()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto parcel = receive_parcel(ends.dialled.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(parcel);
  EXPECT_THAT(parcel.error().message, HasSubstr("Too many open files"));
}

TEST(LocalSocket, TellsThatTheOtherSideLeft) {
  Ends ends = connected();
  ends.dialling.reset();
  EXPECT_EQ(receive_parcel(ends.dialled.get()).error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(send_parcel(ends.dialled.get(), bytes_of("hello?"), 0).error().code,
            ErrorCode::kPeerLost);
}

TEST(LocalSocket, TellsThatNobodyListens) {
  auto door = open_mate_door();
  ASSERT_TRUE(door);
  door->socket.reset();
  EXPECT_EQ(dial_locally(door->name).error().code, ErrorCode::kPeerLost);
}

TEST(LocalSocket, KnowsWhoseProcessIsAtTheOtherEnd) {
  const Ends ends = connected();
  for (const int fd : {ends.dialling.get(), ends.dialled.get()}) {
    const auto user = user_of(fd);
    ASSERT_TRUE(user);
    EXPECT_EQ(user->uid, ::geteuid());
    EXPECT_EQ(user->pid, ::getpid());
    EXPECT_TRUE(check_user(*user, ::geteuid()));
  }
}

TEST(LocalSocket, LetsNoOtherUserInNotEvenRoot) {
  EXPECT_TRUE(check_user({.pid = 7, .uid = 1000, .gid = 5}, 1000));
  EXPECT_FALSE(check_user({.pid = 7, .uid = 0, .gid = 0}, 1000));
  const auto refused = check_user({.pid = 7, .uid = 1000, .gid = 0}, 0);
  EXPECT_EQ(refused.error().code, ErrorCode::kAuthentication);
  EXPECT_THAT(refused.error().message,
              HasSubstr("process 7 runs as user 1000, this one as user 0"));
}

TEST(MateDoor, HasAnotherNameEachTime) {
  const auto first = open_mate_door();
  const auto second = open_mate_door();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->name, second->name);
  EXPECT_EQ(first->name.size(), second->name.size());
  EXPECT_LE(first->name.size(), kMaxLocalName);
}

}  // namespace
}  // namespace fasthorovod::transport
