#include "transport/private_pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "transport/arena.h"

namespace fasthorovod::transport {
namespace {

constexpr std::size_t kPage = Arena::kPage;

std::size_t count(std::span<const std::byte> bytes, int value) {
  return static_cast<std::size_t>(std::ranges::count(bytes, static_cast<std::byte>(value)));
}

TEST(PrivatePages, AreLeftToThisProcessAndKeepTheirContents) {
  const Arena own = *Arena::create(4 * kPage);
  const Arena other = *Arena::open(FileDescriptor(::dup(own.fd())));
  const std::span<std::byte> pages = own.bytes().subspan(kPage, 2 * kPage);
  std::ranges::fill(own.bytes(), std::byte{1});
  ASSERT_TRUE(make_private(pages));
  EXPECT_EQ(count(own.bytes(), 1), 4 * kPage);
  std::ranges::fill(other.bytes(), std::byte{2});
  EXPECT_EQ(count(pages, 1), 2 * kPage);
  EXPECT_EQ(count(own.bytes(), 2), 2 * kPage);  // before and after them
  std::ranges::fill(pages, std::byte{3});
  EXPECT_EQ(count(other.bytes(), 2), 4 * kPage);
}

TEST(PrivatePages, MayBeNone) { EXPECT_TRUE(make_private({})); }

TEST(PrivatePages, SaysThatTheSystemHasNoRoom) {
  const Arena own = *Arena::create(kPage);
  const core::Status status = make_private({own.bytes().data(), std::size_t{1} << 62});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace fasthorovod::transport
